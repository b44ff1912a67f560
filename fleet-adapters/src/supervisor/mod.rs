//! What keeps runner processes alive. Each kind is one adapter of the `Supervisor` port; which one is
//! used is decided by the caller.

mod daemon;
mod none;
mod notify;
mod proof;
mod recorded;
mod systemd;

pub use daemon::{DetachRequest, become_session_leader, detach};
pub use none::{DetachedSettings, DetachedSupervisor};
pub use notify::ServiceManager;
pub use recorded::RecordedSupervisor;
pub use systemd::{SystemdSettings, SystemdSupervisor, user_manager};
