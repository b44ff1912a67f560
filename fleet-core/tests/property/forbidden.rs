//! P1–P7 and P12: nothing forbidden is ever shown.

use fleet_core::isolation::forbidden::{Entry, Tier};
use fleet_core::isolation::{FsPath, IsolationPolicy, Mount, MountMode, MountOrigin};
use fleet_core::path::{LexicalPath, Relation};
use fleet_core::port::{FileIdentity, FileKind, PathProbe, PathProbeError, Resolved};
use fleet_core::test_support::fakes::MemoryTree;
use fleet_core::test_support::scene::{Scene, path};
use fleet_core::test_support::strategies;
use proptest::prelude::*;

use super::{Resolver, check, holds};

/// Own directories of the role: the only part of the state root that may be shown.
fn own(scene: &Scene) -> Vec<LexicalPath> {
    let trees = scene.trees();
    let home = trees.harness.join("command");
    [trees.state, home, trees.handout].iter().map(|tree| path(tree.as_str())).collect()
}

fn identities(tree: &MemoryTree, at: &LexicalPath) -> Vec<FileIdentity> {
    tree.reachable(at).into_iter().map(|(_, identity)| identity).collect()
}

/// By walking the tree, not by the judge's method: what a policy shows that it must not.
fn exposed(scene: &Scene, policy: &IsolationPolicy) -> Option<String> {
    let tree = &scene.tree;
    let own = own(scene);
    let own_objects: Vec<FileIdentity> = own.iter().flat_map(|dir| identities(tree, dir)).collect();
    let list = scene.forbidden();
    let entries = list.entries().iter().filter(|entry| entry.tier == Tier::NoExposure);
    for entry in entries {
        let object = tree.resolve(&entry.path).ok();
        let target = object.as_ref().map_or(&entry.path, |object| &object.path);
        let inside = identities(tree, target);
        let facts = object.as_ref().and_then(|object| object.object);
        let itself = facts.map(|it| it.identity);
        // A second name of a key somewhere in a directory is not looked for, only one that is asked
        // for by itself (01 §2.6.2, step 5): no list can hold every file of a tree.
        let aliased = facts.is_some_and(|it| it.kind == FileKind::File && it.links > 1);
        for mount in &policy.mounts {
            let say = |what: &str| Some(format!("{} {what} {}", mount.source, entry.path));
            let real = tree.resolve(&mount.source).ok();
            let place = real.as_ref().map_or(&mount.source, |real| &real.path);
            let in_own = own.iter().any(|dir| place.is_within(dir));
            let spared = (entry.state_root && in_own) || is_shared_item(scene, entry, mount);
            if place.relation(target) != Relation::Disjoint && !spared {
                return say("meets");
            }
            let shown = identities(tree, place);
            let identity = real.and_then(|real| real.object).map(|object| object.identity);
            let is_itself = itself.is_some_and(|itself| {
                if aliased { identity == Some(itself) } else { shown.contains(&itself) }
            });
            if is_itself && !spared {
                return say("shows");
            }
            let within =
                identity.is_some_and(|it| inside.contains(&it) && !own_objects.contains(&it));
            if within && !spared {
                return say("is inside");
            }
            let destination = &mount.destination;
            let own_place = entry.state_root && own.iter().any(|dir| destination.is_within(dir));
            if destination.relation(&entry.path) != Relation::Disjoint && !own_place && !spared {
                return Some(format!("destination {destination} meets {}", entry.path));
            }
        }
    }
    None
}

/// A mount of one of the items that a role of the harness may see, in the operator's home of that very
/// harness and under its own name there.
fn is_shared_item(scene: &Scene, entry: &Entry, mount: &Mount) -> bool {
    const ITEMS: &[&str] = &["CLAUDE.md", "plugins", "rules/a.rules", "rules/b.rules"];
    const LOGIN: &str = ".credentials.json";
    let home = path("/home/u/.claude");
    let below = mount.source.below(&home).filter(|_| scene.shared.home.as_ref() == Some(&home));
    let item = below.is_some_and(|below| ITEMS.contains(&below) || below == LOGIN);
    let nominal = item && mount.mode == MountMode::ReadOnly;
    let login = path("/home/u/.claude/.credentials.json");
    // The login may be kept elsewhere, where nothing else is forbidden.
    let moved =
        entry.path == login && mount.origin == MountOrigin::SharedItem { name: LOGIN.into() };
    (nominal && (entry.path == home || entry.path == login)) || moved
}

/// P1: no mount is, is inside or contains a tier A path, but for the role's own directories.
pub(crate) fn p1(resolve: Resolver) -> Result<(), String> {
    let nothing = |scene: Scene| {
        let found = resolve(&scene).ok().and_then(|policy| exposed(&scene, &policy));
        prop_assert_eq!(found, None);
        Ok(())
    };
    check(&strategies::scene(), nothing)?;
    check(&strategies::shared_scene(), nothing)
}

/// P2: `relation` is total, exclusive and mirrors.
pub(crate) fn p2(relation: fn(&LexicalPath, &LexicalPath) -> Relation) -> Result<(), String> {
    check(&(strategies::any_path(), strategies::any_path()), |(a, b)| {
        let names = |path: &LexicalPath| -> Vec<String> {
            path.as_str().split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect()
        };
        let (left, right) = (names(&a), names(&b));
        let expected = if left == right {
            Relation::Equal
        } else if left.starts_with(&right) {
            Relation::Inside
        } else if right.starts_with(&left) {
            Relation::Contains
        } else {
            Relation::Disjoint
        };
        prop_assert_eq!(relation(&a, &b), expected, "{} and {}", a, b);
        let mirrored = relation(&a, &b) == Relation::Inside;
        prop_assert_eq!(mirrored, relation(&b, &a) == Relation::Contains, "{} and {}", a, b);
        Ok(())
    })
}

/// P3: every ancestor of a forbidden path is refused, the root too.
pub(crate) fn p3(resolve: Resolver) -> Result<(), String> {
    let entries: Vec<LexicalPath> = Scene::new()
        .forbidden()
        .entries()
        .iter()
        .filter(|entry| entry.tier == Tier::NoExposure)
        .map(|entry| entry.path.clone())
        .collect();
    check(&(prop::sample::select(entries), any::<prop::sample::Index>(), any::<bool>()), |input| {
        let (entry, height, write) = input;
        let above: Vec<&str> = entry.self_and_ancestors().collect();
        let asked = *height.get(&above);
        let mut scene = Scene::new();
        if write {
            scene.write(asked)
        } else {
            scene.read(asked)
        };
        prop_assert!(resolve(&scene).is_err(), "{} was granted, around {}", asked, entry);
        Ok(())
    })
}

pub(crate) type Canonical = fn(&MemoryTree, &LexicalPath) -> Result<Resolved, PathProbeError>;

/// P4: resolving is idempotent and gives a plain absolute path.
pub(crate) fn p4(canonical: Canonical) -> Result<(), String> {
    check(&(strategies::scene(), strategies::asked_path()), |(scene, asked)| {
        if let Ok(once) = canonical(&scene.tree, &asked) {
            let text = once.path.as_str();
            prop_assert_eq!(LexicalPath::absolute(text), Ok(once.path.clone()));
            let twice = canonical(&scene.tree, &once.path);
            let same = Resolved { links: Vec::new(), ..once.clone() };
            prop_assert_eq!(twice.as_ref(), Ok(&same), "{} gave {}", asked, text);
            let real = scene.tree.resolve(&once.path).map(|real| real.path);
            prop_assert_eq!(real.as_ref(), Ok(&once.path), "a link is left in the answer");
        }
        Ok(())
    })
}

/// P5: a link to a path gets the verdict of the path.
pub(crate) fn p5(resolve: Resolver) -> Result<(), String> {
    let wish = (strategies::asked_path(), any::<bool>(), 0..4_usize);
    check(&(prop::collection::vec(strategies::change(), 0..4), wish), |(changes, wish)| {
        let (asked, write, hops) = wish;
        let mut scene = Scene::new();
        for change in &changes {
            change.apply(&mut scene);
        }
        let mut target = asked.to_string();
        for hop in 0..hops {
            scene.tree.link(&format!("/opt/alias{hop}"), &target);
            target = format!("/opt/alias{hop}");
        }
        let verdict = |wanted: &str| {
            let mut scene = scene.clone();
            if write {
                scene.write(wanted)
            } else {
                scene.read(wanted)
            };
            let shown = |policy: IsolationPolicy| {
                policy.mounts.iter().map(|mount| mount.source.clone()).collect::<Vec<_>>()
            };
            resolve(&scene).map(shown).map_err(|_| ())
        };
        // `/opt` is bound elsewhere by some changes; that is no alias of the path itself.
        prop_assert_eq!(verdict(asked.as_str()), verdict(&target), "{} by {}", asked, target);
        Ok(())
    })
}

/// P6: more forbidden paths, or more mounts, never turn a refusal into a grant.
pub(crate) fn p6(resolve: Resolver) -> Result<(), String> {
    let more = (strategies::asked_path(), strategies::asked_path(), any::<bool>());
    check(&(strategies::scene(), more), |(scene, (forbid, wish, front))| {
        if resolve(&scene).is_ok() {
            return Ok(());
        }
        let mut stricter = scene.clone();
        stricter.forbid_paths.push(forbid.clone());
        prop_assert!(resolve(&stricter).is_err(), "forbidding {} granted", forbid);
        let mut greedier = scene.clone();
        let at = if front { 0 } else { greedier.block.fs_read.len() };
        greedier.block.fs_read.insert(at, FsPath { written: wish.to_string(), path: wish.clone() });
        prop_assert!(resolve(&greedier).is_err(), "asking for {} as well granted", wish);
        Ok(())
    })
}

/// P7: the verdict is the same each time and for every order of the lists, and so is what is shown.
pub(crate) fn p7(resolve: Resolver) -> Result<(), String> {
    check(&strategies::scene(), |scene| {
        let shown = |scene: &Scene| {
            resolve(scene).map_err(|problems| problems.len()).map(|policy| {
                let mut mounts: Vec<_> = policy
                    .mounts
                    .into_iter()
                    .map(|mount| (mount.destination, mount.source, mount.mode.as_str()))
                    .collect();
                mounts.sort();
                mounts
            })
        };
        let first = shown(&scene);
        prop_assert_eq!(&first, &shown(&scene));
        let mut turned = scene.clone();
        turned.block.fs_read.reverse();
        turned.block.fs_write.reverse();
        turned.block.secrets.reverse();
        prop_assert_eq!(&first, &shown(&turned), "reversed");
        Ok(())
    })
}

/// Whatever an agent puts in place of a directory of its own, the next launch shows nothing that the
/// last one did not show.
pub(crate) fn agents_gain_nothing_by_links(resolve: Resolver) -> Result<(), String> {
    const DEPTH: usize = 3;
    let agent = (0..DEPTH, strategies::asked_path(), any::<bool>(), any::<bool>());
    check(&(strategies::scene(), agent), |(mut scene, (swapped, target, write, other))| {
        let mut place = path("/home/u/src");
        let mut places = Vec::new();
        for name in ["a", "b", "c"] {
            place = place.child(name).expect("a name");
            places.push(place.clone());
        }
        scene.tree.dir(place.as_str());
        if write {
            scene.write(place.as_str());
        } else {
            scene.read(place.as_str());
        }
        // The directory around it is another agent's, or this one's.
        if other {
            scene.agent_dirs.push(path("/home/u/src"));
        } else {
            scene.cwd("/home/u/src");
            scene.cwd_mode = MountMode::ReadWrite;
        }
        let Ok(before) = resolve(&scene) else { return Ok(()) };
        scene.tree.remove(places[swapped].as_str());
        scene.tree.link(places[swapped].as_str(), target.as_str());
        let Ok(after) = resolve(&scene) else { return Ok(()) };
        for mount in &after.mounts {
            let covers = |it: &Mount| {
                mount.source.is_within(&it.source)
                    && (mount.mode == MountMode::ReadOnly || it.mode == MountMode::ReadWrite)
            };
            prop_assert!(before.mounts.iter().any(covers), "{} is shown as well", mount.source);
        }
        Ok(())
    })
}

/// P12: nothing of a sibling is reachable, in any tree.
pub(crate) fn p12(resolve: Resolver) -> Result<(), String> {
    check(&strategies::scene(), |scene| {
        let Ok(policy) = resolve(&scene) else { return Ok(()) };
        let mut others = Vec::new();
        for tree in [
            "agents/B",
            "harness/B",
            "handout/B",
            "control",
            "agents/.tmp",
            "harness/.tmp",
            "handout/.tmp",
        ] {
            let at = path(&format!("/home/u/.ours-fleet/{tree}"));
            others.extend(identities(&scene.tree, &at));
        }
        for mount in &policy.mounts {
            let shown = identities(&scene.tree, &mount.source);
            let leak = shown.iter().find(|identity| others.contains(identity));
            prop_assert_eq!(leak, None, "{} shows a sibling", mount.source);
        }
        Ok(())
    })
}

pub(crate) fn resolve(scene: &Scene) -> super::Verdict {
    scene.resolve()
}

#[test]
fn p1_no_tier_a_path_is_shown() {
    holds(p1(resolve));
}

#[test]
fn p2_relations_are_total_and_exclusive() {
    holds(p2(LexicalPath::relation));
}

#[test]
fn p3_ancestors_of_forbidden_paths_are_refused() {
    holds(p3(resolve));
}

#[test]
fn p4_resolving_is_idempotent() {
    holds(p4(PathProbe::resolve));
}

#[test]
fn p5_links_do_not_change_the_verdict() {
    holds(p5(resolve));
}

#[test]
fn p6_the_verdict_is_monotone() {
    holds(p6(resolve));
}

#[test]
fn agents_gain_nothing_by_links_that_they_make() {
    holds(agents_gain_nothing_by_links(resolve));
}

#[test]
fn p7_order_does_not_matter() {
    holds(p7(resolve));
}

#[test]
fn p12_siblings_are_out_of_reach() {
    holds(p12(resolve));
}
