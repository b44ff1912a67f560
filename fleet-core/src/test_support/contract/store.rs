//! The contract of [`StateStore`].
#![expect(
    clippy::missing_panics_doc,
    reason = "a contract suite panics where the contract is broken"
)]
#![expect(clippy::expect_used, reason = "a contract suite panics where the contract is broken")]

use camino::{Utf8Path, Utf8PathBuf};

use crate::port::{DirEntry, EntryKind, StateStore, StoreError};

/// What the suite needs besides the port.
pub trait StoreSubject {
    /// The port under test.
    fn store(&self) -> &dyn StateStore;

    /// A directory for this test alone. It does not exist yet, its parent does.
    fn root(&self) -> Utf8PathBuf;

    /// Puts this content there, not by the port.
    fn put(&self, path: &Utf8Path, content: &[u8]);

    /// Makes a symbolic link that leads to `target`, not by the port.
    fn link(&self, path: &Utf8Path, target: &Utf8Path);

    /// Makes a FIFO or another special file, not by the port.
    fn special(&self, path: &Utf8Path);

    /// The permission bits of what is there.
    fn mode(&self, path: &Utf8Path) -> u32;
}

const LIMIT: u64 = 1024;

fn root(subject: &impl StoreSubject) -> Utf8PathBuf {
    let root = subject.root();
    subject.store().ensure_dir(&root).expect("it is made");
    root
}

fn content(subject: &impl StoreSubject, path: &Utf8Path) -> Option<Vec<u8>> {
    subject.store().read(path, LIMIT).expect("an answer")
}

fn names(subject: &impl StoreSubject, path: &Utf8Path) -> Vec<String> {
    let entries = subject.store().list(path).expect("an answer").expect("it exists");
    entries.into_iter().map(|entry| entry.name).collect()
}

fn assert_wrong_kind<T: std::fmt::Debug>(answer: &Result<T, StoreError>, at: &Utf8Path) {
    match answer {
        Err(StoreError::WrongKind { path, .. }) => assert_eq!(path, at),
        other => panic!("{at}: {other:?}"),
    }
}

/// What was written is read back, with the mode asked for, and nothing else is left in the directory.
pub fn writes_whole_files(subject: &impl StoreSubject) {
    let root = root(subject);
    let file = root.join("status.json");
    assert_eq!(content(subject, &file), None);
    let big = vec![0xff; 1000];
    for (text, mode) in [(&b"one"[..], 0o600), (b"", 0o644), (b"\0\n", 0o400), (&big, 0o600)] {
        subject.store().write(&file, text, mode).expect("it is written");
        assert_eq!(content(subject, &file).as_deref(), Some(text));
        assert_eq!(subject.mode(&file), mode);
        subject.store().publish(&file, b"published", mode).expect("it is published");
        assert_eq!(content(subject, &file).as_deref(), Some(&b"published"[..]));
        assert_eq!(subject.mode(&file), mode);
        assert_eq!(names(subject, &root), ["status.json"]);
    }
}

/// A write that cannot be finished leaves everything as it was.
pub fn failed_writes_change_nothing(subject: &impl StoreSubject) {
    let root = root(subject);
    let missing = root.join("missing").join("file");
    let error = subject.store().write(&missing, b"x", 0o600).expect_err("no directory");
    assert!(error.is_not_found(), "{error:?}");
    let occupied = root.join("occupied");
    subject.store().ensure_dir(&occupied).expect("it is made");
    assert!(subject.store().write(&occupied, b"x", 0o600).is_err(), "a directory stands there");
    assert_eq!(names(subject, &root), ["occupied"]);
    assert_eq!(names(subject, &occupied), Vec::<String>::new());
}

/// A link is replaced by a write, never written through.
pub fn writes_never_follow_links(subject: &impl StoreSubject) {
    let root = root(subject);
    let (target, link) = (root.join("target"), root.join("link"));
    subject.put(&target, b"precious");
    subject.link(&link, &target);
    subject.store().write(&link, b"new", 0o600).expect("the link is replaced");
    assert_eq!(content(subject, &target).as_deref(), Some(&b"precious"[..]));
    assert_eq!(content(subject, &link).as_deref(), Some(&b"new"[..]));
}

/// The beginning of a file is read whatever its size; links and special files are not.
pub fn reads_the_head_of_a_file(subject: &impl StoreSubject) {
    let root = root(subject);
    let file = root.join("long");
    let head = |path: &Utf8Path, limit| subject.store().read_head(path, limit);
    assert_eq!(head(&file, 4).expect("an answer"), None);
    subject.put(&file, b"0123456789");
    for (limit, seen) in [(0, &b""[..]), (4, b"0123"), (10, b"0123456789"), (99, b"0123456789")] {
        assert_eq!(head(&file, limit).expect("an answer").as_deref(), Some(seen));
    }
    let (link, special) = (root.join("link"), root.join("special"));
    subject.link(&link, &file);
    subject.special(&special);
    for path in [&link, &special, &root] {
        assert_wrong_kind(&head(path, 4), path);
    }
}

/// Reading refuses links, special files, directories and too much.
pub fn reads_only_regular_files_of_a_size(subject: &impl StoreSubject) {
    let root = root(subject);
    let (file, link, fifo) = (root.join("file"), root.join("link"), root.join("fifo"));
    subject.put(&file, &[b'x'; 1024]);
    subject.link(&link, &file);
    subject.special(&fifo);
    assert_eq!(content(subject, &file).map(|found| found.len()), Some(1024));
    for path in [&link, &fifo, &root] {
        assert_wrong_kind(&subject.store().read(path, LIMIT), path);
        assert_wrong_kind(&subject.store().is_locked(path), path);
        assert_wrong_kind(&subject.store().append_line(path, b"x"), path);
        assert_wrong_kind(&subject.store().try_lock(path).map(drop), path);
    }
    match subject.store().read(&file, 1023) {
        Err(StoreError::TooLarge { limit: 1023, .. }) => {}
        other => panic!("{other:?}"),
    }
}

/// Lines are added one by one; a partial last one is ended first.
pub fn appends_whole_lines(subject: &impl StoreSubject) {
    let file = root(subject).join("events.jsonl");
    for line in [&b"{}"[..], b"", b"\xff"] {
        subject.store().append_line(&file, line).expect("it is appended");
    }
    assert_eq!(content(subject, &file).as_deref(), Some(&b"{}\n\n\xff\n"[..]));
    assert_eq!(subject.mode(&file), 0o600);
    subject.put(&file, b"{\"a\":1}\n{\"cut");
    subject.store().append_line(&file, b"{}").expect("it is appended");
    assert_eq!(content(subject, &file).as_deref(), Some(&b"{\"a\":1}\n{\"cut\n{}\n"[..]));
    assert!(subject.store().append_line(&file, b"a\nb").is_err(), "two lines are not one");
}

/// A file moves away once it is large enough; what stood at the other name is replaced.
pub fn rotates_large_files(subject: &impl StoreSubject) {
    let root = root(subject);
    let (file, old, link) = (root.join("log"), root.join("log.1"), root.join("link"));
    let store = subject.store();
    assert!(!store.rotate(&file, &old, 0).expect("an answer"), "nothing is there");
    subject.put(&file, b"12345678");
    assert!(!store.rotate(&file, &old, 9).expect("an answer"), "too small");
    assert_eq!(names(subject, &root), ["log"]);
    subject.put(&old, b"older");
    assert!(store.rotate(&file, &old, 8).expect("an answer"));
    assert_eq!(names(subject, &root), ["log.1"]);
    assert_eq!(content(subject, &old).as_deref(), Some(&b"12345678"[..]));
    subject.link(&link, &old);
    assert_wrong_kind(&store.rotate(&link, &root.join("x"), 0), &link);
    assert_eq!(names(subject, &root), ["link", "log.1"]);
}

/// Removing tells whether something was there.
pub fn removes_files(subject: &impl StoreSubject) {
    let root = root(subject);
    let (file, link, target) = (root.join("file"), root.join("link"), root.join("target"));
    subject.put(&file, b"x");
    subject.put(&target, b"x");
    subject.link(&link, &target);
    assert!(subject.store().remove(&file).expect("an answer"));
    assert!(!subject.store().remove(&file).expect("an answer"));
    assert!(subject.store().remove(&link).expect("an answer"), "the link itself");
    assert_eq!(names(subject, &root), ["target"]);
    assert!(subject.store().remove(&root).is_err(), "a directory");
}

/// Links say what they are told, replace links and nothing else, and are never followed.
pub fn makes_links(subject: &impl StoreSubject) {
    let root = root(subject);
    let (target, link, file) = (root.join("target"), root.join("link"), root.join("file"));
    let store = subject.store();
    subject.put(&target, b"precious");
    subject.put(&file, b"own");
    assert!(store.link(&link, &target).expect("it is made"));
    assert!(!store.link(&link, &target).expect("it is there"), "nothing changed");
    assert!(store.link(&link, Utf8Path::new("/elsewhere")).expect("it is replaced"));
    subject.link(&root.join("planted"), &target);
    assert!(store.link(&root.join("planted"), &root.join("other")).expect("it is replaced"));
    store.ensure_dir(&root.join("dir")).expect("it is made");
    subject.special(&root.join("special"));
    for name in ["file", "dir", "special"] {
        let path = root.join(name);
        assert_wrong_kind(&store.link(&path, &target), &path);
    }
    assert_eq!(content(subject, &target).as_deref(), Some(&b"precious"[..]));
    assert_eq!(content(subject, &file).as_deref(), Some(&b"own"[..]));
    assert!(store.link(&root.join("missing").join("link"), &target).is_err(), "no directory");
    subject.link(&root.join("way"), &root.join("dir"));
    assert!(store.link(&root.join("way").join("link"), &target).is_err(), "a link on the way");
    assert_eq!(names(subject, &root.join("dir")), Vec::<String>::new());
    let all = ["dir", "file", "link", "planted", "special", "target", "way"];
    assert_eq!(names(subject, &root), all, "no temporary link is left");
    // A file takes the place of a link, never of what it leads to.
    store.write(&link, b"file", 0o600).expect("it is written");
    assert_eq!(content(subject, &link).as_deref(), Some(&b"file"[..]));
}

/// Entries of every kind move as a whole, and only files give way.
pub fn sets_aside(subject: &impl StoreSubject) {
    let root = root(subject);
    let store = subject.store();
    let (file, dir, link) = (root.join("file"), root.join("dir"), root.join("link"));
    subject.put(&file, b"one");
    store.ensure_dir(&dir).expect("it is made");
    subject.put(&dir.join("inner"), b"x");
    subject.link(&link, &dir);
    assert!(!store.set_aside(&root.join("none"), "x").expect("an answer"));
    assert!(store.set_aside(&file, "file.aside").expect("moved"));
    assert!(store.set_aside(&dir, "dir.aside").expect("moved"));
    assert!(store.set_aside(&link, "file.aside").expect("a file gives way"));
    assert_eq!(names(subject, &root), ["dir.aside", "file.aside"]);
    assert_eq!(names(subject, &root.join("dir.aside")), ["inner"]);
    subject.put(&file, b"two");
    assert!(store.set_aside(&file, "dir.aside").is_err(), "a directory does not");
    assert_eq!(content(subject, &file).as_deref(), Some(&b"two"[..]));
}

/// The owner gets back what was taken, and nobody else keeps anything.
pub fn mends_modes(subject: &impl StoreSubject) {
    let root = root(subject);
    let (dir, file, link) = (root.join("dir"), root.join("file"), root.join("link"));
    let store = subject.store();
    store.ensure_dir(&dir).expect("it is made");
    store.write(&file, b"x", 0o040).expect("it is written");
    subject.link(&link, &file);
    assert_eq!(store.mend(&link).expect("an answer"), None, "a link is not followed");
    assert_eq!(subject.mode(&file), 0o040);
    assert_eq!(store.mend(&file).expect("an answer"), Some(0o040));
    assert_eq!(subject.mode(&file), 0o600);
    for whole in [&file, &dir, &root.join("none")] {
        assert_eq!(store.mend(whole).expect("an answer"), None, "{whole}");
    }
    assert_eq!(subject.mode(&dir), 0o700);
}

/// Modes are those of regular files.
pub fn tells_modes(subject: &impl StoreSubject) {
    let root = root(subject);
    let (file, link) = (root.join("file"), root.join("link"));
    let store = subject.store();
    assert_eq!(store.mode(&file).expect("an answer"), None);
    store.write(&file, b"x", 0o640).expect("it is written");
    assert_eq!(store.mode(&file).expect("an answer"), Some(0o640));
    subject.link(&link, &file);
    for path in [&link, &root] {
        assert_wrong_kind(&store.mode(path), path);
    }
}

/// Only an empty directory that no link leads to is removed.
pub fn removes_empty_directories(subject: &impl StoreSubject) {
    let root = root(subject);
    let (empty, filled, link) = (root.join("empty"), root.join("filled"), root.join("link"));
    for directory in [&empty, &filled, &filled.join("below")] {
        subject.store().ensure_dir(directory).expect("it is made");
    }
    subject.put(&root.join("file"), b"x");
    subject.link(&link, &filled);
    let removed = |path: &Utf8Path| subject.store().remove_empty_dir(path).expect("an answer");
    assert!(!removed(&filled), "it holds something");
    assert!(!removed(&link.join("below")), "a link is on the way");
    assert!(!removed(&link), "a link");
    assert!(!removed(&root.join("file")), "a file");
    assert!(removed(&empty));
    assert!(!removed(&empty), "it is gone");
    assert_eq!(names(subject, &root), ["file", "filled", "link"]);
    assert_eq!(names(subject, &filled), ["below"]);
}

/// Directories are made with their parents and closed to others, also those that exist.
pub fn makes_private_directories(subject: &impl StoreSubject) {
    let root = subject.root();
    let deep = root.join("a").join("b");
    for _ in 0..2 {
        subject.store().ensure_dir(&deep).expect("it is made");
        for directory in [&root, &root.join("a"), &deep] {
            assert_eq!(subject.mode(directory), 0o700, "{directory}");
        }
    }
    let (file, link) = (root.join("file"), root.join("link"));
    subject.put(&file, b"x");
    subject.link(&link, &deep);
    for path in [&file, &link] {
        assert_wrong_kind(&subject.store().ensure_dir(path), path);
    }
    assert!(subject.store().ensure_dir(&file.join("below")).is_err());
    assert_eq!(content(subject, &file).as_deref(), Some(&b"x"[..]));
}

/// Entries come in bytewise order and links as links.
pub fn lists_in_order(subject: &impl StoreSubject) {
    let root = root(subject);
    assert_eq!(subject.store().list(&root.join("none")).expect("an answer"), None);
    assert_eq!(names(subject, &root), Vec::<String>::new());
    for name in ["b", "a", "a.b", "Z", "é"] {
        subject.put(&root.join(name), b"x");
    }
    subject.store().ensure_dir(&root.join("d").join("inner")).expect("it is made");
    subject.link(&root.join("l"), &root.join("d"));
    subject.special(&root.join("s"));
    let listed = subject.store().list(&root).expect("an answer").expect("it exists");
    let expected = [
        ("Z", EntryKind::File),
        ("a", EntryKind::File),
        ("a.b", EntryKind::File),
        ("b", EntryKind::File),
        ("d", EntryKind::Directory),
        ("l", EntryKind::Symlink),
        ("s", EntryKind::Other),
        ("é", EntryKind::File),
    ];
    let expected = expected.map(|(name, kind)| DirEntry { name: name.to_owned(), kind });
    assert_eq!(listed, expected);
    for path in [root.join("l"), root.join("a")] {
        assert_wrong_kind(&subject.store().list(&path), &path);
    }
}

/// A lock has one holder at a time and is free once dropped; looking takes and makes nothing.
pub fn locks_have_one_holder(subject: &impl StoreSubject) {
    let root = root(subject);
    let (file, other) = (root.join("runner.lock"), root.join("other.lock"));
    let store = subject.store();
    assert!(!store.is_locked(&file).expect("an answer"));
    assert_eq!(names(subject, &root), Vec::<String>::new());
    for _ in 0..2 {
        let held = store.try_lock(&file).expect("an answer").expect("it is free");
        assert!(store.is_locked(&file).expect("an answer"));
        assert!(store.try_lock(&file).expect("an answer").is_none());
        assert!(store.try_lock(&other).expect("an answer").is_some());
        drop(held);
        assert!(!store.is_locked(&file).expect("an answer"));
    }
    assert_eq!(subject.mode(&file), 0o600);
}
