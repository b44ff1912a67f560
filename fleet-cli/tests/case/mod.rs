//! The numbered cases of the commands.

mod commands;
mod config;
mod isolation;
mod run;
