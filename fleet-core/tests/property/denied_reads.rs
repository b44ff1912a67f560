//! What is denied where no boundary hides it, on machines with links and bind mounts.

use fleet_core::isolation::forbidden::Tier;
use fleet_core::path::LexicalPath;
use fleet_core::plan::DeniedReads;
use fleet_core::port::PathProbe;
use fleet_core::test_support::scene::{Scene, path};
use fleet_core::test_support::strategies;
use proptest::prelude::*;

use super::{check, holds};
use crate::case::denied_reads::denied_to;

/// The function under test.
pub(crate) type Denied = fn(&Scene, &str) -> DeniedReads;

/// Own directories stay open, and no path is named twice: a program that hides one directory cannot
/// hide another inside it.
pub(crate) fn own_directories_stay_open(by: Denied) -> Result<(), String> {
    check(&(strategies::shared_scene(), strategies::asked_path()), |(scene, cwd)| {
        let denied = by(&scene, cwd.as_str());
        let trees = scene.trees();
        let own = [&trees.state, &trees.harness, &trees.handout].map(|it| path(it.as_str()));
        for dir in own.iter().chain([&cwd]) {
            let Ok(real) = scene.tree.resolve(dir) else { continue };
            for it in &denied.paths {
                prop_assert!(!real.path.is_within(&it.path), "{} is around {dir}", it.path);
            }
        }
        for (at, one) in denied.paths.iter().enumerate() {
            for other in &denied.paths[at + 1..] {
                let apart = !one.path.is_within(&other.path) && !other.path.is_within(&one.path);
                prop_assert!(apart, "{} and {}", one.path, other.path);
            }
        }
        Ok(())
    })
}

/// Whatever no role may see is denied, lies in what is all the role's own, is shared with it, or is
/// named as open.
pub(crate) fn nothing_forbidden_is_forgotten(by: Denied) -> Result<(), String> {
    check(&(strategies::shared_scene(), strategies::asked_path()), |(scene, cwd)| {
        let denied = by(&scene, cwd.as_str());
        let trees = scene.trees();
        let real = |path: &LexicalPath| scene.tree.resolve(path).map(|it| it.path);
        let own: Vec<LexicalPath> = [&trees.state, &trees.harness, &trees.handout]
            .into_iter()
            .filter_map(|it| real(&path(it.as_str())).ok())
            .collect();
        let operator = real(&path("/home/u/.claude")).ok();
        let list = scene.forbidden();
        let mut wanted: Vec<LexicalPath> = list
            .entries()
            .iter()
            .filter(|it| it.tier == Tier::NoExposure && !it.state_root)
            .map(|it| it.path.clone())
            .collect();
        let layout = scene.layout();
        wanted.push(path(layout.control_root().as_str()));
        wanted.extend(
            ["agents/B", "harness/B", "handout/B"]
                .map(|tree| path(layout.root().join(tree).as_str())),
        );
        for forbidden in wanted {
            let Ok(place) = real(&forbidden) else { continue };
            let accounted = denied.paths.iter().any(|it| place.is_within(&it.path))
                || denied.open.contains(&place)
                || own.iter().any(|dir| place.is_within(dir))
                || operator.as_ref() == Some(&place);
            prop_assert!(accounted, "{forbidden}, which is {place}: {denied:?}");
        }
        Ok(())
    })
}

#[test]
fn what_is_denied_leaves_the_own_directories_open() {
    holds(own_directories_stay_open(denied_to));
}

#[test]
fn what_no_role_may_see_is_denied() {
    holds(nothing_forbidden_is_forgotten(denied_to));
}
