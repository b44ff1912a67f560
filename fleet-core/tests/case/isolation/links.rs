//! Links that an agent can change: what is mounted at the next launch is never its choice (04 §8 #19).

use fleet_core::port::FileKind;
use fleet_core::test_support::scene::{Scene, path};

use super::{accepted, no, refused};

/// A repository in which an agent works, and papers that are nobody's business.
fn swapped(s: &mut Scene) {
    s.cwd = Some(path("/home/u/repo"));
    s.tree.dir("/home/u/repo");
    s.tree.dir("/home/u/Documents");
    s.tree.file("/home/u/Documents/letter", "");
    s.tree.link("/home/u/repo/sub", "/home/u/Documents");
    s.tree.link("/home/u/repo/key", "../Documents/letter");
}

#[test]
fn a_link_in_a_directory_of_the_agents_own_grants_nothing() {
    const WHY: &str = "where an agent may write";
    let at = "through the link `/home/u/repo/sub`, which lies in `/home/u/repo`";
    refused(|s| (swapped(s), no(s.read("/home/u/repo/sub"))).1, "isolation.fs.read[0]", &[at, WHY]);
    refused(|s| (swapped(s), no(s.write("/home/u/repo/sub"))).1, "isolation.fs.write[0]", &[at]);
    refused(
        |s| (swapped(s), no(s.read("/home/u/repo/sub/letter"))).1,
        "isolation.fs.read[0]",
        &["leads to `/home/u/Documents/letter`", at],
    );
    refused(
        |s| (swapped(s), no(s.secret("/home/u/repo/key", "/run/secrets/key"))).1,
        "isolation.secrets[0]",
        &["through the link `/home/u/repo/key`", WHY],
    );
    // A link elsewhere leads to the agent's.
    refused(
        |s| {
            swapped(s);
            s.tree.link("/srv/current", "/home/u/repo/sub");
            s.read("/srv/current");
        },
        "isolation.fs.read[0]",
        &[at],
    );
    // The directory has another name as well.
    refused(
        |s| {
            swapped(s);
            s.tree.dir("/srv/mirror");
            s.tree.bind("/home/u/repo", "/srv/mirror");
            s.read("/srv/mirror/sub");
        },
        "isolation.fs.read[0]",
        &["through the link `/srv/mirror/sub`", WHY],
    );
    // Dangling: the agent made the link, the operator will make the directory.
    refused(
        |s| {
            swapped(s);
            s.tree.link("/home/u/repo/later", "/home/u/Later");
            s.read("/home/u/repo/later");
        },
        "isolation.fs.read[0]",
        &["leads to `/home/u/Later`"],
    );
}

/// What another role may write is no better than what this one may.
#[test]
fn a_link_in_a_directory_of_another_agent_grants_nothing() {
    let other = |s: &mut Scene| {
        swapped(s);
        s.agent_dirs = vec![path("/home/u/repo")];
        s.cwd = Some(path("/home/u/repo/sub"));
    };
    refused(other, "cwd", &["leads to `/home/u/Documents`", "lies in `/home/u/repo`"]);
    // The control: the same link, where no agent writes.
    let policy = accepted(|s| {
        other(s);
        s.agent_dirs.clear();
    });
    assert!(policy.mounts.iter().any(|mount| mount.source == path("/home/u/Documents")));
}

#[test]
fn a_link_that_stays_inside_or_that_no_agent_can_change_is_followed() {
    let policy = accepted(|s| {
        swapped(s);
        s.tree.dir("/home/u/repo/real");
        s.tree.link("/home/u/repo/inside", "real");
        s.tree.link("/srv/papers", "/home/u/Documents");
        s.read("/home/u/repo/inside");
        s.read("/srv/papers");
    });
    let mut sources = policy.mounts.iter().map(|mount| (mount.source.as_str(), mount.kind));
    assert!(sources.any(|it| it == ("/home/u/Documents", Some(FileKind::Directory))));
    assert!(policy.mounts.iter().any(|mount| mount.source == path("/home/u/repo/real")));
    // The agent's directory by its other name: in it, and itself.
    for target in ["/srv/mirror/real", "/srv/mirror"] {
        accepted(|s| {
            swapped(s);
            s.tree.dir("/home/u/repo/real").dir("/srv/mirror");
            s.tree.bind("/home/u/repo", "/srv/mirror");
            s.tree.link("/home/u/repo/other", target);
            s.read("/home/u/repo/other");
        });
    }
}
