//! What every [`PathProbe`] must answer.

use crate::path::LexicalPath;
use crate::port::{FileIdentity, FileKind, PathProbe, PathProbeError};

/// Builds the tree that the suite asks about. Paths are relative to [`TreeFixture::root`], which is
/// empty, exists and is free of links; parents are made as needed.
pub trait TreeFixture {
    /// The directory that everything is made in.
    fn root(&self) -> LexicalPath;
    /// Makes a directory.
    fn dir(&mut self, path: &str, mode: u32);
    /// Makes a file.
    fn file(&mut self, path: &str, content: &[u8], mode: u32);
    /// Makes a symbolic link with exactly this target.
    fn link(&mut self, path: &str, target: &str);
    /// Gives an existing file a second name.
    fn hard_link(&mut self, existing: &str, path: &str);
    /// Makes a socket, or a FIFO.
    fn special(&mut self, path: &str, kind: FileKind);
    /// Bind-mounts `from` at `to`, both existing directories; `false` if that is impossible here, and
    /// then that part of the suite is not run.
    fn bind(&mut self, from: &str, to: &str) -> bool;
    /// Makes `path` a directory into which the probe may not look; `false` if that is impossible here
    /// (root may look everywhere).
    fn closed_dir(&mut self, path: &str) -> bool;
    /// The owner of what is made.
    fn uid(&self) -> u32;
    /// A probe that sees the tree as it is now.
    fn probe(&self) -> Box<dyn PathProbe>;
}

/// Parts of the suite that the fixture could not set up; empty if all ran.
#[must_use]
#[derive(Debug, Default, PartialEq, Eq)]
pub struct NotRun(pub Vec<&'static str>);

/// Runs the suite on a fresh fixture. Panics at the first wrong answer.
pub fn path_probe_contract(fixture: &mut dyn TreeFixture) -> NotRun {
    let mut not_run = NotRun::default();
    objects(fixture);
    links(fixture);
    failures(fixture, &mut not_run);
    mounts(fixture, &mut not_run);
    not_run
}

fn at(fixture: &dyn TreeFixture, below: &str) -> LexicalPath {
    match fixture.root().join(below) {
        Ok(path) => path,
        Err(error) => panic!("suite path {below:?}: {error}"),
    }
}

fn look(fixture: &dyn TreeFixture, path: &LexicalPath) -> crate::port::Resolved {
    match fixture.probe().resolve(path) {
        Ok(resolved) => resolved,
        Err(error) => panic!("resolve {path}: {error}"),
    }
}

fn identity(fixture: &dyn TreeFixture, path: &LexicalPath) -> FileIdentity {
    match look(fixture, path).object {
        Some(object) => object.identity,
        None => panic!("{path} must exist"),
    }
}

fn objects(fixture: &mut dyn TreeFixture) {
    fixture.dir("o/dir", 0o750);
    fixture.file("o/dir/file", b"#!/bin/sh\nrest", 0o640);
    fixture.hard_link("o/dir/file", "o/second");
    fixture.special("o/socket", FileKind::Socket);
    fixture.special("o/fifo", FileKind::Fifo);
    let fixture = &*fixture;
    for (below, kind, mode, links) in [
        ("o/dir", FileKind::Directory, Some(0o750), None),
        ("o/dir/file", FileKind::File, Some(0o640), Some(2)),
        ("o/socket", FileKind::Socket, None, Some(1)),
        ("o/fifo", FileKind::Fifo, None, Some(1)),
    ] {
        let path = at(fixture, below);
        let resolved = look(fixture, &path);
        let Some(object) = resolved.object else { panic!("{below} must exist") };
        assert_eq!((object.kind, object.uid), (kind, fixture.uid()), "{below}");
        assert_eq!(resolved.path, path, "no link, so the path stays: {below}");
        if let Some(mode) = mode {
            assert_eq!(object.mode, mode, "{below}");
        }
        if let Some(links) = links {
            assert_eq!(object.links, links, "{below}");
        }
        let expected: Vec<FileIdentity> = path
            .self_and_ancestors()
            .skip(1)
            .filter_map(|above| LexicalPath::absolute(above).ok())
            .map(|above| identity(fixture, &above))
            .collect();
        assert_eq!(resolved.ancestors, expected, "nearest first, the root last: {below}");
    }
    assert_eq!(
        identity(fixture, &at(fixture, "o/dir/file")),
        identity(fixture, &at(fixture, "o/second")),
        "a hard link is the same object"
    );
    let root = look(fixture, &LexicalPath::root());
    assert!(root.ancestors.is_empty() && root.object.is_some(), "the root has nothing above");
    let missing = look(fixture, &at(fixture, "o/dir/no/such"));
    assert_eq!((missing.object, &missing.path), (None, &at(fixture, "o/dir/no/such")));
    assert_eq!(
        missing.ancestors.first(),
        Some(&identity(fixture, &at(fixture, "o/dir"))),
        "only existing directories count as ancestors"
    );
    assert_eq!(missing.ancestors.len(), at(fixture, "o/dir").depth() + 1);
    let probe = fixture.probe();
    let head = |limit| probe.head(&at(fixture, "o/dir/file"), limit);
    assert_eq!(head(9), Ok(b"#!/bin/sh".to_vec()));
    assert_eq!(head(4096), Ok(b"#!/bin/sh\nrest".to_vec()), "a short file is no error");
    assert!(probe.head(&at(fixture, "o/dir"), 9).is_err(), "a directory has no head");
    assert!(probe.head(&at(fixture, "o/none"), 9).is_err());
    let file = at(fixture, "o/dir/file");
    let own = identity(fixture, &file);
    assert_eq!(probe.content(&file, own, 9), Ok(b"#!/bin/sh".to_vec()));
    assert_eq!(probe.content(&file, own, 4096), Ok(b"#!/bin/sh\nrest".to_vec()));
    for other in ["o/dir", "o/fifo"] {
        let (other, it) = (at(fixture, other), identity(fixture, &at(fixture, other)));
        assert!(probe.content(&other, it, 9).is_err(), "{other} is no file");
        assert!(probe.content(&file, it, 9).is_err(), "another object stands there");
    }
    let names = |below: &str, limit| probe.entries(&at(fixture, below), limit);
    assert_eq!(names("o", 9), Ok(["dir", "fifo", "second", "socket"].map(str::to_owned).to_vec()));
    assert_eq!(names("o", 3).map(|names| names.len()), Ok(3), "no more than asked for");
    assert!(names("o/dir/file", 9).is_err() && names("o/none", 9).is_err());
}

fn links(fixture: &mut dyn TreeFixture) {
    let root = fixture.root();
    fixture.dir("l/real/sub", 0o755);
    fixture.file("l/real/sub/file", b"x", 0o644);
    fixture.link("l/absolute", &format!("{root}/l/real"));
    fixture.link("l/relative", "real/./sub/../sub/");
    fixture.link("l/chain", "absolute/sub");
    fixture.link("l/real/up", "../..");
    fixture.link("l/dangling", &format!("{root}/l/gone/deep"));
    fixture.link("l/gone2", "nowhere/../../l/real");
    let fixture = &*fixture;
    for (asked, lands, exists) in [
        ("l/absolute", "l/real", true),
        ("l/absolute/sub/file", "l/real/sub/file", true),
        ("l/relative", "l/real/sub", true),
        ("l/chain/file", "l/real/sub/file", true),
        ("l/real/up/l/real", "l/real", true),
        ("l/dangling", "l/gone/deep", false),
        ("l/dangling/more", "l/gone/deep/more", false),
        ("l/chain/none/x", "l/real/sub/none/x", false),
    ] {
        let resolved = look(fixture, &at(fixture, asked));
        assert_eq!(resolved.path, at(fixture, lands), "{asked}");
        assert_eq!(resolved.object.is_some(), exists, "{asked}");
        let again = look(fixture, &resolved.path);
        let same = (&again.path, &again.object, &again.ancestors);
        let seen = (&resolved.path, &resolved.object, &resolved.ancestors);
        assert_eq!(same, seen, "resolving twice changes nothing: {asked}");
        assert_eq!((again.links.len(), resolved.links.is_empty()), (0, false), "{asked}");
    }
    // Each link where it lies, links above it followed, with what holds it.
    let chain = look(fixture, &at(fixture, "l/real/up/l/chain/file")).links;
    let places: Vec<&LexicalPath> = chain.iter().map(|link| &link.at).collect();
    let wanted = ["l/real/up", "l/chain", "l/absolute"].map(|below| at(fixture, below));
    assert_eq!(places, wanted.iter().collect::<Vec<_>>());
    for link in &chain {
        let Some(holder) = link.at.parent() else { panic!("{} has no parent", link.at) };
        let holder = look(fixture, &holder);
        let mut above: Vec<FileIdentity> = holder.object.iter().map(|it| it.identity).collect();
        above.extend(holder.ancestors);
        assert_eq!(link.above, above, "{}", link.at);
    }
    // `..` after a missing name: either answer is sound as long as it is no success at a wrong place.
    if let Ok(resolved) = fixture.probe().resolve(&at(fixture, "l/gone2")) {
        assert!(resolved.path == at(fixture, "l/real"), "{resolved:?}");
    }
}

fn failures(fixture: &mut dyn TreeFixture, not_run: &mut NotRun) {
    fixture.link("f/one", "two");
    fixture.link("f/two", "one");
    fixture.link("f/self", "self/x");
    fixture.file("f/file", b"x", 0o644);
    fixture.link("f/control", "a\nb");
    let mut previous = "end".to_owned();
    fixture.dir("f/long/end", 0o755);
    for number in 0..45 {
        let name = format!("n{number}");
        fixture.link(&format!("f/long/{name}"), &previous);
        previous = name;
    }
    let closed = fixture.closed_dir("f/closed");
    let fixture = &*fixture;
    let probe = fixture.probe();
    let error = |below: &str| match probe.resolve(&at(fixture, below)) {
        Ok(resolved) => panic!("{below} must fail, gave {resolved:?}"),
        Err(error) => error,
    };
    assert!(matches!(error("f/one"), PathProbeError::Loop { .. }));
    assert!(matches!(error("f/self"), PathProbeError::Loop { .. }));
    assert!(matches!(error("f/long/n44"), PathProbeError::Loop { .. }), "more than 40 links");
    assert!(probe.resolve(&at(fixture, "f/long/n30")).is_ok(), "31 links are followed");
    assert!(matches!(error("f/file/x"), PathProbeError::NotADirectory { .. }));
    assert!(matches!(error("f/control"), PathProbeError::BadTarget { .. }));
    if closed {
        assert!(matches!(error("f/closed/x"), PathProbeError::Denied { .. }));
    } else {
        not_run.0.push("a directory that may not be entered");
    }
}

fn mounts(fixture: &mut dyn TreeFixture, not_run: &mut NotRun) {
    fixture.dir("m/from/inner", 0o755);
    fixture.file("m/from/inner/file", b"x", 0o644);
    fixture.dir("m/place/to", 0o755);
    fixture.dir("m/placebo", 0o755);
    assert_eq!(fixture.probe().mounts_below(&at(fixture, "m")), Ok(Vec::new()));
    if !fixture.bind("m/from", "m/place/to") {
        not_run.0.push("bind mounts");
        return;
    }
    let fixture = &*fixture;
    let probe = fixture.probe();
    let expected = vec![(at(fixture, "m/place/to"), identity(fixture, &at(fixture, "m/from")))];
    for above in ["m", "m/place"] {
        assert_eq!(probe.mounts_below(&at(fixture, above)), Ok(expected.clone()), "{above}");
    }
    for beside in ["m/place/to", "m/placebo", "m/from"] {
        assert_eq!(probe.mounts_below(&at(fixture, beside)), Ok(Vec::new()), "{beside}");
    }
    let file = look(fixture, &at(fixture, "m/place/to/inner/file"));
    assert!(
        file.ancestors.contains(&identity(fixture, &at(fixture, "m/from"))),
        "a bind mount keeps the identity of what it shows"
    );
}
