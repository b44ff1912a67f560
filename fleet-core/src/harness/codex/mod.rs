//! `codex`: the Codex command line as an agent (01 §4.3).

mod dialogs;
mod screen;

pub use screen::CodexDriver;
