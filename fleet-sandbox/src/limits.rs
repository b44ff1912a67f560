//! Caps on a launch, set from outside of the sandbox.
//!
//! `launcher` tries what the request lists: it makes control groups (`groups`), starts this program as
//! `_enter` (`enter`) in front of the sandbox program, and lets it go on only after it has joined them
//! and read back, from its own group, what the kernel really holds (`read`). So nothing of the agent
//! ever runs outside of its caps. `host` finds out what this machine can hold and removes what
//! launches left.
//!
//! The process is put in a group *below* the one that has the limits. The sandbox takes its own group
//! for the root of the tree, so that even a sandbox inside, which may mount that tree, sees no file in
//! which a limit stands.
//! Tests: `integration/limits.rs`, `escape/limits.rs`; tables in `fleet_core::limits`.

mod enter;
mod groups;
mod host;
mod launcher;
mod read;
mod rlimits;

pub use enter::inside as enter;
pub use host::HostLimits;
pub(crate) use launcher::{Held, Starting, start};

/// The hidden command that runs [`enter`].
pub const ENTER: &str = "_enter";
