//! `codex`: the Codex CLI (01 §3.4, §4.3).

mod config_key;
mod config_toml;
mod dialogs;
mod explain;
mod harness;
mod home;
mod launch;
mod options;
mod permissions;
mod posture;
mod screen;
mod sessions;
mod table;

pub use harness::CodexHarness;
pub use options::{CodexOptions, ConfigEntry};
pub use posture::{Approvals, SandboxMode};
pub use screen::CodexDriver;
pub use table::QUALIFIED;
