//! Adapters with real programs around them.

mod daemon;
mod exec;
pub(crate) mod stand_in;
mod supervisor;
mod tmux;
