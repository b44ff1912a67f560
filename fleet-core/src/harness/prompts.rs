//! The first words that a model harness is given: one argument, made from fixed text and paths.

use super::LaunchDirs;

/// Begins a conversation: the agent reads its briefing.
pub fn first_prompt(dirs: &LaunchDirs) -> String {
    format!("Read and follow {} now.", dirs.briefing)
}

/// Goes on with a conversation after a restart.
pub fn restart_prompt(dirs: &LaunchDirs) -> String {
    format!(
        "Your session was restarted. Continue from {}; do not run blindly again what was running \
         when it ended. Your briefing is {}.",
        dirs.state.join("WORKLOG.md"),
        dirs.briefing
    )
}
