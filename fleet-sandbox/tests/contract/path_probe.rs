//! The suite of the port, on a real tree.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::path::LexicalPath;
use fleet_core::port::{FileKind, PathProbe};
use fleet_core::test_support::contract::path_probe::{NotRun, TreeFixture, path_probe_contract};
use fleet_sandbox::OpenatProbe;

use crate::support::{Host, lexical};

struct RealTree {
    // Unmounted before the tree below them is removed.
    mounts: Vec<Utf8PathBuf>,
    _dir: tempfile::TempDir,
    root: Utf8PathBuf,
}

impl RealTree {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("tempdir");
        let root = Utf8Path::from_path(dir.path()).expect("utf-8");
        let root = root.canonicalize_utf8().expect("real");
        Self { mounts: Vec::new(), _dir: dir, root }
    }

    /// The path, with its parents made.
    fn place(&self, path: &str) -> Utf8PathBuf {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().expect("below the root")).expect("mkdir");
        path
    }
}

impl Drop for RealTree {
    fn drop(&mut self) {
        for mount in self.mounts.drain(..) {
            let _ = Command::new("umount").arg(mount).status();
        }
    }
}

fn set_mode(path: &Utf8Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("chmod");
}

impl TreeFixture for RealTree {
    fn root(&self) -> LexicalPath {
        lexical(&self.root)
    }

    fn dir(&mut self, path: &str, mode: u32) {
        let path = self.place(path);
        std::fs::create_dir_all(&path).expect("mkdir");
        set_mode(&path, mode);
    }

    fn file(&mut self, path: &str, content: &[u8], mode: u32) {
        let path = self.place(path);
        std::fs::write(&path, content).expect("write");
        set_mode(&path, mode);
    }

    fn link(&mut self, path: &str, target: &str) {
        symlink(target, self.place(path)).expect("link");
    }

    fn hard_link(&mut self, existing: &str, path: &str) {
        std::fs::hard_link(self.root.join(existing), self.place(path)).expect("link");
    }

    fn special(&mut self, path: &str, kind: FileKind) {
        let path = self.place(path);
        match kind {
            FileKind::Socket => drop(UnixListener::bind(&path).expect("bind")),
            FileKind::Fifo => {
                assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo").success());
            }
            other => panic!("not special: {other:?}"),
        }
    }

    fn bind(&mut self, from: &str, to: &str) -> bool {
        if !Host::is_root() {
            return false;
        }
        let (from, to) = (self.root.join(from), self.root.join(to));
        let done = Command::new("mount").args(["--bind", from.as_str(), to.as_str()]).status();
        if done.is_ok_and(|status| status.success()) {
            self.mounts.push(to);
            return true;
        }
        false
    }

    fn closed_dir(&mut self, path: &str) -> bool {
        self.dir(path, 0o000);
        !Host::is_root()
    }

    fn uid(&self) -> u32 {
        rustix::process::getuid().as_raw()
    }

    fn probe(&self) -> Box<dyn PathProbe> {
        Box::new(OpenatProbe::new())
    }
}

#[test]
fn the_real_probe_keeps_the_contract() {
    let not_run = path_probe_contract(&mut RealTree::new());
    // Each of the two needs what the other must not have; both users run this suite.
    let expected =
        if Host::is_root() { "a directory that may not be entered" } else { "bind mounts" };
    assert_eq!(not_run, NotRun(vec![expected]));
}
