//! Observation: what a started sandbox really is, seen from outside, row by row.
//!
//! `facts` reads `/proc`, `rows` judges, `inside` adds what the sandbox answered about itself,
//! `podman` is what differs for a container. A row is
//! never `enforced` without evidence: what could not be looked at is `missing`. Must not know how the
//! plan was made, only what its line asks for.
//! Tests: unit tests in `rows`, `shim/` (each flag dropped flips its row), `integration/`.

mod caps;
mod confined;
mod expect;
mod facts;
mod inside;
pub(crate) mod podman;
mod rows;

pub(crate) use caps::with_caps;
pub use facts::{Facts, Sandboxed};
pub(crate) use facts::{command_pid, look, runs_another_program};
pub use inside::agree;
pub use rows::rows;
