//! What the benchmarks and the program `measure` share: fleets and policies of a given size.
//!
//! `load`, `resolve` and `argv` time one step each with criterion; `measure` times whole processes.
//! `scripts/figures.sh` runs all of them and writes the table of the README. Nothing here is ever
//! timed in a test.

mod fleet;
mod policy;

pub use fleet::{fleet_text, write_fleet};
pub use policy::{evidence, host_backend, policy_of};
