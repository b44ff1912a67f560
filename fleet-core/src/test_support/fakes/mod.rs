//! In-memory stand-ins for the ports. Each keeps the contract that the real adapter keeps, and lets a
//! test look inside or break things.

mod composer_program;
mod counting_ids;
mod fixed_limits;
mod manual_clock;
mod memory_processes;
mod memory_store;
mod memory_supervisor;
mod memory_tmux;
mod memory_tree;
mod memory_watches;
mod scripted_exec;
mod stub_harness;

pub use composer_program::{ComposerProgram, ConsoleProgram, Look, Surprise};
pub use counting_ids::CountingIds;
pub use fixed_limits::FixedLimits;
pub use manual_clock::ManualClock;
pub use memory_processes::MemoryProcesses;
pub use memory_store::{Fault, MemoryStore, Planted};
pub use memory_supervisor::MemorySupervisor;
pub use memory_tmux::{MemoryTmux, MemoryTmuxServers, Typed};
pub use memory_tree::MemoryTree;
pub use memory_watches::MemoryWatches;
pub use scripted_exec::{Answer, ScriptedExec};
pub use stub_harness::{StubHarness, stub_harnesses};
