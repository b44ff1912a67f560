//! P4, P5: the probe on real trees, with links of every kind.

use std::os::unix::fs::{MetadataExt as _, symlink};

use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::path::LexicalPath;
use fleet_core::port::{FileKind, PathProbe as _, PathProbeError, Resolved};
use fleet_sandbox::OpenatProbe;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::cases;
use crate::support::lexical;

fn tree() -> (tempfile::TempDir, Utf8PathBuf) {
    let dir = tempfile::tempdir().expect("tempdir");
    let base = Utf8Path::from_path(dir.path()).expect("utf-8").canonicalize_utf8().expect("real");
    (dir, base)
}

/// Where a link leads: below the tree's root, relative to the link, or nowhere.
fn target() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        "[abc]",
        "[lmno]",
        Just("..".to_owned()),
        Just(".".to_owned()),
        Just("missing".to_owned())
    ];
    (any::<bool>(), vec(name, 1..4)).prop_map(|(absolute, names)| {
        let path = names.join("/");
        if absolute { format!("@/{path}") } else { path }
    })
}

proptest! {
    #![proptest_config(cases::config(cases::real_files()))]

    #[test]
    fn p04_p05_resolution_is_idempotent_and_agrees_with_the_kernel(
        links in vec((prop_oneof![Just(""), Just("a/"), Just("a/b/")], "[lmno]", target()), 1..6),
        asked in vec(prop_oneof!["[abc]", "[lmno]"], 1..5),
    ) {
        let (_dir, base) = tree();
        std::fs::create_dir_all(base.join("a/b/c")).expect("mkdir");
        std::fs::write(base.join("c"), "").expect("write");
        for (directory, name, target) in links {
            // A second link of the same name changes nothing.
            let _ = symlink(target.replace('@', base.as_str()), base.join(directory).join(name));
        }
        let asked = base.join(asked.join("/"));
        let probe = OpenatProbe::new();
        let kernel = std::fs::canonicalize(&asked);
        match probe.resolve(&lexical(&asked)) {
            Ok(resolved) => {
                // P4: plain, absolute, and a fixed point.
                prop_assert!(LexicalPath::absolute(resolved.path.as_str()).is_ok());
                let again = OpenatProbe::new().resolve(&resolved.path).expect("resolves again");
                prop_assert!(again.links.is_empty());
                prop_assert_eq!(&again, &Resolved { links: Vec::new(), ..resolved.clone() });
                match (&resolved.object, kernel) {
                    (Some(object), Ok(real)) => {
                        // P5: the alias and the kernel's own name are one object.
                        prop_assert_eq!(resolved.path.as_str(), real.to_str().expect("utf-8"));
                        let stat = std::fs::metadata(&asked).expect("exists");
                        prop_assert_eq!((object.identity.dev, object.identity.ino), (stat.dev(), stat.ino()));
                        let parents = std::path::Path::new(resolved.path.as_str()).ancestors().skip(1);
                        let parents: Vec<_> = parents.map(|parent| {
                            let stat = std::fs::metadata(parent).expect("exists");
                            (stat.dev(), stat.ino())
                        }).collect();
                        let found: Vec<_> = resolved.ancestors.iter().map(|id| (id.dev, id.ino)).collect();
                        prop_assert_eq!(found, parents);
                    }
                    (None, Err(_)) => {}
                    // `missing/..` exists for us and not for the kernel: more is judged, not less.
                    (Some(_), Err(error)) => prop_assert!(
                        matches!(error.raw_os_error(), Some(2 | 20)), "{}", error
                    ),
                    (None, Ok(real)) => prop_assert!(false, "missed {}", real.display()),
                }
            }
            Err(PathProbeError::Loop { .. }) => {
                prop_assert_eq!(kernel.expect_err("a loop").raw_os_error(), Some(40));
            }
            Err(PathProbeError::NotADirectory { .. }) => {
                prop_assert!(kernel.is_err());
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}

#[test]
fn a_dangling_link_gives_its_target() {
    let (_dir, base) = tree();
    symlink(base.join("secret/key"), base.join("one")).expect("link");
    symlink("one", base.join("two")).expect("link");
    let resolved = OpenatProbe::new().resolve(&lexical(&base.join("two/x"))).expect("resolves");
    assert_eq!(resolved.path.as_str(), base.join("secret/key/x"));
    assert!(resolved.object.is_none());
    let nearest = std::fs::metadata(&base).expect("exists");
    assert_eq!(resolved.ancestors[0].ino, nearest.ino());
}

#[test]
fn forty_links_are_followed_and_more_are_not() {
    let (_dir, base) = tree();
    std::fs::write(base.join("end"), "").expect("write");
    let mut before = "end".to_owned();
    for index in 0..41 {
        let name = format!("l{index}");
        symlink(&before, base.join(&name)).expect("link");
        before = name;
    }
    let resolve = |name: &str| OpenatProbe::new().resolve(&lexical(&base.join(name)));
    assert!(resolve("l39").expect("forty").object.is_some());
    assert!(matches!(resolve("l40"), Err(PathProbeError::Loop { .. })));
}

#[test]
fn links_of_proc_are_not_followed() {
    let path = LexicalPath::absolute("/proc/self/root/etc").expect("plain");
    assert!(matches!(OpenatProbe::new().resolve(&path), Err(PathProbeError::Io { .. })));
}

#[test]
fn a_target_that_is_no_text_is_an_error() {
    use std::os::unix::ffi::OsStrExt as _;
    let (_dir, base) = tree();
    symlink(std::ffi::OsStr::from_bytes(b"\xff"), base.join("bytes")).expect("link");
    symlink("new\nline", base.join("control")).expect("link");
    let resolve = |name: &str| OpenatProbe::new().resolve(&lexical(&base.join(name)));
    assert!(matches!(resolve("bytes"), Err(PathProbeError::Io { .. })));
    assert!(matches!(resolve("control"), Err(PathProbeError::BadTarget { .. })));
}

#[test]
fn kinds_owners_and_links_are_told() {
    let (_dir, base) = tree();
    std::fs::write(base.join("f"), "").expect("write");
    std::fs::hard_link(base.join("f"), base.join("g")).expect("link");
    let _socket = std::os::unix::net::UnixListener::bind(base.join("s")).expect("bind");
    let facts = |path: &str| {
        let path = if path.starts_with('/') { path.into() } else { base.join(path) };
        OpenatProbe::new().resolve(&lexical(&path)).expect("resolves").object.expect("exists")
    };
    assert_eq!((facts("f").kind, facts("f").links), (FileKind::File, 2));
    assert_eq!(facts("f").uid, rustix::process::getuid().as_raw());
    assert_eq!(facts("s").kind, FileKind::Socket);
    assert_eq!(facts("/dev/null").kind, FileKind::Device);
    assert_eq!(facts("/").kind, FileKind::Directory);
}

#[test]
fn the_head_is_of_regular_files_only() {
    let (_dir, base) = tree();
    std::fs::write(base.join("script"), "#!/bin/sh\nexit\n").expect("write");
    let probe = OpenatProbe::new();
    let head = |path: &Utf8Path, limit| probe.head(&lexical(path), limit);
    assert_eq!(head(&base.join("script"), 9).expect("read"), b"#!/bin/sh");
    assert_eq!(head(&base.join("script"), 100).expect("read").len(), 15);
    assert!(head(&base, 9).is_err());
    assert!(head("/dev/zero".into(), 9).is_err());
    assert!(matches!(head(&base.join("none"), 9), Err(PathProbeError::Io { .. })));
}

#[test]
fn mounts_below_the_root_hold_proc_with_its_identity() {
    let probe = OpenatProbe::new();
    let found = probe.mounts_below(&LexicalPath::root()).expect("readable");
    let proc = found.iter().find(|(point, _)| point.as_str() == "/proc").expect("mounted");
    assert_eq!(proc.1.ino, std::fs::metadata("/proc").expect("exists").ino());
    assert!(found.iter().all(|(point, _)| point.as_str() != "/"));
    let (_dir, base) = tree();
    assert!(probe.mounts_below(&lexical(&base)).expect("readable").is_empty());
}

#[test]
fn an_ordinary_file_system_tells_case_apart() {
    let (_dir, base) = tree();
    assert!(!OpenatProbe::new().ignores_case(&lexical(&base.join("none/yet"))));
}

#[test]
fn what_a_probe_remembers_changes_no_answer() {
    let (_dir, base) = tree();
    let mut asked = Vec::new();
    // More directories than a probe keeps open, asked for in turn.
    for directory in 0..20 {
        let directory = base.join(format!("d{directory}"));
        std::fs::create_dir(&directory).expect("mkdir");
        std::fs::write(directory.join("f"), "").expect("write");
        symlink("f", directory.join("l")).expect("link");
        symlink("/nonexistent/x", directory.join("dangling")).expect("link");
        asked.push(directory);
    }
    symlink("d1", base.join("alias")).expect("link");
    asked.push(base.join("alias"));
    asked.push(base.join("missing"));
    let probe = OpenatProbe::new();
    for _ in 0..2 {
        for name in ["", "f", "l", "dangling", "none", "none/below", "f/below"] {
            for directory in &asked {
                let path = if name.is_empty() { directory.clone() } else { directory.join(name) };
                let path = lexical(&path);
                let alone = OpenatProbe::new().resolve(&path);
                assert_eq!(format!("{:?}", probe.resolve(&path)), format!("{alone:?}"), "{path}");
            }
        }
    }
    // What appears in a directory that is known is seen.
    std::fs::write(base.join("d19/none"), "").expect("write");
    let seen = probe.resolve(&lexical(&base.join("d19/none"))).expect("resolves");
    assert!(seen.object.is_some());
}
