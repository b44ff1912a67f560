//! The fakes keep the contracts that the real adapters keep.

mod clock;
mod exec;
mod path_probe;
mod process_table;
mod store;
mod supervisor;
mod tmux;
mod watch;
