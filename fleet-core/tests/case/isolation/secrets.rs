//! `isolation.secrets` (01 §2.4).

use super::*;

#[test]
fn go_below_run_secrets_or_tmp() {
    let policy = accepted(|s| {
        s.secret("/home/u/notes.txt", "/run/secrets/n").secret("/home/u/notes.txt", "/tmp/n");
    });
    let count = policy.mounts.iter().filter(|m| m.mode == MountMode::ReadOnly).count();
    assert_eq!(count, 3, "two secrets and the handout");
    for (to, word) in [
        ("/home/u/n", "not a place for a secret"),
        ("/run/n", "protected path `/run`"),
        ("/run/secrets", "protected path `/run`"),
        ("/tmp", "not a place for a secret"),
        ("/etc/passwd", "protected path `/etc`"),
        ("/home", "would cover"),
        ("/", "root directory"),
    ] {
        let problem = refusal(|s| no(s.secret("/home/u/notes.txt", to)));
        let named = problem.message.contains(word) || problem.message.contains("would expose");
        assert!(named, "{to}: {problem}");
    }
}

#[test]
fn do_not_go_inside_each_other() {
    let (outer, inner) = ("/run/secrets/a", "/run/secrets/a/b/c");
    for (first, second) in [(outer, inner), (inner, outer)] {
        let problem = refusal(|s| {
            no(s.secret("/home/u/notes.txt", first).secret("/home/u/notes.txt", second));
        });
        let named = format!("`{inner}` lies inside another secret, `{outer}`");
        assert!(problem.message.contains(&named), "{problem}");
    }
    accepted(|s| {
        s.secret("/home/u/notes.txt", outer).secret("/home/u/notes.txt", "/run/secrets/ab");
    });
}

#[test]
fn go_over_what_exists_in_a_read_only_mount() {
    let base = |s: &mut Scene| {
        s.tree.file("/opt/tools/cfg", "old");
        s.read("/opt/tools");
    };
    accepted(|s| {
        base(s);
        s.secret("/home/u/notes.txt", "/opt/tools/cfg");
    });
    refused(
        |s| {
            base(s);
            s.secret("/home/u/notes.txt", "/opt/tools/new");
        },
        "isolation.secrets[0]",
        &["no such mount point exists"],
    );
}

#[test]
fn must_be_files_that_not_everybody_writes() {
    refused(
        |s| no(s.secret("/home/u/lib", "/run/secrets/l")),
        "isolation.secrets[0]",
        &["is a directory"],
    );
    accepted(|s| {
        s.secret("/home/u/lib", "/run/secrets/l").block.secrets[0].map_form = true;
    });
    let problem = refusal(|s| {
        s.tree.file_mode("/home/u/open", "x", 0o666);
        s.secret("/home/u/open", "/run/secrets/o");
    });
    assert_eq!(problem.code, Code::FileTrust);
}

#[test]
fn in_a_writable_mount_are_noted() {
    let policy = accepted(|s| {
        s.tree.file_mode("/home/u/work/token", "x", 0o600);
        s.cwd("/home/u/work").secret("/home/u/work/token", "/run/secrets/t");
    });
    assert!(policy.residual_risks.iter().any(|risk| risk.contains("/home/u/work/token")));
}
