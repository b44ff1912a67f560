//! The entries arranged so that a candidate costs a few look-ups, however long the list is.

use super::{Cause, Entry, Exposure, OwnDirs, Question, Side, Tier};
use crate::isolation::policy::MountMode;
use crate::isolation::quick_hash::QuickMap;
use crate::isolation::tiers::NamePattern;
use crate::path::{LexicalPath, Relation};
use crate::port::{FileIdentity, PathProbe, Resolved};

/// What the list knows of one path or of one object, as numbers of entries in list order.
#[derive(Debug, Default)]
struct Slot {
    /// Entries that are it.
    is: Vec<usize>,
    /// Entries strictly inside it.
    below: Vec<usize>,
    /// Entries in which it is mounted: under its other names it is what they hold all the same.
    mounted: Vec<usize>,
    /// Patterns for names directly in it.
    patterns: Vec<&'static NamePattern>,
}

/// Slots by path. Holds every entry and every directory above one, so a walk from the root down may
/// stop at the first path that is missing.
type Paths = QuickMap<Box<str>, Slot>;

/// What is compared.
pub(super) struct Candidate<'a> {
    pub(super) path: &'a LexicalPath,
    pub(super) identity: Option<FileIdentity>,
    pub(super) ancestors: &'a [FileIdentity],
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Index {
    exact: Paths,
    /// Entries on file systems that ignore case, spelled in lower case.
    folded: Paths,
    identities: QuickMap<FileIdentity, Slot>,
    /// Entries that do not exist, by the nearest directory above that does, with the rest of the
    /// path: an alias of that directory must not let them be made and reached.
    absent: QuickMap<FileIdentity, Vec<(LexicalPath, usize)>>,
}

impl Index {
    pub(super) fn add(
        &mut self,
        number: usize,
        entry: &Entry,
        resolved: Option<&Resolved>,
        probe: &dyn PathProbe,
    ) {
        let keys = [Some(&entry.path), (entry.resolved != entry.path).then_some(&entry.resolved)];
        for key in keys.into_iter().flatten() {
            add_path(&mut self.exact, key, number);
            if probe.ignores_case(key) {
                add_path(&mut self.folded, &folded(key), number);
            }
        }
        let Some(resolved) = resolved else { return };
        if let Some(object) = resolved.object {
            self.identities.entry(object.identity).or_default().is.push(number);
            // A mount table that cannot be read refuses every directory later.
            let inside = probe.mounts_below(&resolved.path).unwrap_or_default();
            for (_, identity) in inside.into_iter().filter(|_| entry.tier == Tier::NoExposure) {
                self.identities.entry(identity).or_default().mounted.push(number);
            }
        } else if let Some((nearest, rest)) = missing_part(&resolved.path, &resolved.ancestors) {
            self.absent.entry(nearest).or_default().push((rest, number));
        }
        for ancestor in &resolved.ancestors {
            let slot = self.identities.entry(*ancestor).or_default();
            // An ancestor may come twice in a chain, below a bind mount of itself.
            if slot.below.last() != Some(&number) {
                slot.below.push(number);
            }
        }
    }

    pub(super) fn add_pattern(
        &mut self,
        directory: &LexicalPath,
        pattern: &'static NamePattern,
        probe: &dyn PathProbe,
    ) {
        let mut keys = vec![directory.clone()];
        if let Ok(resolved) = probe.resolve(directory) {
            keys.push(resolved.path);
            if let Some(object) = resolved.object {
                self.identities.entry(object.identity).or_default().patterns.push(pattern);
            }
        }
        keys.dedup();
        for key in keys {
            add_directory(&mut self.exact, &key).patterns.push(pattern);
            if probe.ignores_case(&key) {
                add_directory(&mut self.folded, &folded(&key)).patterns.push(pattern);
            }
        }
    }

    /// The first entry that forbids the candidate; "is" before "inside" before "contains".
    pub(super) fn compare(
        &self,
        candidate: &Candidate<'_>,
        entries: &[Entry],
        question: &Question<'_>,
    ) -> Option<Cause> {
        let search = Search { candidate, entries, question };
        let mut best = search.by_path(&self.exact, candidate.path);
        if !self.folded.is_empty() {
            best = better(best, search.by_path(&self.folded, &folded(candidate.path)));
        }
        best = better(best, search.by_identity(&self.identities));
        best = better(best, search.by_missing_part(&self.absent));
        best.map(|hit| hit.cause())
    }
}

fn folded(path: &LexicalPath) -> LexicalPath {
    // Lower case keeps a plain path plain.
    LexicalPath::absolute(&path.as_str().to_ascii_lowercase()).unwrap_or_else(|_| path.clone())
}

fn add_path(paths: &mut Paths, path: &LexicalPath, number: usize) {
    for above in path.from_root_to_self() {
        let slot = paths.entry(above.into()).or_default();
        let list = if above.len() == path.as_str().len() { &mut slot.is } else { &mut slot.below };
        if list.last() != Some(&number) {
            list.push(number);
        }
    }
}

fn add_directory<'a>(paths: &'a mut Paths, path: &LexicalPath) -> &'a mut Slot {
    for above in path.from_root_to_self() {
        paths.entry(above.into()).or_default();
    }
    paths.entry(path.as_str().into()).or_default()
}

/// The nearest existing directory above a path that does not exist, and the rest from there, written
/// as an absolute path.
fn missing_part(
    path: &LexicalPath,
    ancestors: &[FileIdentity],
) -> Option<(FileIdentity, LexicalPath)> {
    let nearest = *ancestors.first()?;
    let rest: Vec<&str> = path.components().skip(ancestors.len() - 1).collect();
    let rest = LexicalPath::absolute(&format!("/{}", rest.join("/"))).ok()?;
    Some((nearest, rest))
}

/// What was found, before it is worth a text.
struct Hit<'a> {
    exposure: Exposure,
    found: Found<'a>,
}

enum Found<'a> {
    Entry(&'a Entry),
    Pattern(&'static NamePattern, &'a str),
}

impl Hit<'_> {
    fn rank(&self) -> u8 {
        match self.exposure {
            Exposure::Is => 0,
            Exposure::Inside => 1,
            Exposure::Contains => 2,
        }
    }

    fn cause(&self) -> Cause {
        let (path, tier, what) = match &self.found {
            Found::Entry(entry) => (entry.path.clone(), entry.tier, entry.what),
            Found::Pattern(pattern, place) => (
                LexicalPath::absolute(place).unwrap_or_else(|_| LexicalPath::root()),
                pattern.tier,
                pattern.what,
            ),
        };
        Cause::Forbidden { exposure: self.exposure, path, tier, what }
    }
}

fn better<'a>(first: Option<Hit<'a>>, second: Option<Hit<'a>>) -> Option<Hit<'a>> {
    match (first, second) {
        (Some(first), Some(second)) if second.rank() < first.rank() => Some(second),
        (None, second) => second,
        (first, _) => first,
    }
}

struct Search<'a> {
    candidate: &'a Candidate<'a>,
    entries: &'a [Entry],
    question: &'a Question<'a>,
}

impl<'a> Search<'a> {
    /// Whether a path of this tier may not be touched by the mount in question.
    fn applies(&self, tier: Tier) -> bool {
        let question = self.question;
        match tier {
            Tier::NoExposure => true,
            Tier::NoWrite => question.by_user && question.mode == MountMode::ReadWrite,
            Tier::System => question.by_user && question.side == Side::Source,
        }
    }

    /// The role's own directories are exempt, and only against the state root around them; so are the
    /// shared items of its harness against the operator's home of it, and against their own entry.
    fn exempt(&self, exposure: Exposure, entry: &Entry) -> bool {
        if entry.harness {
            return self.shared(exposure, entry);
        }
        if entry.drop_in_dir {
            let own = self.question.own.beside_drop_ins.as_ref() == Some(self.candidate.path);
            let directly = self.candidate.path.parent().as_ref() == Some(&entry.resolved);
            return exposure == Exposure::Inside && own && directly;
        }
        exposure == Exposure::Inside
            && entry.state_root
            && owned(self.question.own, self.candidate.path, self.question.by_user)
    }

    fn shared(&self, exposure: Exposure, entry: &Entry) -> bool {
        let (own, path) = (self.question.own, self.candidate.path);
        if self.question.by_user || self.question.mode == MountMode::ReadWrite {
            return false;
        }
        own.shared.iter().filter(|(target, _)| target == path).any(
            |(target, name)| match exposure {
                Exposure::Inside => own.operator.as_ref() == Some(&entry.resolved),
                Exposure::Is => {
                    entry.resolved == *target && entry.path.file_name() == Some(name.as_str())
                }
                Exposure::Contains => false,
            },
        )
    }

    fn pick(&self, exposure: Exposure, numbers: &[usize]) -> Option<Hit<'a>> {
        numbers
            .iter()
            .filter_map(|number| self.entries.get(*number))
            .find(|entry| self.applies(entry.tier) && !self.exempt(exposure, entry))
            .map(|entry| Hit { exposure, found: Found::Entry(entry) })
    }

    fn pattern(&self, slot: &Slot, place: &'a str, whole: bool) -> Option<Hit<'a>> {
        let name = place.rsplit('/').next().unwrap_or_default();
        let found = slot
            .patterns
            .iter()
            .find(|pattern| pattern.fits(name) && self.applies(pattern.tier))?;
        let exposure = if whole { Exposure::Is } else { Exposure::Inside };
        Some(Hit { exposure, found: Found::Pattern(found, place) })
    }

    /// `path` is the candidate's, perhaps in lower case; then byte positions are the same.
    fn by_path(&self, paths: &Paths, path: &LexicalPath) -> Option<Hit<'a>> {
        let full = path.as_str().len();
        let mut best = None;
        let mut parent: Option<&Slot> = None;
        for above in path.from_root_to_self() {
            let whole = above.len() == full;
            if let Some(parent) = parent.filter(|slot| !slot.patterns.is_empty()) {
                let place = &self.candidate.path.as_str()[..above.len()];
                best = better(best, self.pattern(parent, place, whole));
            }
            let Some(slot) = paths.get(above) else { break };
            if whole {
                best = better(best, self.pick(Exposure::Is, &slot.is));
                best = better(best, self.pick(Exposure::Contains, &slot.below));
            } else {
                best = better(best, self.pick(Exposure::Inside, &slot.is));
            }
            parent = Some(slot);
        }
        best
    }

    fn by_identity(&self, identities: &QuickMap<FileIdentity, Slot>) -> Option<Hit<'a>> {
        let mut best = None;
        if let Some(slot) = self.candidate.identity.and_then(|own| identities.get(&own)) {
            best = better(best, self.pick(Exposure::Is, &slot.is));
            best = better(best, self.pick(Exposure::Inside, &slot.mounted));
            best = better(best, self.pick(Exposure::Contains, &slot.below));
        }
        let path = self.candidate.path.as_str();
        let mut place = path;
        for ancestor in self.candidate.ancestors {
            if let Some(slot) = identities.get(ancestor) {
                best = better(best, self.pick(Exposure::Inside, &slot.is));
                best = better(best, self.pick(Exposure::Inside, &slot.mounted));
                // `ancestors` starts at the nearest existing directory: only then is `place` the
                // name in it.
                if !slot.patterns.is_empty() && self.candidate.identity.is_some() {
                    best = better(best, self.pattern(slot, place, place.len() == path.len()));
                }
            }
            place = place.rfind('/').map_or("", |end| &place[..end]);
        }
        best
    }

    fn by_missing_part(
        &self,
        absent: &QuickMap<FileIdentity, Vec<(LexicalPath, usize)>>,
    ) -> Option<Hit<'a>> {
        if self.candidate.identity.is_some() {
            return None;
        }
        let (nearest, rest) = missing_part(self.candidate.path, self.candidate.ancestors)?;
        absent.get(&nearest)?.iter().fold(None, |best, (entry, number)| {
            let exposure = match rest.relation(entry) {
                Relation::Equal => Exposure::Is,
                Relation::Inside => Exposure::Inside,
                Relation::Contains => Exposure::Contains,
                Relation::Disjoint => return best,
            };
            better(best, self.pick(exposure, &[*number]))
        })
    }
}

fn owned(own: &OwnDirs, path: &LexicalPath, by_user: bool) -> bool {
    if by_user {
        own.state.as_ref().is_some_and(|state| path.is_within(state))
    } else {
        own.fleet.contains(path)
    }
}
