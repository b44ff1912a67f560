//! The numbered cases of the commands.

mod commands;
mod config;
mod run;
