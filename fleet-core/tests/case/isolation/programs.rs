//! The launch closure and the mounts of a role (01 §2.7).

use fleet_core::isolation::closure::{Closure, ClosureError, launch_closure};

use super::*;

const ELF: &[u8] = b"\x7fELF";

fn closure(program: &str, change: impl FnOnce(&mut MemoryTree)) -> Result<Closure, ClosureError> {
    let mut tree = MemoryTree::new();
    for file in ["/usr/bin/bash", "/opt/b/env", "/opt/b/node"] {
        tree.file_mode(file, ELF, 0o755);
    }
    change(&mut tree);
    launch_closure(program, &["/opt/b", "/usr/bin"].map(path), &path("/w"), &tree)
}

fn files(head: &str) -> Vec<String> {
    let found = closure("/opt/p", |tree| no(tree.file_mode("/opt/p", head, 0o755)));
    found.expect("found").files.iter().map(ToString::to_string).collect()
}

#[test]
fn every_interpreter_outside_the_system_is_needed_once() {
    assert_eq!(files("#!/opt/b/env node\n"), ["/opt/p", "/opt/b/env", "/opt/b/node"]);
    assert_eq!(files("#!/opt/b/env env\n"), ["/opt/p", "/opt/b/env"]);
    assert_eq!(files("#!/usr/bin/bash\n"), ["/opt/p"]);
    assert_eq!(files("no script"), ["/opt/p"]);
    assert_eq!(files("#!\n"), ["/opt/p"]);
    assert!(closure("bash", no).expect("found").files.is_empty());
}

/// What `env` starts is the first word that is neither an option nor a variable.
#[test]
fn env_looks_up_the_first_plain_word() {
    for head in [
        "#!/opt/b/env -S node --flag\n",
        "#!/opt/b/env -i A=1 node\n",
        "#!/opt/b/env A=1 -i node x=y\n",
        "#! /opt/b/env\tnode",
    ] {
        assert_eq!(files(head), ["/opt/p", "/opt/b/env", "/opt/b/node"], "{head}");
    }
    assert_eq!(files("#!/opt/b/env -i A=1\n"), ["/opt/p", "/opt/b/env"]);
    // Words after any other interpreter are its arguments.
    assert_eq!(files("#!/opt/b/node bash\n"), ["/opt/p", "/opt/b/node"]);
}

#[test]
fn one_bit_of_execution_is_enough() {
    for (mode, runs) in
        [(0o644, false), (0o666, false), (0o100, true), (0o010, true), (0o001, true)]
    {
        let found = closure("/opt/p", |tree| no(tree.file_mode("/opt/p", ELF, mode)));
        assert_eq!(found.is_ok(), runs, "{mode:o}");
    }
}

#[test]
fn a_program_is_guarded_like_what_a_role_asks_for() {
    refused(
        |s| {
            s.tree.file_mode("/etc/agent", ELF, 0o755);
            s.closure = vec![path("/etc/agent")];
        },
        "isolation",
        &["source `/etc/agent` is inside the forbidden path `/etc`"],
    );
}

type Change = fn(&mut Scene);

/// Only what can be written matters, by whatever name.
#[test]
fn a_program_is_out_of_the_reach_of_its_agent() {
    let program = |s: &mut Scene| {
        s.tree.file_mode("/opt/tools/agent", ELF, 0o755);
        s.closure = vec![path("/opt/tools/agent")];
    };
    for fine in ["/opt", "/opt/tools"] {
        accepted(|s| {
            program(s);
            s.read(fine);
        });
    }
    accepted(|s| {
        program(s);
        s.write("/data").cwd("/home/u/work");
    });
    let changes: [Change; 3] = [
        |s| no(s.write("/opt/tools")),
        // A second name of the very file, and of a directory above it.
        |s| {
            s.tree.hard_link("/opt/tools/agent", "/data/second");
            s.write("/data/second");
        },
        |s| {
            s.tree.bind("/opt", "/data/opt");
            s.write("/data/opt");
        },
    ];
    for change in changes {
        refused(
            |s| {
                program(s);
                change(s);
            },
            "isolation.fs.write[0]",
            &["the program `/opt/tools/agent` lies in", "could replace its own launcher"],
        );
    }
}
