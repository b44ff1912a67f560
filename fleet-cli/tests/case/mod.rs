//! The numbered cases of the commands.

mod check;
mod commands;
mod config;
mod harnesses;
mod hook;
mod isolation;
mod provider_script;
mod provider_wire;
mod run;
