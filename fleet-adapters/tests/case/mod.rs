//! Cases of 07 that need no real console: the runner over fakes.

mod agent;
mod caps;
mod deliver;
mod harness;
mod hook;
mod native_sandbox;
mod runner;
mod sessions;
mod stand_in;
mod systemd;
