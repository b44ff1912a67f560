//! `claude-code`: Claude Code as an agent (01 §3.3, §4.2).

mod dialogs;
mod explain;
mod harness;
mod home;
mod launch;
mod mcp;
mod operator;
mod options;
mod overlay;
mod permissions;
mod screen;
mod settings;
mod table;

pub use harness::ClaudeCodeHarness;
pub use screen::ClaudeDriver;
