//! `claude-code`: Claude Code as an agent (01 §4.2).

mod dialogs;
mod screen;

pub use screen::ClaudeDriver;
//! `claude-code`: Claude Code as an agent (01 §3.3, §4.2).

mod harness;
mod home;
mod launch;
mod mcp;
mod operator;
mod options;
mod overlay;
mod permissions;
mod settings;
mod table;

pub use harness::ClaudeCodeHarness;
