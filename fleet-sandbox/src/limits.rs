//! Caps on a launch, set from outside of the sandbox.
//!
//! `launcher` tries what the request lists: it makes control groups (`groups`) or has the user's
//! systemd make a scope (`scope`, `manager`), starts this program as `_enter` (`enter`) in front of the
//! sandbox program, and lets it go on only after it is in them and has read back, from its own group,
//! what the kernel really holds (`read`). So nothing of the agent ever runs outside of its caps. `host`
//! finds out what this machine can hold and removes what launches left.
//!
//! The process is put in a group *below* the one that has the limits. The sandbox takes its own group
//! for the root of the tree, so that even a sandbox inside, which may mount that tree, sees no file in
//! which a limit stands.
//!
//! A scope is asked of the user manager only, for root as well: one that the system manager makes would
//! be outside of whatever the fleet itself is held to, and root needs none, as it can make its groups.
//! Tests: `integration/limits.rs`, `integration/scope.rs`, `escape/limits.rs`; tables in
//! `fleet_core::limits`.

mod enter;
mod entering;
mod groups;
mod host;
mod launcher;
mod manager;
mod read;
mod rlimits;
mod scope;

pub use enter::inside as enter;
pub(crate) use entering::Starting;
pub use host::HostLimits;
pub(crate) use launcher::{Held, keeper, start};

/// The hidden command that runs [`enter`].
pub const ENTER: &str = "_enter";
