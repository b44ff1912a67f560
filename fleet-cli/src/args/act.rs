use clap::{Args, ValueEnum};
use fleet_core::id::RoleName;
use fleet_core::port::KeyName;

/// Start what is configured.
#[derive(Debug, Args)]
#[command(after_help = "\
Checks every selected role before the first one is started, leaves running roles alone, and waits up \
to 15 seconds until each started role runs or says why not. A role that was taken down or is held \
down is released.

Examples:
  ours-fleet up
  ours-fleet up --dry-run
  ours-fleet up Reviewer Builder
  ours-fleet up -c ./fleet.yaml")]
pub struct Up {
    /// Roles to start; none means all
    #[arg(value_name = "NAME")]
    pub names: Vec<RoleName>,
    /// Say what would be done and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Stop roles.
#[derive(Debug, Args)]
#[command(after_help = "\
Ends the agent, its sandbox, its console and its runner, and nothing of any other role. Files of the \
role stay. Stopping a stopped role is no error. The next `up` begins a fresh conversation.

Examples:
  ours-fleet down
  ours-fleet down Reviewer")]
pub struct Down {
    /// Roles to stop; none means all
    #[arg(value_name = "NAME")]
    pub names: Vec<RoleName>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Stop and start roles, resuming.
#[derive(Debug, Args)]
#[command(after_help = "\
Reads the fleet file again, so a changed role takes effect. A role that did not run is started.

Examples:
  ours-fleet restart Reviewer
  ours-fleet restart")]
pub struct Restart {
    /// Roles to restart; none means all
    #[arg(value_name = "NAME")]
    pub names: Vec<RoleName>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Stop and start roles, fresh.
#[derive(Debug, Args)]
#[command(after_help = "\
The agent forgets its conversation and reads its briefing again. Its worklog and files stay.

Examples:
  ours-fleet force-restart Reviewer")]
pub struct ForceRestart {
    /// Roles to restart; none means all
    #[arg(value_name = "NAME")]
    pub names: Vec<RoleName>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// How far a text must have got before `send` returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WaitStage {
    /// It is in the console
    Typed,
    /// It was submitted
    Submitted,
    /// The agent turned busy over it
    TurnStarted,
}

impl WaitStage {
    /// The receipt of that name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Typed => "typed",
            Self::Submitted => "submitted",
            Self::TurnStarted => "turn-started",
        }
    }
}

/// Type a text or press a key.
#[derive(Debug, Args)]
#[command(after_help = "\
The text arrives byte for byte or is refused with a reason. Words are joined by one space; quote the \
text to keep your own. A text that starts with `-` goes after `--`. Prints how far it is known to \
have got (the receipt).

Examples:
  ours-fleet send Reviewer 'look at pull request 12'
  ours-fleet send Reviewer -- '-n is a flag'
  ours-fleet send Reviewer --key C-c")]
pub struct Send {
    /// The role
    #[arg(value_name = "NAME")]
    pub name: RoleName,
    /// The text
    #[arg(value_name = "TEXT")]
    pub text: Vec<String>,
    /// Press one key (Enter, Escape, Up, C-c, …) in place of typing a text
    #[arg(long, value_name = "KEY", conflicts_with_all = ["text", "interrupt"])]
    pub key: Option<KeyName>,
    /// Interrupt the running turn first
    #[arg(long)]
    pub interrupt: bool,
    /// Wait until the text got this far
    #[arg(long, value_enum, value_name = "STAGE", default_value = "submitted")]
    pub wait: WaitStage,
    /// How long to wait, in seconds
    #[arg(long, value_name = "SECS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub timeout: u64,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}
