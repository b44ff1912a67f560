//! Files that fleet reads with its own rights and whose text it hands to a role, such as a briefing.
//! To the role that is the same as a mount of them, so they are judged like one.

use super::forbidden::{AgentDirectory, ForbiddenList, OwnDirs, Question, Side};
use super::policy::{IsolationPolicy, MountMode};
use super::steered::{REMEDY, steering};
use crate::diagnostic::{Code, Diagnostic};
use crate::path::LexicalPath;
use crate::port::{FileIdentity, FileKind, PathProbe, PathProbeError, Resolved};

/// What texts beside the drop-ins are called. Everything else there may be configuration, or what an
/// editor left of it.
const TEXTS: &[&str] = &["md", "markdown", "txt"];

/// A file that may be handed to a role: where it is, and which one it was when that was judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handed {
    /// Where it is, links followed.
    pub path: LexicalPath,
    /// Which one; `None` if nothing is there.
    pub identity: Option<FileIdentity>,
}

impl Handed {
    /// Judges the file at `written`, the value of the key `key` of a role with this policy.
    ///
    /// # Security
    /// On `Ok` the file is none that a role may not reach, by path and by identity, the state of the
    /// fleet included, its own part of it as well; no link that led there lies in a directory which
    /// any agent of the fleet may write, unless it leads to something in that very directory. That is
    /// so at this moment: [`Handed::read`] reads that file or none.
    ///
    /// # Errors
    /// The refusal, with the key and without a place.
    pub fn judge(
        written: &LexicalPath,
        key: &str,
        policy: Option<&IsolationPolicy>,
        forbidden: &ForbiddenList,
        probe: &dyn PathProbe,
    ) -> Result<Self, Box<Diagnostic>> {
        let resolved = probe
            .resolve(written)
            .map_err(|error| Diagnostic::error(Code::Io, error.to_string()).path(key))?;
        let suffix = resolved.path.as_path().extension();
        let hidden = resolved.path.file_name().is_some_and(|name| name.starts_with('.'));
        let text = !hidden && suffix.is_some_and(|suffix| TEXTS.contains(&suffix));
        let own =
            OwnDirs { beside_drop_ins: text.then(|| resolved.path.clone()), ..OwnDirs::default() };
        let question = Question {
            side: Side::Source,
            written: written.as_str(),
            resolved: &resolved,
            mode: MountMode::ReadOnly,
            by_user: true,
            own: &own,
        };
        forbidden.judge(&question, probe).map_err(|conflict| conflict.diagnostic(key))?;
        let mounts = policy.iter().flat_map(|policy| &policy.mounts);
        let writable = mounts.filter(|mount| mount.mode == MountMode::ReadWrite);
        let own: Vec<AgentDirectory> = writable.map(AgentDirectory::from).collect();
        if let Some(steered) = steering(&resolved, &own, forbidden, probe) {
            let message = format!("`{written}` {steered}: it would choose what fleet reads for it");
            let refusal = Diagnostic::error(Code::FileTrust, message).path(key).hint(REMEDY);
            return Err(Box::new(refusal));
        }
        let object = resolved.object;
        if object.is_some_and(|object| object.kind != FileKind::File) {
            let message = format!("`{written}` is not a regular file");
            return Err(Box::new(Diagnostic::error(Code::InvalidValue, message).path(key)));
        }
        Ok(Self { path: resolved.path, identity: object.map(|object| object.identity) })
    }

    /// At most the first `limit` bytes of exactly the file that was judged.
    ///
    /// # Errors
    /// Nothing was there, it cannot be read, or something else stands in its place by now.
    pub fn read(&self, probe: &dyn PathProbe, limit: usize) -> Result<Vec<u8>, PathProbeError> {
        let missing = || PathProbeError::Io {
            path: self.path.to_string(),
            detail: "it does not exist".to_owned(),
        };
        probe.content(&self.path, self.identity.ok_or_else(missing)?, limit)
    }
}

/// How some agent of the fleet chooses where a path leads, if one does: a link on the way lies where it
/// may write and leads out of there.
pub fn chosen_by_an_agent(
    resolved: &Resolved,
    forbidden: &ForbiddenList,
    probe: &dyn PathProbe,
) -> Option<String> {
    steering(resolved, &[], forbidden, probe).map(|steered| format!("it {steered}"))
}
