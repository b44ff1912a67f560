//! Where mounts may appear, and what happens when two want the same place.

use super::{Draft, Work, is_program_directory};
use crate::diagnostic::{Code, Diagnostic};
use crate::isolation::policy::{MountMode, MountOrigin};
use crate::isolation::quick_hash::QuickMap;
use crate::isolation::tiers::PROTECTED_DESTINATIONS;
use crate::path::{LexicalPath, Relation};

/// Finds the mount that shows a path: numbers of drafts by destination.
#[derive(Debug, Default)]
pub(super) struct Cover {
    by_destination: QuickMap<String, usize>,
}

impl Cover {
    pub(super) fn insert(&mut self, destination: &LexicalPath, number: usize) {
        self.by_destination.insert(destination.as_str().to_owned(), number);
    }

    pub(super) fn at(&self, destination: &LexicalPath) -> Option<usize> {
        self.by_destination.get(destination.as_str()).copied()
    }

    /// The deepest mount around `path` or at it.
    pub(super) fn deepest(&self, path: &LexicalPath) -> Option<usize> {
        self.deepest_of(path, usize::MAX)
    }

    /// The same among the first `count` mounts.
    pub(super) fn deepest_of(&self, path: &LexicalPath, count: usize) -> Option<usize> {
        let numbers = path.self_and_ancestors().filter_map(|place| self.by_destination.get(place));
        numbers.copied().find(|number| *number < count)
    }

    /// A mount strictly inside `path`.
    pub(super) fn any_inside(&self, path: &LexicalPath) -> Option<&str> {
        let mut inside: Vec<&str> = self
            .by_destination
            .keys()
            .map(String::as_str)
            .filter(|place| {
                place.strip_prefix(path.as_str()).is_some_and(|rest| rest.starts_with('/'))
            })
            .collect();
        inside.sort_unstable();
        inside.first().copied()
    }
}

/// What no mount that a role asks for may touch; paths of the role's own come first.
fn protected(work: &Work<'_>, home: &LexicalPath) -> Vec<(LexicalPath, bool)> {
    let trees = work.context.trees;
    let own = [work.context.harness_home, &trees.handout, &trees.control];
    let own = own.into_iter().map(camino::Utf8Path::as_str);
    let whole = own.chain(PROTECTED_DESTINATIONS.iter().copied());
    let mut all: Vec<(LexicalPath, bool)> = whole
        .filter_map(|path| LexicalPath::absolute(path).ok())
        .map(|path| (path, true))
        .collect();
    let own = work.own.fleet.iter().filter(|path| Some(*path) != work.own.state.as_ref());
    all.extend(own.map(|path| (path.clone(), true)));
    // What an agent may write there, or next to it, would be an input of its next launch.
    let shared = &work.context.shared;
    let shared = shared.items.iter().map(|item| &item.destination).chain(&shared.home);
    all.extend(shared.map(|path| (path.clone(), true)));
    // Only covering these as a whole hides something; a mount inside them is usual.
    let outer_only = [LexicalPath::absolute("/tmp"), home.child(".cache")];
    all.extend(outer_only.into_iter().flatten().map(|path| (path, false)));
    all
}

impl Work<'_> {
    /// Refuses declared mounts at, around or inside protected destinations; secrets are judged by
    /// their own rules.
    pub(super) fn protected_destinations(&mut self, home: &LexicalPath) {
        let protected = protected(self, home);
        let mut problems = Vec::new();
        for draft in self.drafts.iter().filter(|draft| draft.mount.origin.is_by_user()) {
            if self.repeats_the_system(draft) {
                continue;
            }
            if let Some(problem) = touches(&protected, draft) {
                problems.push(problem);
            }
        }
        self.problems.append(&mut problems);
    }

    /// Read-only mounts of what every sandbox shows anyway, and a working directory below `/usr`
    /// that the fleet user owns. As root everything there is owned, so then nothing is exempt.
    fn repeats_the_system(&self, draft: &Draft) -> bool {
        let destination = &draft.mount.destination;
        if !is_program_directory(destination) || destination.depth() < 2 {
            return false;
        }
        let owned = draft.resolved.object.is_some_and(|object| object.uid == self.context.uid);
        draft.mount.mode == MountMode::ReadOnly
            || (draft.mount.origin == MountOrigin::Cwd
                && destination.from_root_to_self().nth(1) == Some("/usr")
                && owned
                && self.context.uid != 0)
    }

    /// Keeps one of equal mounts and refuses unequal ones at the same place. The drafts must be in
    /// the order of their origins, so that what is kept does not depend on the order of a list.
    pub(super) fn merge_duplicates(&mut self, cover: &mut Cover) {
        let drafts = std::mem::take(&mut self.drafts);
        self.drafts.reserve(drafts.len());
        for draft in drafts {
            self.add(draft, cover);
        }
    }

    /// Adds a draft unless an equal one is there; an unequal one at the same place is a problem.
    pub(super) fn add(&mut self, draft: Draft, cover: &mut Cover) {
        let Some(earlier) = cover.at(&draft.mount.destination).map(|number| &self.drafts[number])
        else {
            cover.insert(&draft.mount.destination, self.drafts.len());
            self.drafts.push(draft);
            return;
        };
        let (first, second) = (&earlier.mount, &draft.mount);
        if first.source == second.source && first.mode == second.mode {
            return;
        }
        let message = format!(
            "`{}` is mounted twice in different ways: `{}` {} by {}, and `{}` {} by {}",
            second.destination,
            first.source,
            first.mode,
            first.origin,
            second.source,
            second.mode,
            second.origin
        );
        let problem = Diagnostic::error(Code::Conflict, message);
        self.problems.push(problem.path(second.origin.key()).hint("keep one of the two"));
    }
}

fn touches(protected: &[(LexicalPath, bool)], draft: &Draft) -> Option<Diagnostic> {
    let destination = &draft.mount.destination;
    protected.iter().find_map(|(path, inside_too)| {
        let relation = match destination.relation(path) {
            Relation::Disjoint => return None,
            Relation::Inside if !inside_too => return None,
            Relation::Equal => "is",
            Relation::Inside => "is inside",
            Relation::Contains => "would cover",
        };
        Some(refusal(draft, &format!("{relation} the protected path `{path}`")))
    })
}

/// A problem of a mount's destination.
pub(super) fn refusal(draft: &Draft, what: &str) -> Diagnostic {
    let destination = &draft.mount.destination;
    let message = if draft.written == destination.as_str() {
        format!("destination `{destination}` {what}")
    } else {
        format!("destination `{destination}` (written `{}`) {what}", draft.written.escape_debug())
    };
    Diagnostic::error(Code::ForbiddenMount, message).path(draft.mount.origin.key())
}
