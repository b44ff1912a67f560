//! Read-only mounts over parts of a directory that the agent may write (01 §2.3), looked at while they
//! are in force.
//!
//! A mount covers an entry of a directory. Where that entry is replaced outside of the sandbox, by
//! another file renamed over it or by moving it away, the cover is gone inside (measured): `git config`
//! and editors that save by renaming do just that.

use crate::isolation::policy::{IsolationPolicy, MountMode, MountOrigin};
use crate::path::LexicalPath;
use crate::port::{FileIdentity, PathProbe};

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cover {
    /// What it covers, on the host.
    pub path: LexicalPath,
    /// What was there at the launch; `None` for a directory that the launch made.
    pub identity: Option<FileIdentity>,
    gone: bool,
}

/// Those of one launch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Covers {
    covers: Vec<Cover>,
    directories: Vec<LexicalPath>,
}

impl Covers {
    /// What a policy covers.
    pub fn of(policy: &IsolationPolicy) -> Self {
        let mut found = Self::default();
        for mount in &policy.mounts {
            match mount.origin {
                MountOrigin::Overlay { .. } if mount.mode == MountMode::ReadOnly => {
                    let (path, identity) = (mount.source.clone(), mount.identity);
                    found.covers.push(Cover { path, identity, gone: false });
                }
                MountOrigin::SelfBind => {}
                _ => continue,
            }
            let above = mount.source.parent();
            found.directories.extend(above.filter(|above| !found.directories.contains(above)));
        }
        if found.covers.is_empty() {
            found.directories.clear();
        }
        found
    }

    /// The directories in which an entry can be replaced; empty if nothing is covered.
    pub fn directories(&self) -> &[LexicalPath] {
        &self.directories
    }

    /// Looks again. Returns every path that is not covered any more; one that was lost stays so, what
    /// ever stands there later: nothing covers it before the next launch.
    pub fn look(&mut self, probe: &dyn PathProbe) -> Vec<LexicalPath> {
        for cover in &mut self.covers {
            let seen = probe.resolve(&cover.path).ok();
            let there = seen.filter(|seen| seen.path == cover.path).and_then(|seen| seen.object);
            let identity = there.map(|object| object.identity);
            cover.gone |=
                identity.is_none() || cover.identity.is_some_and(|it| Some(it) != identity);
            cover.identity = cover.identity.or(identity);
        }
        self.covers.iter().filter(|cover| cover.gone).map(|cover| cover.path.clone()).collect()
    }
}
