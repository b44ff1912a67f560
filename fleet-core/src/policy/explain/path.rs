//! Paths: what a sandbox shows at one, and under which other names it shows the same object.

use super::confined::seen_by_rules;
use super::native::{self, NativeQuestion, NativeVerdict};
use super::{DecidedBy, ExplainRequest, Explanation, Rule, Verdict, answer, rule};
use crate::diagnostic::Place;
use crate::isolation::forbidden::{Cause, Exposure, OwnDirs, Question, Side, Tier};
use crate::isolation::resolve::{DEFAULT_PROTECT, protected_paths};
use crate::isolation::system::{SystemPlace, system_place};
use crate::isolation::{IsolationPolicy, Mount, MountMode, MountOrigin};
use crate::path::LexicalPath;
use crate::permissions::Filesystem;
use crate::port::{FileKind, PathProbe, Resolved};

/// What is known of the path that was asked for.
struct Asked<'a> {
    path: &'a LexicalPath,
    resolved: Resolved,
    probe: &'a dyn PathProbe,
}

pub(super) fn explain(
    request: &ExplainRequest<'_>,
    path: &LexicalPath,
    probe: &dyn PathProbe,
) -> Explanation {
    let looked = probe.resolve(path);
    let problem = looked.as_ref().err().map(ToString::to_string);
    let unseen = Resolved::nothing_at(path.clone());
    let asked = Asked { path, resolved: looked.unwrap_or(unseen), probe };
    let mut answer = match &request.assessment.policy {
        Some(policy) => inside(request, policy, &asked),
        None if request.isolated() => not_started(request, &asked),
        None => outside(request, &asked),
    };
    if asked.resolved.path != *path {
        answer.leads_to = Some(asked.resolved.path.clone());
    }
    if let Some(problem) = problem {
        answer.facts.push(format!("where it leads cannot be told: {problem}"));
    } else if asked.resolved.object.is_none()
        && matches!(answer.verdict, Verdict::ReadWrite | Verdict::ReadOnly)
    {
        answer.facts.push("nothing is there at this moment".to_owned());
    }
    answer.native =
        native::ask(request, NativeQuestion::Path { asked: path, target: &asked.resolved.path });
    if !answer.native.is_empty() {
        answer.sources = native::sources(request);
        if answer.native.iter().any(|it| it.verdict == NativeVerdict::Asks) {
            answer.facts.push(native::question_fate(request).to_owned());
        }
    }
    answer
}

/// A role whose sandbox does not resolve.
fn not_started(request: &ExplainRequest<'_>, asked: &Asked<'_>) -> Explanation {
    let rule = rule("policy.refused", "what the role asks for is refused");
    let mut it =
        answer("path", asked.path.as_str(), Verdict::NotStarted, DecidedBy::OuterBoundary, rule);
    "the role is not started as it is written, so it reaches nothing".clone_into(&mut it.says);
    it.place = request.assessment.problems.iter().find_map(|problem| problem.place.clone());
    if let Some((cause, place)) = forbidden(request, asked, MountMode::ReadOnly) {
        it.facts.push(format!("no role may reach it: it {}", cause.words));
        it.place = it.place.or(place);
    }
    it
}

/// A role without isolation.
fn outside(request: &ExplainRequest<'_>, asked: &Asked<'_>) -> Explanation {
    let (rule, place) = request.unisolated();
    let mut it = answer("path", asked.path.as_str(), Verdict::Account, DecidedBy::Nothing, rule);
    it.place = place;
    "the role runs with your own rights: it reads and writes what your account can, but for the \
     rules of its own program"
        .clone_into(&mut it.says);
    let closed = forbidden(request, asked, MountMode::ReadOnly);
    if let Some((found, _)) = closed.filter(|(found, _)| found.is_tier_a()) {
        it.facts
            .push(format!("it {}: no sandbox would show it, and this role has none", found.words));
    }
    it.change =
        Some("give the role an `isolation`, for example `isolation: { network: deny }`".into());
    it
}

/// One name under which a sandbox shows an object.
struct Name<'p> {
    path: LexicalPath,
    mount: &'p Mount,
}

/// Every name under which the mounts show the object, links followed. By path, and by device and inode
/// of the object and of the directories above it: a second name of a mounted directory counts too.
fn names<'p>(policy: &'p IsolationPolicy, resolved: &Resolved) -> Vec<Name<'p>> {
    let depth = resolved.path.depth();
    let mut found: Vec<Name<'p>> = Vec::new();
    for mount in &policy.mounts {
        let by_path = resolved.path.below(&mount.source).map(ToOwned::to_owned);
        let below = |above: usize| {
            let skipped = depth.saturating_sub(above);
            resolved.path.components().skip(skipped).collect::<Vec<_>>().join("/")
        };
        let by_identity = mount.identity.and_then(|identity| {
            if resolved.object.is_some_and(|object| object.identity == identity) {
                return Some(String::new());
            }
            let number = resolved.ancestors.iter().position(|above| *above == identity)?;
            // The nearest of the directories that exist is at this depth.
            let nearest = resolved.ancestors.len() - 1;
            Some(below(depth.saturating_sub(nearest - number)))
        });
        for rest in [by_path, by_identity].into_iter().flatten() {
            let path = match rest.as_str() {
                "" => Ok(mount.destination.clone()),
                rest => mount.destination.join(rest),
            };
            let Ok(path) = path else { continue };
            let shown = policy.covering(&path).is_some_and(|cover| std::ptr::eq(cover, mount));
            if shown && !found.iter().any(|name| name.path == path) {
                found.push(Name { path, mount });
            }
        }
    }
    found
}

fn inside(
    request: &ExplainRequest<'_>,
    policy: &IsolationPolicy,
    asked: &Asked<'_>,
) -> Explanation {
    let target = &asked.resolved.path;
    let mut names = names(policy, &asked.resolved);
    if let Some(mount) = policy.covering(target)
        && !names.iter().any(|name| name.path == *target)
    {
        // Something else is shown under that name.
        names.push(Name { path: target.clone(), mount });
    }
    // The widest first; of two alike, the path that was asked for.
    names.sort_by_key(|name| {
        (name.mount.mode == MountMode::ReadOnly, name.path != *asked.path, name.path != *target)
    });
    let found = match names.split_first() {
        Some((first, others)) => shown(request, policy, asked, first, others),
        None => unmounted(request, policy, asked),
    };
    seen_by_rules(policy, target, found)
}

/// A path that a mount shows.
fn shown(
    request: &ExplainRequest<'_>,
    policy: &IsolationPolicy,
    asked: &Asked<'_>,
    name: &Name<'_>,
    others: &[Name<'_>],
) -> Explanation {
    let (mount, target) = (name.mount, &asked.resolved.path);
    let verdict = match mount.mode {
        MountMode::ReadWrite => Verdict::ReadWrite,
        MountMode::ReadOnly => Verdict::ReadOnly,
    };
    let because = rule(mount_rule(&mount.origin), mount_words(&mount.origin));
    let mut it = answer("path", asked.path.as_str(), verdict, DecidedBy::OuterBoundary, because);
    it.place = request.mount_place(&mount.origin);
    let called =
        if name.path == *asked.path { String::new() } else { format!(", as `{}`", name.path) };
    it.says = match mount.mode {
        MountMode::ReadWrite => format!("the role can read and write it{called}"),
        MountMode::ReadOnly => format!("the role can read it and cannot write it{called}"),
    };
    let around = mount.destination.parent().and_then(|above| policy.covering(&above));
    if let Some(around) = around.filter(|around| around.mode != mount.mode) {
        it.facts.push(format!(
            "it lies in `{}` ({}: {}); the deeper of the two mounts decides",
            around.destination,
            mode_words(around.mode),
            mount_words(&around.origin)
        ));
    }
    if name.path != *asked.path && *asked.path != *target {
        let seen = policy.covering(asked.path).is_some();
        it.facts.push(if seen {
            "the role sees the link too, if every link on the way is shown to it".to_owned()
        } else {
            format!("the role does not see `{}` itself", asked.path)
        });
    }
    if name.path == *target && target.below(&mount.source).is_none() {
        it.facts.push("under this name the role sees that, and not what the host has there".into());
    } else if asked.resolved.object.is_none() {
        it.facts.push("nothing is there at this moment".to_owned());
    }
    for other in others.iter().filter(|other| other.path != name.path) {
        it.facts.push(format!(
            "also {} as `{}`, through {}",
            mode_words(other.mount.mode),
            other.path,
            mount_words(&other.mount.origin)
        ));
    }
    if asked.resolved.object.is_some_and(|object| object.kind == FileKind::Socket) {
        it.facts.push("it is a Unix socket: the role can connect to it in either mode".to_owned());
    }
    if mount.identity.is_none()
        && !policy.ephemeral_dirs.iter().any(|dir| *dir == *mount.source.as_path())
        && !made_by_up(&mount.origin)
    {
        it.facts.push("its source does not exist: the launch fails until it does".to_owned());
    }
    if mount.origin == MountOrigin::Cwd && mount.mode == MountMode::ReadOnly {
        let place = request.written("permissions.filesystem").map(|(_, place)| place);
        let place = place.map(|place| format!(" ({place})")).unwrap_or_default();
        it.facts.push(format!(
            "`permissions.filesystem: {}`{place} makes the working directory read-only",
            request.role.permissions.filesystem.as_str()
        ));
    }
    it.change = change(request, asked, mount);
    it
}

fn mode_words(mode: MountMode) -> &'static str {
    match mode {
        MountMode::ReadWrite => "read-write",
        MountMode::ReadOnly => "read-only",
    }
}

/// Directories that `up` makes.
fn made_by_up(origin: &MountOrigin) -> bool {
    matches!(origin, MountOrigin::State | MountOrigin::HarnessHome | MountOrigin::Handout)
}

/// The stable name of the rule behind a mount.
fn mount_rule(origin: &MountOrigin) -> &'static str {
    match origin {
        MountOrigin::State => "mount.state",
        MountOrigin::Cwd => "mount.cwd",
        MountOrigin::HarnessHome => "mount.harness-home",
        MountOrigin::Handout => "mount.handout",
        MountOrigin::SharedItem { .. } => "mount.shared-item",
        MountOrigin::Repository { .. } => "mount.repository",
        MountOrigin::AddDir { .. } => "mount.add-dir",
        MountOrigin::LaunchClosure => "mount.launch-closure",
        MountOrigin::FsWrite { .. } => "mount.fs-write",
        MountOrigin::FsRead { .. } => "mount.fs-read",
        MountOrigin::Secret { .. } => "mount.secret",
        MountOrigin::Overlay { .. } => "mount.overlay",
        MountOrigin::SelfBind => "mount.self-bind",
    }
}

fn mount_words(origin: &MountOrigin) -> String {
    match origin {
        MountOrigin::Cwd => "the working directory, `cwd`".to_owned(),
        _ => origin.to_string(),
    }
}

/// What to write so that a shown path is shown otherwise.
fn change(request: &ExplainRequest<'_>, asked: &Asked<'_>, mount: &Mount) -> Option<String> {
    let key = mount.origin.key();
    let writable = || forbidden(request, asked, MountMode::ReadWrite).is_none();
    match (&mount.origin, mount.mode) {
        (MountOrigin::FsRead { .. }, _) if writable() => {
            Some(format!("move it from `{key}` to `isolation.fs.write` to let it be written"))
        }
        (MountOrigin::FsRead { .. } | MountOrigin::Secret { .. }, _) => {
            Some(format!("leave `{key}` out to hide it; it can never be written"))
        }
        (MountOrigin::FsWrite { .. }, _) => Some(format!(
            "move it from `{key}` to `isolation.fs.read` to keep it from being written"
        )),
        (MountOrigin::AddDir { .. }, _) => Some(format!("leave `{key}` out to hide it")),
        (MountOrigin::Cwd, MountMode::ReadOnly)
            if request.role.permissions.filesystem == Filesystem::ReadOnly =>
        {
            Some("write `permissions.filesystem: workspace` to let it be written".to_owned())
        }
        (MountOrigin::Cwd, _) => Some(
            "write `permissions.filesystem: read-only` to keep it from being written".to_owned(),
        ),
        (MountOrigin::Overlay { path }, _) => overlaid(request, path),
        _ => None,
    }
}

/// What to write so that a protected path can be written. What decides over the next launch stays closed.
fn overlaid(request: &ExplainRequest<'_>, path: &str) -> Option<String> {
    let block = request.role.isolation.as_ref()?;
    let (_, index) = protected_paths(block).into_iter().find(|(below, _)| *below == path)?;
    if let Some(index) = index.filter(|_| !DEFAULT_PROTECT.contains(&path)) {
        return Some(format!("leave `isolation.protect[{index}]` out to let it be written"));
    }
    let what = "write `protect: []`, which ends the protection of every path of the project,";
    Some(request.in_block(what))
}

/// A path that no mount shows.
fn unmounted(
    request: &ExplainRequest<'_>,
    policy: &IsolationPolicy,
    asked: &Asked<'_>,
) -> Explanation {
    let target = &asked.resolved.path;
    // A text of fleet's takes the place of a link, wherever that leads.
    let made = system_place(asked.path, policy.system).filter(|it| *it == SystemPlace::Made);
    let system = made.or_else(|| system_place(target, policy.system));
    if let Some(place) = system {
        return of_the_system(request, policy, asked, place);
    }
    let closed = forbidden(request, asked, MountMode::ReadOnly);
    let memory = policy
        .tmpfs
        .iter()
        .filter(|tmpfs| target.is_within(&tmpfs.destination))
        .max_by_key(|tmpfs| tmpfs.destination.depth());
    let own = memory.is_some_and(|it| it.destination == *target)
        || (memory.is_some() && asked.resolved.object.is_none() && closed.is_none());
    let (verdict, because, place) = match (&closed, memory) {
        (Some((found, place)), _) if !own => (Verdict::Hidden, found.rule(), place.clone()),
        (_, Some(memory)) => (
            if own { Verdict::Private } else { Verdict::Hidden },
            rule(
                "tmpfs",
                format!("`{}` is empty and in memory in every sandbox", memory.destination),
            ),
            None,
        ),
        _ => (
            Verdict::Hidden,
            rule("not-listed", "what no mount of the role shows does not exist in its sandbox"),
            request.around("isolation.fs"),
        ),
    };
    let mut it = answer("path", asked.path.as_str(), verdict, DecidedBy::OuterBoundary, because);
    it.place = place;
    let says = match verdict {
        Verdict::Private => {
            "the role has one of its own there, empty at the start: it can write it, and all of it \
             vanishes when the role stops"
        }
        _ => "the role cannot see it",
    };
    says.clone_into(&mut it.says);
    if verdict == Verdict::Hidden
        && let Some(memory) = memory
    {
        it.facts.push(format!(
            "what the role writes below `{}` stays in memory and vanishes",
            memory.destination
        ));
    }
    let below: Vec<&str> = policy
        .mounts
        .iter()
        .map(|mount| &mount.destination)
        .filter(|destination| *destination != target && destination.is_within(target))
        .map(LexicalPath::as_str)
        .collect();
    if let Some(first) = below.first() {
        let more =
            if below.len() > 1 { format!(" and {} more", below.len() - 1) } else { String::new() };
        it.facts.push(format!("it is there as an empty directory on the way to `{first}`{more}"));
    }
    it.change = if own { None } else { open(request, asked, closed.as_ref()) };
    it
}

/// What to write so that a hidden path is shown, if anything can.
fn open(
    request: &ExplainRequest<'_>,
    asked: &Asked<'_>,
    closed: Option<&(Found, Option<Place>)>,
) -> Option<String> {
    if let Some((found, place)) = closed {
        return match (&found.cause, place) {
            (_, Some(place)) => {
                Some(format!("no role may reach it, as long as {place} says so"))
            }
            (Cause::Forbidden { exposure: Exposure::Contains, .. } | Cause::Root, _) => {
                Some("mount only the directories in it that are needed".to_owned())
            }
            (Cause::Forbidden { tier: Tier::NoExposure, .. }, _) => Some(
                "nothing opens it: copy what the role needs to another place and show it from there, \
                 with `isolation.secrets`"
                    .to_owned(),
            ),
            _ => None,
        };
    }
    let path = &asked.resolved.path;
    Some(if forbidden(request, asked, MountMode::ReadWrite).is_some() {
        request.in_block(&format!("add `{path}` to `fs.read` (it can never be written)"))
    } else {
        request.in_block(&format!("add `{path}` to `fs.read` or `fs.write`"))
    })
}

fn of_the_system(
    request: &ExplainRequest<'_>,
    policy: &IsolationPolicy,
    asked: &Asked<'_>,
    place: SystemPlace,
) -> Explanation {
    let (verdict, id, words, says) = match place {
        SystemPlace::Shown => (
            Verdict::ReadOnly,
            "system.shown",
            "every sandbox shows the programs of the system and a part of `/etc`",
            "the role can read it and cannot write it",
        ),
        SystemPlace::Made => (
            Verdict::ReadOnly,
            "system.made",
            "fleet makes this file for every sandbox",
            "the role can read a text of fleet's in its place, and cannot write it: nothing of it is \
             the host's",
        ),
        SystemPlace::Own => (
            Verdict::Private,
            "system.own",
            "every sandbox has a `/proc` and a `/dev` of its own",
            "the role has one of its own there, in which it sees only itself",
        ),
        SystemPlace::Hidden => (
            Verdict::Hidden,
            "system.hidden",
            "of `/etc` a sandbox shows a short list, or all of it but the keys and passwords",
            "the role cannot see it",
        ),
    };
    let because = rule(id, words);
    let mut it = answer("path", asked.path.as_str(), verdict, DecidedBy::OuterBoundary, because);
    says.clone_into(&mut it.says);
    let etc = asked.path.self_and_ancestors().any(|above| above == "/etc");
    if etc && place != SystemPlace::Own {
        let written = request.written("isolation.system").map(|(_, place)| place);
        let default = if written.is_some() { "" } else { ", the default" };
        it.rule.words =
            format!("{}: `isolation.system: {}`{default}", it.rule.words, policy.system);
        it.place = written;
    }
    if place == SystemPlace::Shown && asked.resolved.object.is_none() {
        it.facts.push("this host has no such file".to_owned());
    }
    it
}

/// Why no role may have a path.
struct Found {
    cause: Cause,
    words: String,
}

impl Found {
    fn is_tier_a(&self) -> bool {
        matches!(self.cause, Cause::Forbidden { tier: Tier::NoExposure, .. })
    }

    fn rule(&self) -> Rule {
        let id = match &self.cause {
            Cause::Root => "forbidden.root",
            Cause::Forbidden { tier: Tier::NoExposure, .. } => "forbidden.tier-a",
            Cause::Forbidden { tier: Tier::NoWrite, .. } => "forbidden.tier-b",
            Cause::Forbidden { tier: Tier::System, .. } => "forbidden.tier-c",
            Cause::Kind { .. } => "forbidden.kind",
            Cause::Unreadable { .. } | Cause::ListIncomplete { .. } => "forbidden.unreadable",
        };
        rule(id, format!("it {}", self.words))
    }
}

/// What keeps a mount of this path out, and the line that asks for it, if one does.
fn forbidden(
    request: &ExplainRequest<'_>,
    asked: &Asked<'_>,
    mode: MountMode,
) -> Option<(Found, Option<Place>)> {
    let own = OwnDirs::default();
    let question = Question {
        side: Side::Source,
        written: asked.resolved.path.as_str(),
        resolved: &asked.resolved,
        mode,
        by_user: true,
        own: &own,
    };
    let conflict = request.forbidden.judge(&question, asked.probe).err()?;
    let text = conflict.to_string();
    let start = format!("{} `{}` ", Side::Source, asked.resolved.path);
    let words = text.strip_prefix(&start).unwrap_or(&text).to_owned();
    let place = match &conflict.cause {
        Cause::Forbidden { path, .. } => {
            let listed = request.fleet.policy.forbid_paths.iter().position(|it| it == path);
            let key = listed.map(|index| format!("policy.forbid_paths[{index}]"));
            key.and_then(|key| request.fleet.provenance.written(&key)).map(|(_, place)| place)
        }
        _ => None,
    };
    Some((Found { cause: conflict.cause, words }, place))
}
