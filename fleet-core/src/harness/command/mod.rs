//! `command`: any program as an agent (01 §4.5).

mod launch;
mod options;

pub use launch::CommandHarness;
pub use options::CommandOptions;
