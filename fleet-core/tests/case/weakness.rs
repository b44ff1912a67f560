//! Regressions of the predecessor's weaknesses (01 §2.12), named after them.

use fleet_core::isolation::MountMode;
use fleet_core::port::{FileKind, PathProbe as _};
use fleet_core::test_support::scene::{Scene, path};

use serde_json::json;

use super::isolation::{accepted, no, refused};
use crate::fleet::base;

const READ: &str = "isolation.fs.read[0]";
const WRITE: &str = "isolation.fs.write[0]";

#[test]
fn w01_the_root_directory_is_never_mounted() {
    refused(|s| no(s.write("/")), WRITE, &["root directory"]);
}

#[test]
fn w02_the_first_character_of_a_path_is_no_path_of_its_own() {
    // A string taken for a list would ask for `/` first.
    refused(|s| no(s.read(&"/home/u/lib"[..1])), READ, &["root directory"]);
}

#[test]
fn w03_nothing_of_another_role_permanent_or_temporary() {
    for below in ["agents/B", "agents/.tmp/T", "control/B", "harness/.tmp/T", "watchdogs"] {
        let wanted = format!("/home/u/.ours-fleet/{below}");
        refused(|s| no(s.write(&wanted)), WRITE, &["`/home/u/.ours-fleet` (state of the fleet)"]);
    }
}

#[test]
fn w05_a_read_only_ancestor_declared_later_does_not_hide_the_cwd() {
    let policy = accepted(|s| {
        s.tree.dir("/data/p/w");
        s.cwd("/data/p/w").read("/data/p");
    });
    let order: Vec<&str> = policy.mounts.iter().map(|m| m.destination.as_str()).collect();
    let at = |wanted| order.iter().position(|place| *place == wanted);
    assert!(at("/data/p") < at("/data/p/w"), "{order:?}");
    assert_eq!(
        policy.covering(&path("/data/p/w/x")).map(|mount| mount.mode),
        Some(MountMode::ReadWrite)
    );
    refused(|s| no(s.write("/home/u/.claude")), WRITE, &["login and sessions of a harness"]);
}

#[test]
fn w06_secrets_do_not_lead_out_and_missing_ones_are_not_skipped() {
    refused(
        |s| no(s.secret("/home/u/.ssh/id_ed25519", "/run/secrets/id")),
        "isolation.secrets[0]",
        &["source `/home/u/.ssh/id_ed25519`"],
    );
    let policy = accepted(|s| no(s.secret("/home/u/absent", "/run/secrets/x")));
    assert_eq!(policy.missing_sources().count(), 1);
}

#[test]
fn w06b_home_is_expanded_and_a_relative_path_is_refused() {
    let wanted = |written: &str| {
        let text = json!({"roles": {"A": {"isolation": {"fs": {"read": [written]}}}}});
        base(text.to_string()).load()
    };
    let fleet = wanted("~/x").fleet.expect("accepted");
    let block = fleet.roles["A"].isolation.as_ref().expect("a block");
    assert_eq!(block.fs_read[0].path.as_str(), "/home/op/x");
    for written in ["x", "./x", "../.ssh", "~other/x", "a/../../b"] {
        let loaded = wanted(written);
        assert!(loaded.fleet.is_none(), "{written}");
        assert_eq!(loaded.diagnostics[0].path, "isolation.fs.read[0]", "{written}");
    }
}

#[test]
fn w07_what_is_mounted_is_the_object_that_was_judged() {
    let policy = accepted(|s| {
        s.tree.link("/data/l", "/home/u/lib");
        s.read("/data/l");
    });
    let mount = policy.mounts.iter().find(|mount| mount.origin.is_by_user()).expect("the mount");
    assert_eq!(mount.source.as_str(), "/home/u/lib", "links are gone");
    let looked = Scene::new().tree.resolve(&path("/home/u/lib")).expect("there");
    // By device and inode the launch finds out whether it still is what was judged.
    assert_eq!(mount.identity, looked.object.map(|object| object.identity));
}

#[test]
fn w09_a_dangling_link_to_a_directory_to_come() {
    refused(
        |s| {
            s.tree.link("/home/u/work/d", "/home/u/.aws");
            s.read("/home/u/work/d");
        },
        READ,
        &["`/home/u/work/d` (resolves to `/home/u/.aws`)"],
    );
    refused(
        |s| {
            s.tree.link("/home/u/work/e", "d").link("/home/u/work/d", "../.aws/deep");
            s.write("/home/u/work/e/er");
        },
        WRITE,
        &["(resolves to `/home/u/.aws/deep/er`) is inside"],
    );
}

#[test]
fn w10_aliases_are_known_by_identity() {
    type Alias = fn(&mut Scene);
    let aliases: [(&str, Alias, &str); 8] = [
        ("bind of it", |s| no(s.tree.bind("/home/u/.ssh", "/data/k")), "/data/k"),
        ("bind of its parent", |s| no(s.tree.bind("/home/u", "/data/h")), "/data/h"),
        ("below such a bind", |s| no(s.tree.bind("/home/u", "/data/h")), "/data/h/.ssh"),
        ("not yet existing below it", |s| no(s.tree.bind("/home/u", "/data/h")), "/data/h/.aws"),
        ("a bind inside", |s| no(s.tree.bind("/home/u/.ssh", "/data/d/in")), "/data/d"),
        (
            "hard link to a key",
            |s| no(s.tree.hard_link("/home/u/.ssh/id_ed25519", "/data/key")),
            "/data/key",
        ),
        ("other case", |s| no(s.tree.ignore_case("/home")), "/home/u/.SSH"),
        ("other case, absent", |s| no(s.tree.ignore_case("/home")), "/home/U/.Aws/x"),
    ];
    for (name, make, wanted) in aliases {
        let mut scene = Scene::new();
        make(&mut scene);
        scene.read(wanted);
        let problems = scene.resolve().expect_err(name);
        assert_eq!(problems[0].path, READ, "{name}");
        // The control: without the alias the same path is fine, or case is a difference.
        if !wanted.starts_with("/home") {
            let mut control = Scene::new();
            control.read(wanted);
            assert!(control.resolve().is_ok(), "{name}: control");
        }
    }
    accepted(|s| no(s.read("/home/u/.SSH")));
}

#[test]
fn w12_system_paths_sockets_and_devices() {
    for wanted in ["/run", "/proc", "/sys/fs", "/dev/null", "/etc", "/boot", "/root", "/var/spool"]
    {
        refused(|s| no(s.read(wanted)), READ, &["part of the system"]);
    }
    refused(|s| no(s.read("/var")), READ, &["would expose"]);
    refused(|s| no(s.read("/var/run/docker.sock")), READ, &["container engines"]);
    refused(|s| no(s.read("/usr")), READ, &["is the protected path `/usr`"]);
    refused(|s| no(s.write("/usr/lib")), WRITE, &["is inside the protected path `/usr`"]);
    accepted(|s| no(s.read("/usr/lib")));
    refused(|s| no(s.read("/tmp")), READ, &["would expose"]);
    refused(|s| no(s.read("/home/u/.cache")), READ, &["would expose"]);
    accepted(|s| {
        s.tree.dir("/tmp/x");
        s.read("/tmp/x");
    });
    for (kind, word) in
        [(FileKind::Socket, "socket"), (FileKind::Fifo, "FIFO"), (FileKind::Device, "device")]
    {
        refused(
            |s| {
                s.tree.special("/home/u/work/s", kind);
                s.read("/home/u/work/s");
            },
            READ,
            &[&format!("is a {word}")],
        );
    }
    refused(
        |s| {
            s.sockets = vec![("SSH_AUTH_SOCK".to_owned(), path("/data/agent/sock"))];
            s.read("/data/agent");
        },
        READ,
        &["would expose the forbidden path `/data/agent/sock`"],
    );
}

#[test]
fn w13_config_files_wherever_they_are() {
    let elsewhere = |s: &mut Scene| {
        s.tree.file("/data/conf/my.yaml", "roles: {}").file("/data/work/fleet.yaml", "roles: {}");
        s.config_files = vec!["/data/work/fleet.yaml".into(), "/data/conf/my.yaml".into()];
    };
    refused(
        |s| {
            elsewhere(s);
            s.cwd("/data/work");
        },
        "cwd",
        &["would expose the forbidden path `/data/work/fleet.yaml` (fleet configuration)"],
    );
    refused(
        |s| {
            elsewhere(s);
            s.read("/data/conf");
        },
        READ,
        &["`/data/conf/my.yaml`"],
    );
    // A link is followed: where the text really is counts as well.
    refused(
        |s| {
            s.tree.file("/data/dots/f.yaml", "").remove("/home/u/fleet.yaml");
            s.tree.link("/home/u/fleet.yaml", "/data/dots/f.yaml");
            s.write("/data/dots");
        },
        WRITE,
        &["fleet configuration"],
    );
}

#[test]
fn w14_every_home_of_the_account_is_guarded() {
    let homes = |s: &mut Scene| {
        s.homes.passwd = Some("/home/p".into());
        s.homes.fleet = "/data/fleet".into();
        for tree in s.trees().all() {
            s.tree.dir_mode(tree.as_str(), 0o700);
        }
        let home = s.trees().harness.join("command");
        s.tree.dir_mode(home.as_str(), 0o700);
    };
    accepted(homes);
    for wanted in ["/home/u/.ssh", "/home/p/.ssh", "/data/fleet/.ssh", "/data/fleet/fleet.d"] {
        refused(
            |s| {
                homes(s);
                s.read(wanted);
            },
            READ,
            &[&format!("is the forbidden path `{wanted}`")],
        );
    }
}

#[test]
fn relocated_stores_are_guarded_where_they_are() {
    for (variable, at, wanted) in [
        ("GNUPGHOME", "/data/gpg", "/data/gpg"),
        ("XDG_CONFIG_HOME", "/data/cfg", "/data/cfg/gcloud"),
        ("XDG_DATA_HOME", "/data/share", "/data/share/keyrings/x"),
        ("CARGO_HOME", "/data/cargo", "/data/cargo/credentials.toml"),
        ("KUBECONFIG", "/data/kube.yaml", "/data/kube.yaml"),
        ("OURS_STATE_DIR", "/data/ours", "/data/ours/x"),
    ] {
        let moved = |s: &mut Scene| s.relocated = vec![(variable.to_owned(), path(at))];
        refused(
            |s| {
                moved(s);
                s.read(wanted);
            },
            READ,
            &["the forbidden path"],
        );
        accepted(|s| no(s.read(wanted)));
    }
    accepted(|s| {
        s.relocated = vec![("XDG_CONFIG_HOME".to_owned(), path("/data/cfg"))];
        s.read("/data/cfg/myapp");
    });
}
