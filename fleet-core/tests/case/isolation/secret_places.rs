//! Where a secret may appear (01 §2.4).

use super::*;

const NOTES: &str = "/home/u/notes.txt";
const KEY: &str = "isolation.secrets[0]";

#[test]
fn never_over_another_mount_or_the_memory_of_the_sandbox() {
    refused(|s| no(s.read("/opt/tools").secret(NOTES, "/opt")), KEY, &["would cover `/opt/tools`"]);
    refused(|s| no(s.secret(NOTES, "/var")), KEY, &["would cover `/var/tmp`"]);
    // A neighbour with a longer name is not inside.
    refused(
        |s| {
            s.tree.dir("/opt2/x");
            s.read("/opt2/x").secret(NOTES, "/opt");
        },
        KEY,
        &["destination `/opt` is not a place for a secret"],
    );
}

#[test]
fn in_memory_only_below_the_two_open_places() {
    accepted(|s| no(s.secret(NOTES, "/run/secrets/a/b").secret(NOTES, "/tmp/a/b")));
    for to in ["/var/tmp/n", "/home/u/n", "/home/u/.cache/n", "/opt/n"] {
        refused(
            |s| no(s.secret(NOTES, to)),
            KEY,
            &[&format!("`{to}` is not a place for a secret")],
        );
    }
    for (to, protected) in [("/usr", "/usr"), ("/lib64/x", "/lib64"), ("/etc/x", "/etc")] {
        let words = format!("is, or is inside, the protected path `{protected}`");
        refused(|s| no(s.secret(NOTES, to)), KEY, &[&words]);
    }
}

#[test]
fn a_place_is_named_that_would_do() {
    let problem = refusal(|s| no(s.secret(NOTES, "/opt/n")));
    assert_eq!(problem.hint.as_deref(), Some("put it at /run/secrets/notes.txt"));
}

#[test]
fn never_in_what_the_role_may_write() {
    refused(
        |s| no(s.write("/opt/tools").secret(NOTES, "/opt/tools/n")),
        KEY,
        &["lies in `/opt/tools`, which is writable (`isolation.fs.write[0]`)"],
    );
    // The deepest mount decides, in both directions.
    refused(
        |s| {
            s.tree.file("/opt/tools/w/n", "old");
            s.read("/opt/tools").write("/opt/tools/w").secret(NOTES, "/opt/tools/w/n");
        },
        KEY,
        &["lies in `/opt/tools/w`, which is writable"],
    );
    accepted(|s| {
        s.tree.file("/opt/tools/r/n", "old");
        s.write("/opt/tools").read("/opt/tools/r").secret(NOTES, "/opt/tools/r/n");
    });
}

#[test]
fn in_a_read_only_mount_only_over_what_is_there_and_alike() {
    let base = |s: &mut Scene| {
        s.tree.file("/opt/tools/file", "old").dir("/opt/tools/dir").link("/opt/tools/link", "file");
        s.read("/opt/tools");
    };
    let to = |s: &mut Scene, from: &str, to: &str| {
        base(s);
        s.secret(from, to).block.secrets[0].map_form = true;
    };
    accepted(|s| to(s, NOTES, "/opt/tools/file"));
    accepted(|s| to(s, "/home/u/lib", "/opt/tools/dir"));
    // A source that comes later may be either.
    accepted(|s| to(s, "/home/u/absent", "/opt/tools/dir"));
    for (from, place) in [
        (NOTES, "/opt/tools/dir"),
        ("/home/u/lib", "/opt/tools/file"),
        (NOTES, "/opt/tools/absent"),
        (NOTES, "/opt/tools/link"),
    ] {
        refused(
            |s| to(s, from, place),
            KEY,
            &["lies in the read-only `/opt/tools`", "no such mount point exists"],
        );
    }
}

/// What fleet itself hands to the agent is made anew for each launch, so nothing is put in there.
#[test]
fn never_in_the_handout_or_a_shared_item() {
    let handout = "/home/u/.ours-fleet/handout/A/n";
    let problems = scene(|s| {
        s.tree.file(handout, "old");
        s.secret(NOTES, handout);
    })
    .resolve()
    .expect_err("the handout");
    assert!(problems.iter().all(|problem| problem.path == KEY));
    refused(
        |s| {
            s.operator_home().tree.remove("/home/u/.claude/plugins");
            s.tree.file("/data/p/x", "old").link("/home/u/.claude/plugins", "/data/p");
            s.share().secret(NOTES, "/data/p/x");
        },
        KEY,
        &["lies in the read-only `/data/p` (the shared item `plugins`)"],
    );
}

#[test]
fn the_same_place_as_another_mount_is_one_conflict() {
    refused(
        |s| {
            s.tree.file("/opt/t", "t");
            s.read("/opt/t").secret(NOTES, "/opt/t");
        },
        KEY,
        &["`/opt/t` is mounted twice"],
    );
    let policy = accepted(|s| {
        s.tree.file("/opt/t", "t");
        s.read("/opt/t").secret("/opt/t", "/opt/t");
    });
    assert_eq!(policy.mounts.iter().filter(|it| it.source == path("/opt/t")).count(), 1);
}

/// A secret is judged against the other mounts only: their number and order change nothing.
#[test]
fn the_same_secret_twice_over_a_file_is_kept_once() {
    let policy = accepted(|s| {
        s.tree.file("/opt/tools/cfg", "old");
        s.read("/opt/tools");
        for _ in 0..3 {
            s.secret(NOTES, "/opt/tools/cfg");
        }
    });
    assert_eq!(policy.mounts.iter().filter(|it| it.source == path(NOTES)).count(), 1);
}

#[test]
fn a_source_that_is_refused_says_so_once() {
    refused(|s| no(s.secret("/home/u/.ssh/id_ed25519", "/opt/n")), KEY, &["source `/home/u/.ssh/"]);
    refused(|s| no(s.secret(NOTES, "/home/u/.aws/x")), KEY, &["destination `/home/u/.aws/x`"]);
}

#[test]
fn who_may_write_the_source_decides() {
    for (mode, fits) in [(0o600, true), (0o664, true), (0o602, false), (0o666, false)] {
        let result = scene(|s| {
            s.tree.file_mode("/home/u/s", "x", mode);
            s.secret("/home/u/s", "/run/secrets/s");
        })
        .resolve();
        assert_eq!(result.is_ok(), fits, "{mode:o}");
    }
    // A directory is only meant where the long form is written; a file always is.
    accepted(|s| s.secret(NOTES, "/run/secrets/n").block.secrets[0].map_form = true);
    let problem = refusal(|s| {
        s.tree.file_mode("/home/u/s", "x", 0o666);
        s.secret("/home/u/s", "/run/secrets/s").block.secrets[0].map_form = true;
    });
    assert!(problem.message.contains("`/home/u/s` can be written by everybody"), "{problem}");
}

#[test]
fn only_a_writable_mount_around_the_source_is_a_risk() {
    let risk = |change: fn(&mut Scene)| {
        let policy = accepted(|s| {
            s.tree.file_mode("/opt/tools/token", "x", 0o600).dir("/opt/other");
            change(s);
            s.secret("/opt/tools/token", "/run/secrets/t");
        });
        policy.residual_risks.iter().any(|risk| risk.contains("/opt/tools/token"))
    };
    assert!(risk(|s| no(s.write("/opt/tools"))));
    assert!(!risk(|s| no(s.read("/opt/tools"))));
    assert!(!risk(|s| no(s.write("/opt/other"))));
    assert!(!risk(|_| ()));
}

/// What is wrong with one secret does not depend on another.
#[test]
fn a_directory_over_a_file_is_refused_beside_a_file_as_well() {
    refused(
        |s| {
            s.tree.file("/opt/tools/cfg", "old");
            s.read("/opt/tools");
            s.secret(NOTES, "/opt/tools/cfg").secret("/home/u/lib", "/opt/tools/cfg");
            s.block.secrets[1].map_form = true;
        },
        "isolation.secrets[1]",
        &["no such mount point exists"],
    );
}
