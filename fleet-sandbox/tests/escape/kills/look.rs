//! What is looked at before and after a kill: files, processes, what podman makes outside.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use camino::{Utf8Path, Utf8PathBuf};

use crate::support::Launch;

/// Everything about each file below a directory: kind and mode, for files also time and content.
pub(super) fn snapshot(root: &Utf8Path, except: &Utf8Path) -> BTreeMap<Utf8PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut ahead = vec![root.to_owned()];
    while let Some(path) = ahead.pop() {
        let about = std::fs::symlink_metadata(&path).expect("listed");
        let mut text = format!("{:o}", about.permissions().mode());
        if about.is_dir() {
            let entries = path.read_dir_utf8().expect("a directory");
            ahead.extend(entries.map(|entry| entry.expect("entry").into_path()));
        } else if about.is_symlink() {
            text += path.read_link_utf8().expect("a link").as_str();
        } else if path != except {
            let content = std::fs::read(&path).expect("a file");
            let (seconds, nanos) = (about.mtime(), about.mtime_nsec());
            text = format!("{text} {seconds} {nanos} {content:?}");
        }
        found.insert(path, text);
    }
    found
}

/// Living processes that name a directory in their arguments or their environment.
pub(super) fn processes_of(base: &Utf8Path) -> Vec<(u32, String)> {
    let own = std::process::id();
    pids()
        .filter(|pid| *pid != own)
        .filter_map(|pid| {
            let told = |file: &str| {
                let text = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
                String::from_utf8_lossy(&text).replace('\0', " ")
            };
            let line = told("cmdline");
            let ours = line.contains(base.as_str()) || told("environ").contains(base.as_str());
            ours.then_some((pid, line))
        })
        .collect()
}

/// What belongs to the session that a process led.
pub(super) fn session_of(leader: u32) -> Vec<u32> {
    pids().filter(|pid| session(*pid) == Some(leader)).collect()
}

/// The session of a process, the sixth word of its `stat`.
pub(super) fn session(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(3)?.parse().ok()
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").expect("/proc");
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

pub(super) fn children(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// What a launch has on the host beside processes: its directory, mounts, control groups, short names.
pub(super) fn left_on_the_host(launch: &Launch) -> Vec<String> {
    let boxes = launch.control.join("boxes");
    let mut found: Vec<String> = entries(&boxes).map(|path| path.to_string()).collect();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    found.extend(mounts.lines().filter(|it| it.contains(launch.base.as_str())).map(str::to_owned));
    // Control groups of a container are named for the control directory, which is called as the base.
    let name = launch.base.file_name().expect("a name");
    let root = Utf8Path::new("/sys/fs/cgroup");
    for tree in entries(root).chain([root.to_owned()]) {
        let groups = entries(&tree.join("ours-fleet"));
        found.extend(groups.filter(|it| it.as_str().contains(name)).map(|it| it.to_string()));
    }
    found.extend(entries("/tmp".into()).map(|it| it.join("s")).filter_map(|link| {
        let target = link.read_link_utf8().ok()?;
        target.starts_with(&launch.control).then(|| link.to_string())
    }));
    // What the runtime keeps of containers that it was not told to remove names where they were.
    for state in entries("/run/runc".into()).map(|it| it.join("state.json")) {
        let text = std::fs::read_to_string(&state).unwrap_or_default();
        found.extend(text.contains(launch.base.as_str()).then(|| state.to_string()));
    }
    found
}

/// What is in a directory; nothing if there is none.
fn entries(directory: &Utf8Path) -> impl Iterator<Item = Utf8PathBuf> + use<> {
    directory.read_dir_utf8().into_iter().flatten().flatten().map(camino::Utf8DirEntry::into_path)
}

#[test]
fn a_snapshot_tells_content_mode_and_time() {
    let launch = Launch::new();
    let file = launch.cwd.join("file");
    std::fs::write(&file, "a").expect("write");
    let none = Utf8Path::new("/none");
    let before = snapshot(&launch.cwd, none);
    assert_eq!(before, snapshot(&launch.cwd, none));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("chmod");
    let mode = snapshot(&launch.cwd, none);
    assert_ne!(before, mode);
    std::fs::write(&file, "a").expect("write");
    assert_ne!(mode, snapshot(&launch.cwd, none), "the time of a file");
    std::fs::create_dir(launch.cwd.join("ghost")).expect("mkdir");
    assert_eq!(snapshot(&launch.cwd, none).len(), 3);
}
