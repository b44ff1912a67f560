//! What the judge says.

use std::borrow::Cow;
use std::fmt;

use super::Tier;
use crate::diagnostic::{Code, Diagnostic};
use crate::isolation::tiers;
use crate::path::LexicalPath;
use crate::port::{FileKind, PathProbeError};

/// The side of a mount that is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// What is mounted.
    Source,
    /// Where it appears.
    Destination,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Source => "source",
            Self::Destination => "destination",
        })
    }
}

/// How a mount lies to a forbidden path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exposure {
    /// It is that path.
    Is,
    /// It lies inside.
    Inside,
    /// It contains it.
    Contains,
}

impl fmt::Display for Exposure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Is => "is",
            Self::Inside => "is inside",
            Self::Contains => "would expose",
        })
    }
}

/// Why a mount is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// It is the root directory.
    Root,
    /// It touches a forbidden path.
    Forbidden {
        /// How.
        exposure: Exposure,
        /// The path, as listed.
        path: LexicalPath,
        /// How strictly it is forbidden.
        tier: Tier,
        /// What is there.
        what: &'static str,
    },
    /// It is a socket, a FIFO or a device.
    Kind {
        /// What it is.
        kind: FileKind,
    },
    /// It could not be looked at.
    Unreadable {
        /// Why not.
        error: PathProbeError,
    },
    /// The list itself could not be made.
    ListIncomplete {
        /// The input that is no plain absolute path.
        input: String,
    },
}

/// A refusal. Its text names the side, the path as written, what it resolves to if that differs,
/// the relation and the forbidden path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The side concerned.
    pub side: Side,
    /// The path as written.
    pub written: String,
    /// Where it leads.
    pub resolved: LexicalPath,
    /// The mount point inside that is the reason.
    pub via: Option<LexicalPath>,
    /// The reason.
    pub cause: Cause,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.side, self.written.escape_debug())?;
        if self.written != self.resolved.as_str() {
            write!(f, " (resolves to `{}`)", self.resolved)?;
        }
        if let Some(via) = &self.via {
            write!(f, ", through the mount point `{via}` inside,")?;
        }
        match &self.cause {
            Cause::Root => f.write_str(" is the root directory, which would expose everything"),
            Cause::Forbidden { exposure, path, what, tier: Tier::NoWrite } => {
                write!(f, " {exposure} `{path}`, which no role may write ({what})")
            }
            Cause::Forbidden { exposure, path, what, .. } => {
                write!(f, " {exposure} the forbidden path `{path}` ({what})")
            }
            Cause::Kind { kind } => write!(f, " is a {}", kind_word(*kind)),
            Cause::Unreadable { error } => write!(f, " cannot be judged: {error}"),
            Cause::ListIncomplete { input } => write!(
                f,
                " cannot be judged: `{}` must be forbidden but is no plain absolute path",
                input.escape_debug()
            ),
        }
    }
}

impl Conflict {
    /// What to do about it.
    pub fn hint(&self) -> Cow<'static, str> {
        if let Some(part) = self.grantable() {
            return format!("grant only what is needed of it, for example `{part}`").into();
        }
        self.general_hint().into()
    }

    /// What is no secret in a directory that holds one, if the directory is known to be granted for it.
    fn grantable(&self) -> Option<LexicalPath> {
        let Cause::Forbidden { exposure: Exposure::Contains, path, .. } = &self.cause else {
            return None;
        };
        tiers::GRANTABLE.iter().find_map(|(directory, part)| {
            let known = self.resolved.as_str().strip_suffix(directory)?.ends_with('/');
            let here = known && path.is_within(&self.resolved);
            here.then(|| self.resolved.child(part).ok()).flatten()
        })
    }

    fn general_hint(&self) -> &'static str {
        match &self.cause {
            Cause::Root => "list the directories that are needed",
            Cause::Forbidden { what: "fleet configuration", .. } => {
                "keep the fleet files outside of what a role can reach: move them, or mount a \
                 directory that does not hold them"
            }
            Cause::Forbidden { tier: Tier::NoWrite, .. } => {
                "mount it read-only, or a directory that does not touch it"
            }
            Cause::Forbidden { exposure: Exposure::Contains, .. } => {
                "mount only the subdirectories that are needed"
            }
            Cause::Forbidden { .. } => "leave it out",
            Cause::Kind { .. } => "only regular files and directories can be mounted",
            Cause::Unreadable { .. } => "make it readable for the fleet user, or leave it out",
            Cause::ListIncomplete { .. } => "correct the environment that fleet is started with",
        }
    }

    /// The refusal as a problem of the key at `path` below the role.
    pub fn diagnostic(&self, path: impl Into<String>) -> Diagnostic {
        Diagnostic::error(Code::ForbiddenMount, self.to_string()).path(path).hint(self.hint())
    }
}

fn kind_word(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "regular file",
        FileKind::Directory => "directory",
        FileKind::Socket => "socket",
        FileKind::Fifo => "FIFO",
        FileKind::Device => "device",
    }
}
