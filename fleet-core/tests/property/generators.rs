//! What the generators reach. A property proves nothing of a case that its generator never makes, so a
//! generator that stops making one fails here.

use std::cell::RefCell;

use fleet_core::path::LexicalPath;
use fleet_core::port::{FileKind, PathProbe as _, PathProbeError};
use fleet_core::test_support::scene::{Scene, path};
use fleet_core::test_support::strategies;
use proptest::prelude::*;

use super::briefing::{Words, words};
use super::{check, fleets, holds};

/// A case, how often it comes in a thousand at least, and how it is recognised.
type Hard<T> = (&'static str, u32, fn(&T) -> bool);

fn reaches<S: Strategy>(strategy: &S, cases: &[Hard<S::Value>])
where
    S::Value: std::fmt::Debug,
{
    let counts = RefCell::new(vec![0_u32; cases.len() + 1]);
    holds(check(strategy, |value| {
        let mut counts = counts.borrow_mut();
        for (count, (_, _, is_it)) in counts.iter_mut().zip(cases) {
            *count += u32::from(is_it(&value));
        }
        counts[cases.len()] += 1;
        Ok(())
    }));
    let counts = counts.into_inner();
    let all = counts[cases.len()];
    let seldom: Vec<String> = cases
        .iter()
        .zip(&counts)
        .filter(|((_, least, _), count)| u64::from(**count) * 1000 < u64::from(*least * all))
        .map(|((name, least, _), count)| format!("{name}: {count} of {all}, needs {least} ‰"))
        .collect();
    assert!(seldom.is_empty(), "too seldom:\n{}", seldom.join("\n"));
}

/// Everything that a role asks to be shown.
fn wishes(scene: &Scene) -> Vec<LexicalPath> {
    let block = &scene.block;
    let listed = block.fs_read.iter().chain(&block.fs_write).map(|entry| &entry.path);
    let secrets = block.secrets.iter().map(|entry| &entry.from);
    scene.cwd.iter().chain(listed).chain(secrets).cloned().collect()
}

fn any_wish(scene: &Scene, is_it: impl Fn(&LexicalPath) -> bool) -> bool {
    wishes(scene).iter().any(is_it)
}

/// Whether a wish leads, through a link, to this directory or below.
fn leads_to(scene: &Scene, target: &str, exists: bool) -> bool {
    any_wish(scene, |wish| {
        scene.tree.resolve(wish).is_ok_and(|real| {
            real.path != *wish
                && real.path.is_within(&path(target))
                && real.object.is_some() == exists
        })
    })
}

/// Whether some link leads to another link: without the second the first leads elsewhere.
fn has_chain(scene: &Scene) -> bool {
    ["/data", "/home/u/work"].into_iter().any(|dir| {
        // Only where the directory is one, and no alias.
        let real = scene.tree.resolve(&path(dir));
        if !real.is_ok_and(|real| real.path == path(dir)) {
            return false;
        }
        [("l0", "l1"), ("l1", "l0"), ("l", "l1"), ("l0", "l01")].into_iter().any(
            |(first, second)| {
                let at = path(&format!("{dir}/{first}"));
                let mut without = scene.tree.clone();
                without.remove(&format!("{dir}/{second}"));
                let (real, other) = (scene.tree.resolve(&at), without.resolve(&at));
                real != other && real.is_ok_and(|real| real.path != at)
            },
        )
    })
}

fn has_kind(scene: &Scene, kinds: &[FileKind]) -> bool {
    any_wish(scene, |wish| {
        let object = scene.tree.resolve(wish).ok().and_then(|real| real.object);
        object.is_some_and(|object| kinds.contains(&object.kind))
    })
}

/// User mounts of a granted policy, one inside the other, with different modes.
fn nests(scene: &Scene) -> bool {
    let Ok(policy) = scene.resolve() else { return false };
    let user: Vec<_> = policy.mounts.iter().filter(|mount| mount.origin.is_by_user()).collect();
    user.iter().any(|outer| {
        user.iter().any(|inner| {
            inner.destination != outer.destination
                && inner.destination.is_within(&outer.destination)
                && inner.mode != outer.mode
        })
    })
}

#[test]
fn scenes_hold_every_hard_case() {
    reaches(
        &strategies::scene(),
        &[
            ("granted", 100, |s| s.resolve().is_ok()),
            ("refused", 100, |s| s.resolve().is_err()),
            ("granted with two wishes", 50, |s| {
                s.resolve().is_ok_and(|policy| {
                    policy.mounts.iter().filter(|mount| mount.origin.is_by_user()).count() >= 2
                })
            }),
            ("nested mounts of different modes, granted", 5, nests),
            ("the root directory", 30, |s| any_wish(s, |wish| wish.as_str() == "/")),
            ("a loop of links", 5, |s| {
                any_wish(s, |wish| matches!(s.tree.resolve(wish), Err(PathProbeError::Loop { .. })))
            }),
            ("a link to a link", 50, has_chain),
            ("a link to a directory of keys", 5, |s| leads_to(s, "/home/u/.ssh", true)),
            ("a link to keys to come", 5, |s| leads_to(s, "/home/u/.aws", false)),
            ("a link to a sibling", 5, |s| leads_to(s, "/home/u/.ours-fleet/agents/B", true)),
            ("a mount point in a wish", 50, |s| {
                any_wish(s, |wish| s.tree.mounts_below(wish).is_ok_and(|inside| !inside.is_empty()))
            }),
            ("a wish that is a mount point or below one", 50, |s| {
                any_wish(s, |wish| {
                    s.tree
                        .mounts_below(&LexicalPath::root())
                        .is_ok_and(|points| points.iter().any(|(point, _)| wish.is_within(point)))
                })
            }),
            ("another spelling where case does not count", 10, |s| {
                any_wish(s, |wish| {
                    s.tree.ignores_case(wish) && wish.as_str().contains(['W', 'S', 'H'])
                })
            }),
            ("a second name of a key", 2, |s| {
                any_wish(s, |wish| {
                    let object = s.tree.resolve(wish).ok().and_then(|real| real.object);
                    object.is_some_and(|it| it.kind == FileKind::File && it.links > 1)
                        && !wish.is_within(&path("/home/u/.ssh"))
                })
            }),
            ("a socket, FIFO or device", 5, |s| {
                has_kind(s, &[FileKind::Socket, FileKind::Fifo, FileKind::Device])
            }),
            ("a temporary sibling", 10, |s| {
                any_wish(s, |wish| wish.as_str().contains("/.ours-fleet/agents/.tmp"))
            }),
            ("a sibling in another tree", 30, |s| {
                any_wish(s, |wish| {
                    ["harness/B", "control/B"].iter().any(|end| wish.as_str().contains(end))
                })
            }),
        ],
    );
}

#[test]
fn scenes_with_shared_items_link_them_into_forbidden_places() {
    reaches(
        &strategies::shared_scene(),
        &[
            ("granted", 50, |s| s.resolve().is_ok()),
            ("an item that is a key", 10, |s| item_leads(s, "/home/u/.ssh")),
            ("an item that is another login", 10, |s| item_leads(s, "/home/u/.codex")),
            ("an item that is a conversation", 10, |s| item_leads(s, "/home/u/.claude/projects")),
            ("an item of a sibling", 5, |s| item_leads(s, "/home/u/.ours-fleet/agents/B")),
            ("an item where the role may write", 5, |s| item_leads(s, "/home/u/work")),
        ],
    );
}

fn item_leads(scene: &Scene, target: &str) -> bool {
    ["CLAUDE.md", "plugins", "rules", ".credentials.json"].iter().any(|name| {
        let at = path(&format!("/home/u/.claude/{name}"));
        scene.tree.resolve(&at).is_ok_and(|real| real.path.is_within(&path(target)))
    })
}

#[test]
fn texts_hold_everything_that_could_pass_for_something_else() {
    const fn any_text(words: &Words) -> &String {
        &words.persona
    }
    reaches(
        &words(),
        &[
            ("a heading", 50, |w| any_text(w).contains("\n# House rules")),
            ("a heading underlined", 20, |w| any_text(w).contains("===")),
            ("a marker", 50, |w| any_text(w).contains("[fleet-")),
            ("a fence", 50, |w| any_text(w).contains("```")),
            ("a comment", 20, |w| any_text(w).contains("<!--")),
            ("a line end of Unicode", 50, |w| any_text(w).contains(['\u{2028}', '\u{2029}'])),
            ("a next line", 30, |w| any_text(w).contains('\u{85}')),
            ("a carriage return", 50, |w| any_text(w).contains('\r')),
            ("a form feed", 30, |w| any_text(w).contains('\u{c}')),
            ("an escape sequence", 30, |w| any_text(w).contains('\u{1b}')),
            ("a change of direction", 30, |w| any_text(w).contains('\u{202e}')),
            ("no width", 30, |w| any_text(w).contains('\u{200b}')),
            ("hidden ASCII", 30, |w| any_text(w).contains('\u{e0023}')),
            ("a hostile path", 100, |w| w.cwd.contains(['`', '\u{2028}', '#', '\u{202e}'])),
            ("a curated text", 200, |w| w.curated.is_some()),
        ],
    );
}

#[test]
fn fleet_files_hold_blocks_of_every_kind() {
    fn some_role(file: &serde_json::Value, pointer: &str) -> bool {
        let roles = file["roles"].as_object().into_iter().flatten();
        roles.filter(|(name, _)| *name != "Full").any(|(_, role)| role.pointer(pointer).is_some())
    }
    reaches(
        &fleets::base_file(),
        &[
            ("isolation", 200, |f| some_role(f, "/isolation")),
            ("paths to write", 50, |f| some_role(f, "/isolation/fs/write/0")),
            ("secrets", 50, |f| some_role(f, "/isolation/secrets/0")),
            ("isolation by default", 100, |f| f.pointer("/defaults/isolation").is_some()),
            ("permissions", 200, |f| some_role(f, "/permissions")),
            ("environment", 200, |f| some_role(f, "/env")),
            ("options", 100, |f| some_role(f, "/harness_options")),
            ("options by default", 100, |f| f.pointer("/defaults/harness_options").is_some()),
        ],
    );
}
