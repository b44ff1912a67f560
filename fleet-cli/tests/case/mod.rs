//! The numbered cases of the commands.

mod check;
mod commands;
mod config;
mod explain;
mod harnesses;
mod hook;
mod isolation;
mod provider_script;
mod provider_wire;
mod run;
