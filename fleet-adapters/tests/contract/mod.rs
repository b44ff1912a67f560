//! The real adapters keep the contracts that the fakes keep.

mod clock;
mod exec;
mod hook;
mod process_table;
mod store;
mod supervisor;
mod tmux;
mod watch;
