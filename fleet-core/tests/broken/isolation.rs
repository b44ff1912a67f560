//! Wrong implementations, each with one classic mistake: the property must find a counter-example.
//! A property that is content with one of these proves nothing.

use fleet_core::isolation::{Mount, MountMode, MountOrigin};
use fleet_core::path::{LexicalPath, Relation};
use fleet_core::port::{FileFacts, FileIdentity, PathProbe, PathProbeError, Resolved};
use fleet_core::test_support::fakes::MemoryTree;
use fleet_core::test_support::scene::Scene;

use crate::property::forbidden::{agents_gain_nothing_by_links, p1, p2, p3, p4, p5, p6, p7, p12};
use crate::property::resolve::{p8, p9, p10, p11};
use crate::property::{Resolver, Verdict};

/// A property that must fail.
#[track_caller]
fn caught(result: Result<(), String>) {
    result.expect_err("the property does not see the mistake");
}

/// What a probe is blind to.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Unseen {
    /// Links are not followed at all.
    Links,
    /// A link to nothing is taken for a plain missing file.
    Dangling,
    /// Every path is its own object.
    Identity,
    /// Mount points inside a directory are not looked for.
    Submounts,
    /// Links are followed and forgotten.
    WhatWasFollowed,
}

#[derive(Debug)]
struct Wrong(MemoryTree, Unseen);

impl PathProbe for Wrong {
    fn resolve(&self, path: &LexicalPath) -> Result<Resolved, PathProbeError> {
        let mut seen = self.0.resolve(path)?;
        let by_path = |text: &str| FileIdentity {
            dev: 99,
            ino: text.bytes().fold(7, |sum: u64, byte| sum.wrapping_mul(31) + u64::from(byte)),
        };
        match self.1 {
            Unseen::Links => seen.path = path.clone(),
            Unseen::Dangling if seen.object.is_none() => seen.path = path.clone(),
            Unseen::Identity => {
                let text = seen.path.to_string();
                let object = |facts: FileFacts| FileFacts { identity: by_path(&text), ..facts };
                seen.object = seen.object.map(object);
                let above = seen.path.self_and_ancestors().skip(1);
                seen.ancestors = above.map(by_path).collect();
            }
            Unseen::WhatWasFollowed => seen.links.clear(),
            Unseen::Dangling | Unseen::Submounts => {}
        }
        if matches!(self.1, Unseen::Links | Unseen::Dangling) && seen.path == *path {
            // By identity alone a link would still be seen through.
            seen.ancestors.clear();
            seen.object = None;
        }
        Ok(seen)
    }

    fn mounts_below(
        &self,
        directory: &LexicalPath,
    ) -> Result<Vec<(LexicalPath, FileIdentity)>, PathProbeError> {
        if self.1 == Unseen::Submounts { Ok(Vec::new()) } else { self.0.mounts_below(directory) }
    }

    fn head(&self, file: &LexicalPath, limit: usize) -> Result<Vec<u8>, PathProbeError> {
        self.0.head(file, limit)
    }

    fn content(
        &self,
        file: &LexicalPath,
        identity: FileIdentity,
        limit: usize,
    ) -> Result<Vec<u8>, PathProbeError> {
        self.0.content(file, identity, limit)
    }

    fn entries(
        &self,
        directory: &LexicalPath,
        limit: usize,
    ) -> Result<Vec<String>, PathProbeError> {
        self.0.entries(directory, limit)
    }

    fn ignores_case(&self, path: &LexicalPath) -> bool {
        self.0.ignores_case(path)
    }
}

fn looking_through(scene: &Scene, unseen: Unseen) -> Verdict {
    scene.resolve_by(&Wrong(scene.tree.clone(), unseen))
}

/// Adds what is asked for without the judge, where `asked` says yes.
fn unjudged(scene: &Scene, asked: fn(&str) -> bool) -> Verdict {
    let mut fair = scene.clone();
    fair.block.fs_read.retain(|entry| !asked(entry.path.as_str()));
    fair.block.fs_write.retain(|entry| !asked(entry.path.as_str()));
    let mut policy = fair.resolve()?;
    let lists = [
        (&scene.block.fs_read, MountMode::ReadOnly),
        (&scene.block.fs_write, MountMode::ReadWrite),
    ];
    for (list, mode) in lists {
        for entry in list.iter().filter(|entry| asked(entry.path.as_str())) {
            policy.mounts.push(Mount {
                source: entry.path.clone(),
                identity: None,
                kind: None,
                destination: entry.path.clone(),
                mode,
                origin: MountOrigin::FsWrite { index: 0 },
            });
        }
    }
    policy.mounts.sort_by_key(|mount| mount.destination.depth());
    Ok(policy)
}

#[test]
fn p1_links_not_followed() {
    caught(p1(|scene| looking_through(scene, Unseen::Links)));
}

#[test]
fn p1_dangling_links_not_followed() {
    caught(p1(|scene| looking_through(scene, Unseen::Dangling)));
}

#[test]
fn p1_no_identity_chain() {
    caught(p1(|scene| looking_through(scene, Unseen::Identity)));
}

#[test]
fn p1_mount_points_inside_not_looked_for() {
    caught(p1(|scene| looking_through(scene, Unseen::Submounts)));
}

#[test]
fn a_link_that_an_agent_made_is_followed() {
    caught(agents_gain_nothing_by_links(|scene| looking_through(scene, Unseen::WhatWasFollowed)));
}

#[test]
fn p2_text_is_compared_instead_of_components() {
    caught(p2(|a, b| {
        if a == b {
            Relation::Equal
        } else if a.as_str().starts_with(b.as_str()) {
            Relation::Inside
        } else if b.as_str().starts_with(a.as_str()) {
            Relation::Contains
        } else {
            Relation::Disjoint
        }
    }));
}

#[test]
fn p2_the_root_contains_nothing() {
    caught(p2(|a, b| {
        let contains = |outer: &LexicalPath, inner: &LexicalPath| {
            inner.as_str().starts_with(&format!("{outer}/"))
        };
        match (a == b, contains(b, a), contains(a, b)) {
            (true, ..) => Relation::Equal,
            (_, true, _) => Relation::Inside,
            (.., true) => Relation::Contains,
            _ => Relation::Disjoint,
        }
    }));
}

#[test]
fn p3_no_root_gate() {
    // The predecessor's parent test: "/" + "/" is the beginning of nothing.
    caught(p3(|scene| unjudged(scene, |asked| asked == "/")));
}

#[test]
fn p3_ancestors_are_not_compared() {
    caught(p3(|scene| unjudged(scene, |asked| asked == "/home/u/.config")));
}

#[test]
fn p4_the_last_component_is_not_followed() {
    caught(p4(|tree, asked| {
        let parent = asked.parent().unwrap_or_else(LexicalPath::root);
        let above = tree.resolve(&parent)?;
        let name = asked.file_name().and_then(|name| above.path.child(name).ok());
        let path = name.unwrap_or(above.path);
        Ok(Resolved::nothing_at(path))
    }));
}

#[test]
fn p5_links_not_followed() {
    caught(p5(|scene| looking_through(scene, Unseen::Links)));
}

#[test]
fn p5_dangling_links_not_followed() {
    caught(p5(|scene| looking_through(scene, Unseen::Dangling)));
}

#[test]
fn p6_only_the_last_entry_is_judged() {
    caught(p6(|scene| {
        let mut last = scene.clone();
        let skipped = last.block.fs_read.len().saturating_sub(1);
        last.block.fs_read.drain(..skipped);
        last.resolve()
    }));
}

#[test]
fn p6_a_new_forbidden_path_replaces_the_list() {
    caught(p6(|scene| {
        if scene.forbid_paths.is_empty() { scene.resolve() } else { Scene::new().resolve() }
    }));
}

#[test]
fn p7_only_the_first_entry_is_judged() {
    caught(p7(|scene| {
        let mut first = scene.clone();
        first.block.fs_read.truncate(1);
        first.resolve()
    }));
}

#[test]
fn p8_p9_emission_in_the_order_of_origins() {
    fn unsorted(scene: &Scene) -> Verdict {
        let mut policy = scene.resolve()?;
        policy.mounts.sort_by_key(|mount| mount.origin.clone());
        Ok(policy)
    }
    caught(p8(unsorted));
    caught(p9(unsorted));
    caught(p10(unsorted));
}

#[test]
fn p8_p9_deepest_first() {
    fn reversed(scene: &Scene) -> Verdict {
        let mut policy = scene.resolve()?;
        policy.mounts.reverse();
        Ok(policy)
    }
    caught(p8(reversed));
    caught(p9(reversed));
}

#[test]
fn p10_a_read_only_wish_for_state_wins() {
    let state: Resolver = |scene| unjudged(scene, |asked| asked == "/home/u/.ours-fleet/agents/A");
    caught(p10(state));
}

#[test]
fn p11_the_handout_is_no_protected_destination() {
    let resolver: Resolver =
        |scene| unjudged(scene, |asked| asked.starts_with("/home/u/.ours-fleet/handout/A"));
    caught(p11(resolver));
}

#[test]
fn p11_a_shared_item_is_no_protected_destination() {
    caught(p11(|scene| {
        let mut policy = scene.resolve()?;
        let item = |mount: &Mount| matches!(mount.origin, MountOrigin::SharedItem { .. });
        if let Some(shared) = policy.mounts.iter().find(|mount| item(mount)).cloned() {
            let origin = MountOrigin::FsWrite { index: 0 };
            let mode = MountMode::ReadWrite;
            policy.mounts.push(Mount { mode, origin, ..shared });
        }
        Ok(policy)
    }));
}

#[test]
fn p1_every_entry_of_the_operators_home_is_taken_for_a_shared_item() {
    caught(p1(|scene| {
        let mut policy = scene.resolve()?;
        if scene.shared.home.is_some() {
            let source = LexicalPath::absolute("/home/u/.claude/projects").expect("plain");
            let origin = MountOrigin::SharedItem { name: "projects".to_owned() };
            policy.mounts.push(Mount {
                identity: None,
                kind: None,
                destination: source.clone(),
                source,
                mode: MountMode::ReadOnly,
                origin,
            });
        }
        Ok(policy)
    }));
}

#[test]
fn p12_only_permanent_state_is_forbidden() {
    // The predecessor forbade the folder of the state folders, and no other tree.
    caught(p12(|scene| {
        unjudged(scene, |asked| {
            asked.starts_with("/home/u/.ours-fleet/control/")
                || asked.starts_with("/home/u/.ours-fleet/harness/B")
        })
    }));
}

#[test]
fn p12_a_prefix_of_text_is_taken_for_the_own_directory() {
    caught(p12(|scene| unjudged(scene, |asked| asked.starts_with("/home/u/.ours-fleet/agents"))));
}
