//! Ends and removes what belongs to the directory of a launch, also of one that was killed.

use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::CWD;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, wait};

use super::keeper::{PID, SHORT, SHORT_PREFIX};
use crate::procfs;

/// For the kernel to take down what was killed.
const LAST: Duration = Duration::from_secs(5);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(5);

/// The control group above those of all launches.
const SHARED: &str = "ours-fleet";

/// The name of a container: role and launch, as far as podman takes their letters.
pub(super) fn name(scratch: &Utf8Path) -> String {
    let part = |path: Option<&Utf8Path>| {
        let name = path.and_then(Utf8Path::file_name).unwrap_or("role");
        name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "_")
    };
    let role = scratch.parent().and_then(Utf8Path::parent);
    format!("fleet-{}-{}", part(role), part(Some(scratch)))
}

/// Its control group, where one can be made. Whatever is in it is ended with the launch, so no other has
/// the same, also of a role of the same name in another fleet.
pub(super) fn cgroup(scratch: &Utf8Path) -> String {
    // FNV-1a: the same in every version of this program.
    let hash = scratch.as_str().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{SHARED}/{}-{hash:016x}", name(scratch))
}

/// Kills what was started for the launch and is not this process, and takes in its own children.
pub(super) fn end(scratch: &Utf8Path) {
    let until = Instant::now() + LAST;
    loop {
        while matches!(wait(WaitOptions::NOHANG), Ok(Some(_))) {}
        let mut found = procfs::descendants(std::process::id());
        found.extend(belonging(scratch));
        for pid in &found {
            kill(*pid);
        }
        if found.is_empty() || Instant::now() > until {
            return;
        }
        std::thread::sleep(LOOK);
    }
}

/// Ends what a launch that is over left, and removes its directory, its short name and its control
/// groups. What cannot be removed stays for the next time.
pub(crate) fn clear(scratch: &Utf8Path) {
    let until = Instant::now() + LAST;
    loop {
        let groups = groups(scratch);
        let mut left = belonging(scratch);
        left.extend(groups.iter().flat_map(|group| members(group)));
        for pid in &left {
            kill(*pid);
        }
        // A group goes only when the last that was killed in it is really gone.
        if left.is_empty() && remove(&groups) {
            break;
        }
        if Instant::now() > until {
            return;
        }
        std::thread::sleep(LOOK);
    }
    if let Ok(short) = std::fs::read_to_string(scratch.join(SHORT)) {
        remove_short(&Utf8Path::new(&short).join("s"), scratch);
    }
    let _ = std::fs::remove_dir_all(scratch);
}

/// Removes what the keeper made for a short name, and nothing else: a directory with one link in it to
/// the launch's, or with nothing in it yet.
pub(super) fn remove_short(link: &Utf8Path, scratch: &Utf8Path) {
    let ours = |it: &&Utf8Path| {
        it.parent() == Some(Utf8Path::new("/tmp"))
            && it.file_name().is_some_and(|name| name.starts_with(SHORT_PREFIX))
    };
    let Some(directory) = link.parent().filter(ours) else { return };
    if rustix::fs::readlinkat(CWD, link.as_std_path(), Vec::new())
        .is_ok_and(|target| target.as_bytes() == scratch.as_str().as_bytes())
    {
        let _ = std::fs::remove_file(link);
    }
    let _ = std::fs::remove_dir(directory);
}

/// Living processes of this user that podman started for the launch, the container's first one too.
fn belonging(scratch: &Utf8Path) -> Vec<u32> {
    let own = std::process::id();
    let short = std::fs::read_to_string(scratch.join(SHORT)).unwrap_or_default();
    let mut words: Vec<&[u8]> = vec![scratch.as_str().as_bytes()];
    if !short.is_empty() {
        words.push(short.as_bytes());
    }
    let told = |pid: u32, file: &str| {
        let text = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        words.iter().any(|word| text.windows(word.len()).any(|window| window == *word))
    };
    let mut found: Vec<u32> = procfs::processes()
        .into_iter()
        .filter(|(pid, state, _)| *pid != own && !matches!(state, 'Z' | 'X'))
        .map(|(pid, ..)| pid)
        .filter(|pid| is_podmans(*pid) && (told(*pid, "cmdline") || told(*pid, "environ")))
        .collect();
    found.extend(first_process(scratch));
    found
}

/// Only programs that a launch starts: whoever merely names the directory, such as an editor, is left
/// alone.
fn is_podmans(pid: u32) -> bool {
    const PROGRAMS: &[&str] = &["podman", "conmon", "runc", "catatonit"];
    let name = name_of(pid);
    PROGRAMS.iter().any(|program| name.starts_with(program))
}

/// podman's monitor among what this process has started.
pub(super) fn monitor() -> Option<Pid> {
    let below = procfs::descendants(std::process::id());
    let monitor = below.into_iter().find(|pid| name_of(*pid) == "conmon")?;
    i32::try_from(monitor).ok().and_then(Pid::from_raw)
}

fn name_of(pid: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}

/// The container's first process, if the number still is its.
fn first_process(scratch: &Utf8Path) -> Option<u32> {
    let pid = std::fs::read_to_string(scratch.join(PID)).ok()?.trim().parse().ok()?;
    let mounts = std::fs::read(format!("/proc/{pid}/mountinfo")).ok()?;
    // The kernel tells sources from the root of their file system on, so only the end is compared.
    let mut parts: Vec<&str> = scratch.iter().rev().take(3).collect();
    parts.reverse();
    let tail = format!("/{}/", parts.join("/"));
    let mounts = String::from_utf8_lossy(&mounts);
    mounts
        .lines()
        .filter_map(|line| line.split(' ').nth(3))
        .any(|root| format!("{root}/").contains(&tail))
        .then_some(pid)
}

fn kill(pid: u32) {
    let Some(raw) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
    if let Ok(handle) = pidfd_open(raw, PidfdFlags::empty()) {
        let _ = pidfd_send_signal(&handle, Signal::KILL);
    }
}

/// As root podman makes groups, one for the container and one for its monitor, in each hierarchy. Those
/// that are there, each behind what is in it.
fn groups(scratch: &Utf8Path) -> Vec<Utf8PathBuf> {
    let root = Utf8Path::new("/sys/fs/cgroup");
    let own = cgroup(scratch);
    let mut found = Vec::new();
    if !rustix::process::getuid().is_root() {
        return found;
    }
    for at in directories(root).chain([root.to_owned()]) {
        let group = at.join(&own);
        if group.is_dir() {
            found.extend(directories(&group));
            found.push(group);
        }
    }
    found
}

fn directories(path: &Utf8Path) -> impl Iterator<Item = Utf8PathBuf> + use<> {
    let entries = path.read_dir_utf8().into_iter().flatten().flatten();
    entries
        .filter(|it| it.file_type().is_ok_and(|it| it.is_dir()))
        .map(camino::Utf8DirEntry::into_path)
}

fn members(group: &Utf8Path) -> Vec<u32> {
    let text = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid != 0).collect()
}

/// Whether none of them is there any more.
fn remove(groups: &[Utf8PathBuf]) -> bool {
    for group in groups {
        let _ = std::fs::remove_dir(group);
    }
    // The one above is shared by all launches: it goes with the last.
    for above in groups.iter().filter_map(|group| group.parent()) {
        if above.file_name() == Some(SHARED) {
            let _ = std::fs::remove_dir(above);
        }
    }
    groups.iter().all(|group| !group.exists())
}
