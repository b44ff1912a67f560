//! `isolation.secrets` (01 §2.4): one read-only mount each, at a place that leaves no trace.

use std::collections::HashSet;

use super::destinations::{Cover, refusal};
use super::{Draft, Work, tmpfs};
use crate::diagnostic::{Code, Diagnostic};
use crate::isolation::forbidden::Side;
use crate::isolation::policy::{Mount, MountMode, MountOrigin, SecretEntry};
use crate::isolation::tiers::PROTECTED_DESTINATIONS;
use crate::path::{LexicalPath, Relation};
use crate::port::{FileKind, Resolved};

/// In-memory directories in which a secret may be put.
const OPEN_PLACES: &[&str] = &["/run/secrets", "/tmp"];

impl Work<'_> {
    pub(super) fn secrets(&mut self, cover: &mut Cover, home: &LexicalPath) {
        // Secrets are judged against the other mounts, not against each other: else their order
        // would matter.
        let others = self.drafts.len();
        let places: HashSet<&str> =
            self.block.secrets.iter().map(|entry| entry.to.as_str()).collect();
        for (index, entry) in self.block.secrets.iter().enumerate() {
            let origin = MountOrigin::Secret { index };
            if let Some(around) = around(entry.to.as_str(), &places) {
                let message = format!("`{}` lies inside another secret, `{around}`", entry.to);
                let problem = Diagnostic::error(Code::Conflict, message).path(origin.key());
                self.problems.push(problem.hint("put them beside each other"));
                continue;
            }
            let written = entry.from.as_str();
            let Some(resolved) = self.look(written, &entry.from, &origin) else { continue };
            if let Some(problem) = unfit(entry, &resolved) {
                self.problems.push(problem.path(origin.key()));
                continue;
            }
            let mode = MountMode::ReadOnly;
            if !self.judge(Side::Source, written, &resolved, mode, &origin)
                || !self.judge_destination(entry, &origin)
            {
                continue;
            }
            let mount = Mount {
                source: resolved.path.clone(),
                identity: resolved.object.map(|object| object.identity),
                kind: resolved.object.map(|object| object.kind),
                destination: entry.to.clone(),
                mode,
                origin,
            };
            self.note_links(entry.from.as_str(), &mount.origin, &resolved);
            let draft = Draft { mount, written: entry.to.to_string(), resolved };
            if let Some(problem) = self.bad_place(&draft, others, cover, home) {
                self.problems.push(problem);
                continue;
            }
            self.note_writable_source(&draft, others);
            self.add(draft, cover);
        }
    }

    /// The destination as text, and as what it leads to on the host.
    fn judge_destination(&mut self, entry: &SecretEntry, origin: &MountOrigin) -> bool {
        let Some(resolved) = self.look(entry.to.as_str(), &entry.to, origin) else {
            return false;
        };
        let lexical = Resolved::nothing_at(entry.to.clone());
        [lexical, resolved].iter().all(|resolved| {
            let (side, mode) = (Side::Destination, MountMode::ReadOnly);
            self.judge(side, entry.to.as_str(), resolved, mode, origin)
        })
    }

    fn bad_place(
        &self,
        draft: &Draft,
        others: usize,
        cover: &Cover,
        home: &LexicalPath,
    ) -> Option<Diagnostic> {
        let place = &draft.mount.destination;
        let hint = |problem: Diagnostic| {
            let name = draft.mount.source.file_name().unwrap_or("NAME");
            problem.hint(format!("put it at /run/secrets/{name}"))
        };
        let around = cover.deepest_of(place, others);
        let inside_mount = cover.any_inside(place).map(str::to_owned).or_else(|| {
            let mut inner = tmpfs(home).into_iter().map(|tmpfs| tmpfs.destination);
            inner.find(|inner| inner.relation(place) == Relation::Inside).map(|it| it.to_string())
        });
        if let Some(inner) = inside_mount {
            return Some(hint(refusal(draft, &format!("would cover `{inner}`"))));
        }
        let Some(around) = around else {
            let open = OPEN_PLACES.iter().any(|open| strictly_inside(place, open));
            if open {
                return None;
            }
            let protected = PROTECTED_DESTINATIONS
                .iter()
                .find(|path| LexicalPath::absolute(path).is_ok_and(|path| place.is_within(&path)));
            let what = match protected {
                Some(path) => format!("is, or is inside, the protected path `{path}`"),
                None => "is not a place for a secret: only below /run/secrets or /tmp, or a file \
                         that exists inside a read-only mount"
                    .to_owned(),
            };
            return Some(hint(refusal(draft, &what)));
        };
        let around = &self.drafts[around].mount;
        if around.mode == MountMode::ReadWrite {
            let what = format!(
                "lies in `{}`, which is writable ({}): the mount point would be left on the host",
                around.destination, around.origin
            );
            return Some(hint(refusal(draft, &what)));
        }
        if around.destination == *place {
            // The same place as another mount: equal or a conflict, decided where all are.
            return None;
        }
        // Nothing can be made inside a read-only mount: the mount point must be there.
        let there = place
            .below(&around.destination)
            .and_then(|below| around.source.join(below).ok())
            .and_then(|host| self.probe.resolve(&host).ok().filter(|seen| seen.path == host))
            .and_then(|seen| seen.object);
        let fits = there.is_some_and(|there| {
            draft.mount.kind.is_none_or(|kind| {
                (kind == FileKind::Directory) == (there.kind == FileKind::Directory)
            })
        });
        if fits && !matches!(around.origin, MountOrigin::Handout | MountOrigin::SharedItem { .. }) {
            return None;
        }
        let what = format!(
            "lies in the read-only `{}` ({}), where no such mount point exists",
            around.destination, around.origin
        );
        Some(hint(refusal(draft, &what)))
    }

    /// Allowed, but the agent can then change what other tools take for a secret of the operator.
    fn note_writable_source(&mut self, draft: &Draft, others: usize) {
        let source = &draft.mount.source;
        let writable = self.drafts[..others]
            .iter()
            .map(|other| &other.mount)
            .find(|other| other.mode == MountMode::ReadWrite && source.is_within(&other.source));
        if let Some(writable) = writable {
            self.residual_risks.push(format!(
                "the secret `{source}` lies in `{}`, which the role may write ({})",
                writable.source, writable.origin
            ));
        }
    }
}

/// The directory above a path that is one of these places, nearest first.
fn around<'p>(path: &'p str, places: &HashSet<&str>) -> Option<&'p str> {
    let above = path.match_indices('/').rev().map(|(end, _)| &path[..end]);
    above.into_iter().find(|above| places.contains(above))
}

fn strictly_inside(path: &LexicalPath, directory: &str) -> bool {
    LexicalPath::absolute(directory)
        .is_ok_and(|directory| path.relation(&directory) == Relation::Inside)
}

/// What is wrong with the source, if it exists.
fn unfit(entry: &SecretEntry, resolved: &Resolved) -> Option<Diagnostic> {
    let object = resolved.object?;
    let problem =
        |code, what: &str| Some(Diagnostic::error(code, format!("source `{}` {what}", entry.from)));
    if object.kind == FileKind::Directory && !entry.map_form {
        return problem(Code::InvalidValue, "is a directory")
            .map(|problem| problem.hint("write it as `{from: …, to: …}` if that is meant"));
    }
    if object.mode & 0o002 != 0 {
        return problem(Code::FileTrust, "can be written by everybody")
            .map(|problem| problem.hint(format!("chmod o-w {}", entry.from)));
    }
    None
}
