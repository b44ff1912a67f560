//! CONFINES: looks at real paths, turns a launch plan into a box, and observes that the box holds.
//!
//! * [`OpenatProbe`] answers the core's questions about the file system, for the resolution of a
//!   policy and again right before a launch.
//! * [`BubblewrapIsolation`], [`PodmanIsolation`], [`LandlockIsolation`] and [`NoIsolation`] are the
//!   isolation backends: a trial with the very
//!   flags of a role, and a pure plan.
//! * [`attest`] has a sandbox asked about itself before its command starts.
//! * [`HostLimits`] finds out which caps this machine can hold; [`limits`] sets them.
//! * [`run_pane`] is the launcher: the process in a role's console that makes a plan real, guards it
//!   and records how it ended.
//!
//! The crate decides nothing about *what* a role may see: that is `fleet-core`'s policy. It reads no
//! environment variable: everything comes from its caller or from the launch file.

pub mod attest;
pub mod bubblewrap;
pub mod landlock;
pub mod launch;
pub mod limits;
mod none;
pub mod observe;
mod path_probe;
pub mod podman;
mod procfs;
mod promise;
#[cfg(target_os = "linux")]
pub mod seccomp;
#[expect(unsafe_code, reason = "the one audited place: calls without a safe wrapper")]
mod sys;

pub use bubblewrap::{BubblewrapIsolation, HostView};
pub use landlock::LandlockIsolation;
pub use launch::{close_inherited_on_exec, listen_inside, run_pane};
pub use limits::HostLimits;
pub use none::NoIsolation;
pub use path_probe::OpenatProbe;
pub use podman::PodmanIsolation;
