//! `claude-code`: Claude Code as an agent (01 §4.2).

mod dialogs;
mod screen;

pub use screen::ClaudeDriver;
