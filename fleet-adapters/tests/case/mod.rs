//! Cases of 07 that need no real console: the runner over fakes.

mod harness;
mod native_sandbox;
mod runner;
