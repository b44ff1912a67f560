//! `command`: any program as an agent (01 §4.5).

mod launch;
mod options;
mod screen;

pub use launch::CommandHarness;
pub use options::CommandOptions;
pub use screen::PatternDriver;
