//! The launch closure (01 §2.7).

use fleet_core::isolation::closure::{Closure, ClosureError, launch_closure};
use fleet_core::test_support::fakes::MemoryTree;
use fleet_core::test_support::scene::path;

use super::isolation::{accepted, refused};

fn tree() -> MemoryTree {
    let mut tree = MemoryTree::new();
    tree.file_mode("/usr/bin/bash", b"\x7fELF", 0o755).link("/bin", "usr/bin");
    tree.file_mode("/usr/bin/env", b"\x7fELF", 0o755);
    tree.file_mode("/opt/n/node", b"\x7fELF", 0o755);
    tree.file_mode("/opt/t/tool.sh", "#!/bin/bash\necho", 0o755)
        .link("/opt/b/tool", "../t/tool.sh");
    tree.file_mode("/opt/t/script", "#!/usr/bin/env -S node --flag\n", 0o755);
    tree.file_mode("/opt/t/plain", "text", 0o644).dir("/opt/b/dir");
    tree
}

fn find(program: &str) -> Result<Closure, ClosureError> {
    let dirs = ["/opt/missing", "/opt/b", "/opt/t", "/opt/n", "/usr/bin"].map(path);
    launch_closure(program, &dirs, &path("/work"), &tree())
}

fn files(program: &str) -> Vec<String> {
    find(program).expect(program).files.iter().map(ToString::to_string).collect()
}

#[test]
fn programs_become_canonical_and_interpreters_follow() {
    assert_eq!(find("tool").expect("found").argv0, path("/opt/t/tool.sh"));
    assert_eq!(files("tool"), ["/opt/t/tool.sh"], "bash is in /usr");
    assert_eq!(files("/opt/t/script"), ["/opt/t/script", "/opt/n/node"]);
    assert_eq!(find("bash").expect("found").argv0, path("/usr/bin/bash"));
    assert!(files("/bin/bash").is_empty());
}

#[test]
fn what_cannot_run_is_named() {
    assert!(matches!(find("nope"), Err(ClosureError::NotFound { on_path: true, .. })));
    assert!(matches!(find("/opt/nope"), Err(ClosureError::NotFound { on_path: false, .. })));
    assert!(matches!(find("plain"), Err(ClosureError::NotExecutable { .. })));
    assert!(matches!(find("dir"), Err(ClosureError::NotAFile { .. })));
    let relative = find("./tool").expect_err("relative").to_string();
    assert!(relative.contains("`/work/tool`"), "{relative}");
    assert!(matches!(find("/opt/../x"), Err(ClosureError::BadPath { .. })));
    let mut tree = tree();
    tree.file_mode("/opt/t/lost", "#!/opt/none\n", 0o755);
    let error = launch_closure("/opt/t/lost", &[], &path("/work"), &tree).expect_err("lost");
    assert!(error.to_string().contains("`/opt/none` was not found"), "{error}");
    tree.file_mode("/opt/t/loop", "#!/opt/t/loop\n", 0o755);
    let error = launch_closure("/opt/t/loop", &[], &path("/work"), &tree).expect_err("loop");
    assert!(matches!(error, ClosureError::TooDeep { .. }));
}

#[test]
fn a_program_in_a_writable_mount_is_refused() {
    let program = "/home/u/work/bin/agent";
    refused(
        |s| {
            s.tree.file_mode(program, b"\x7fELF", 0o755);
            s.closure = vec![path(program)];
            s.cwd("/home/u/work");
        },
        "cwd",
        &["could replace its own launcher", program],
    );
    // Seen through a bind mount as well.
    refused(
        |s| {
            s.tree.file_mode(program, b"\x7fELF", 0o755).bind("/home/u/work", "/data/alias");
            s.closure = vec![path("/data/alias/bin/agent")];
            s.cwd("/home/u/work");
        },
        "cwd",
        &["could replace its own launcher"],
    );
    let policy = accepted(|s| {
        s.tree.file_mode("/opt/tools/agent", b"\x7fELF", 0o755);
        s.closure = vec![path("/opt/tools/agent"), path("/usr/bin/bash")];
    });
    assert!(policy.covering(&path("/opt/tools/agent")).is_some());
    assert!(policy.covering(&path("/usr/bin/bash")).is_none());
}
