//! What a role may touch: from the written block to a resolved policy with reasons.
//!
//! [`forbidden`] says what nobody may reach, [`closure`] finds what a program needs, [`network`] which
//! hosts a rule means, [`resolve`] turns a block into mounts, [`select`] chooses a backend, [`report`]
//! names what is enforced. All pure: the file system is asked through
//! [`PathProbe`](crate::port::PathProbe).

pub mod closure;
pub mod covers;
pub mod forbidden;
pub mod handed;
pub mod network;
pub mod policy;
mod quick_hash;
pub mod report;
pub mod resolve;
pub mod select;
pub(crate) mod steered;
pub mod system;
mod tiers;

pub use policy::{
    Backend, BackendName, Cpu, FsPath, IsolationBlock, IsolationPolicy, MemoryBytes, Mount,
    MountMode, MountOrigin, NetworkMode, OnUnavailable, Resources, SecretEntry, SystemView, Tmpfs,
};
pub use report::{EnforcementLevel, EnforcementRow, Item};
