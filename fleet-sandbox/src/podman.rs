//! The podman backend: the same policy as bubblewrap's, in a container.
//!
//! `backend` ties the parts together: `host` is what is known of the machine, `argv` the line, `line` what it is put together with, `profile`
//! the system call filter in podman's words, `probe` the trial. `keeper` and `enter` are programs around
//! it, hidden commands of this binary: the keeper runs podman outside and ends what it started when the
//! launcher is gone; `enter` is the first program inside, gives the command its environment and
//! the exact filters. `sweep` clears away what a launch left.
//!
//! podman itself never learns the role's environment: it would write it to disk.

mod argv;
mod backend;
mod enter;
mod host;
mod keeper;
mod line;
mod probe;
mod profile;
mod sweep;

/// What the observation must know of the line.
pub(crate) mod flags {
    pub(crate) use super::argv::{END, OF_PODMAN, split};
}

pub use backend::PodmanIsolation;
pub use enter::inside;
pub use host::PodmanHost;
pub(crate) use keeper::ERROR;
pub use keeper::keep;
pub(crate) use sweep::clear;

/// The hidden command that keeps a container.
pub const KEEP: &str = "_podman";
/// The hidden command that is the first program in a container.
pub const ENTER: &str = "_box";
