//! Control groups of one launch: made, joined, asked, removed.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::isolation::{EnforcementLevel, Resources};
use fleet_core::limits::{Cap, GroupName, Hierarchy, Version, knobs};
use rustix::fs::statfs;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::read::{has_controller, hierarchies_of, judge_group, own_hierarchies, tree_of, upwards};

/// The group below the one with the limits, in which the processes are.
const INNER: &str = "inner";
/// How long killed processes may take to leave a group.
const LAST: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(2);
/// Magic numbers of the two file systems, `linux/magic.h`.
const CGROUP: i64 = 0x0027_e0eb;
const CGROUP2: i64 = 0x6367_7270;

/// Where one cap is to be set.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    version: Version,
    /// Directories in which a group may be made, best first.
    parents: Vec<Utf8PathBuf>,
}

fn place(cap: Cap) -> Result<Place, String> {
    let all = own_hierarchies();
    let tree = tree_of(cap, &all).ok_or_else(|| {
        format!("no tree of control groups here has the controller `{}`", cap.controller())
    })?;
    Ok(Place { version: tree.version, parents: upwards(tree).collect() })
}

/// One group, with what it caps.
#[derive(Debug)]
struct Member {
    version: Version,
    directory: Utf8PathBuf,
    caps: Vec<Cap>,
}

/// The groups of one launch. Dropping them ends and removes them.
#[derive(Debug, Default)]
pub(super) struct Groups {
    members: Vec<Member>,
}

impl Groups {
    /// Makes groups of this name that hold these caps; `note` is told of each directory before
    /// something is made in it.
    pub(super) fn make(
        name: &GroupName,
        caps: &[Cap],
        resources: Resources,
        note: &mut dyn FnMut(&Utf8Path) -> std::io::Result<()>,
    ) -> Result<Self, String> {
        let mut groups = Self { members: Vec::new() };
        for cap in caps {
            groups.add(name, *cap, resources, note)?;
        }
        for member in &groups.members {
            let inner = member.directory.join(INNER);
            fs::create_dir(&inner).map_err(|error| format!("{inner}: {error}"))?;
        }
        Ok(groups)
    }

    fn add(
        &mut self,
        name: &GroupName,
        cap: Cap,
        resources: Resources,
        note: &mut dyn FnMut(&Utf8Path) -> std::io::Result<()>,
    ) -> Result<(), String> {
        let place = place(cap)?;
        let mut last = String::new();
        for parent in &place.parents {
            let directory = parent.join(name.as_str());
            let known = self.members.iter().position(|member| member.directory == directory);
            let made = match known {
                Some(_) => Ok(()),
                None => note(parent).and_then(|()| make_group(&directory)),
            };
            let set = made
                .map_err(|error| format!("{parent}: {error}"))
                .and_then(|()| offer(place.version, parent, &directory, cap))
                .and_then(|()| write_knobs(place.version, &directory, cap, resources));
            match (set, known.and_then(|index| self.members.get_mut(index))) {
                (Ok(()), Some(member)) => {
                    member.caps.push(cap);
                    return Ok(());
                }
                (Ok(()), None) => {
                    let version = place.version;
                    self.members.push(Member { version, directory, caps: vec![cap] });
                    return Ok(());
                }
                (Err(why), Some(_)) => last = why,
                (Err(why), None) => {
                    // What could not be made is no error here: the parent said why already.
                    let _ = fs::remove_dir(&directory);
                    last = why;
                }
            }
        }
        Err(last)
    }

    /// The groups of a scope that a process is in; what each holds is still to be read.
    pub(super) fn around(pid: u32, scope: &str) -> Result<Self, String> {
        let member = |tree: Hierarchy| {
            let directory = Utf8PathBuf::from(&tree.group);
            let caps = Cap::ALL.into_iter().filter(|cap| match tree.version {
                Version::V1 => tree.controllers.iter().any(|name| name == cap.controller()),
                Version::V2 => has_controller(&directory, *cap),
            });
            Member { version: tree.version, caps: caps.collect(), directory }
        };
        let members: Vec<Member> = hierarchies_of(&pid.to_string())
            .into_iter()
            .filter(|tree| Utf8Path::new(&tree.group).file_name() == Some(scope))
            .map(member)
            .collect();
        if members.is_empty() {
            return Err(format!("a process of {scope} is in no group of that name"));
        }
        Ok(Self { members })
    }

    /// Puts a process into a group below each.
    pub(super) fn move_below(&self, pid: u32) -> Result<(), String> {
        for member in &self.members {
            let inner = member.directory.join(INNER);
            fs::create_dir(&inner).map_err(|error| format!("{inner}: {error}"))?;
            write(&inner.join("cgroup.procs"), &pid.to_string())?;
        }
        Ok(())
    }

    /// The directories in which the groups are.
    pub(super) fn parents(&self) -> impl Iterator<Item = &Utf8Path> {
        self.members.iter().filter_map(|member| member.directory.parent())
    }

    /// Files to write a pid into, for it to join.
    pub(super) fn joining(&self) -> Vec<Utf8PathBuf> {
        self.members.iter().map(|it| it.directory.join(INNER).join("cgroup.procs")).collect()
    }

    /// Whether the kernel has a cap now, and of which version the group is that has it.
    pub(super) fn read_back(&self, cap: Cap, resources: Resources) -> Result<String, String> {
        let lost = || "no group has it".to_owned();
        let member = self.members.iter().find(|it| it.caps.contains(&cap)).ok_or_else(lost)?;
        let row =
            judge_group(member.version, &member.directory, cap, resources).ok_or_else(lost)?;
        if row.level == EnforcementLevel::Enforced {
            Ok(member.version.as_str().to_owned())
        } else {
            Err(row.evidence)
        }
    }

    /// How many processes the kernel killed for want of memory; `None` without a cap on it.
    pub(super) fn memory_kills(&self) -> Option<u64> {
        let member = self.members.iter().find(|member| member.caps.contains(&Cap::Mem))?;
        // Version 1 counts in the group of the killed process, version 2 in those above it as well.
        let count = |group: &Utf8Path| kills(member.version, group).unwrap_or(0);
        Some(count(&member.directory).max(count(&member.directory.join(INNER))))
    }

    /// Ends what runs in the groups and removes them.
    pub(super) fn remove(&mut self) -> Result<(), String> {
        let mut result = Ok(());
        for member in self.members.drain(..) {
            result = result.and(remove(&member.directory));
        }
        result
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        // Whatever stays is removed by name before the next launch of the role.
        let _ = self.remove();
    }
}

fn kills(version: Version, group: &Utf8Path) -> Option<u64> {
    let file = match version {
        Version::V1 => "memory.oom_control",
        Version::V2 => "memory.events",
    };
    let text = fs::read_to_string(group.join(file)).ok()?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

/// A group that is there already is another launch's, or was left by one that had this very id.
fn make_group(directory: &Utf8Path) -> std::io::Result<()> {
    fs::create_dir(directory)
}

/// A group of version 2 has a controller only if the one above it hands it on.
fn offer(version: Version, parent: &Utf8Path, group: &Utf8Path, cap: Cap) -> Result<(), String> {
    if version == Version::V1 || has_controller(group, cap) {
        return Ok(());
    }
    write(&parent.join("cgroup.subtree_control"), &format!("+{}", cap.controller()))?;
    if has_controller(group, cap) {
        Ok(())
    } else {
        Err(format!("{parent} does not hand on the controller `{}`", cap.controller()))
    }
}

fn write_knobs(
    version: Version,
    group: &Utf8Path,
    cap: Cap,
    resources: Resources,
) -> Result<(), String> {
    for knob in knobs(version, cap, resources) {
        let written = write(&group.join(knob.file), &knob.value);
        if knob.needed {
            written?;
        }
    }
    Ok(())
}

/// Writes in one call, as the kernel wants it, into a file that must be there.
fn write(path: &Utf8Path, value: &str) -> Result<(), String> {
    fs::OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| file.write_all(value.as_bytes()))
        .map_err(|error| format!("{path}: {error}"))
}

/// Whether a directory really belongs to a tree of control groups.
pub(super) fn is_control_group(directory: &Utf8Path) -> bool {
    statfs(directory.as_str()).is_ok_and(|about| [CGROUP, CGROUP2].contains(&about.f_type))
}

/// Ends whatever runs in a group, and in those below it, and removes all of them. Gone is fine.
pub(super) fn remove(group: &Utf8Path) -> Result<(), String> {
    let until = Instant::now() + LAST;
    loop {
        // Version 2 has a switch for it, that nothing can outrun.
        let _ = write(&group.join("cgroup.kill"), "1");
        let mut busy = None;
        for directory in below(group) {
            end_all(&directory);
            match fs::remove_dir(&directory) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => busy = Some(format!("{directory}: {error}")),
            }
        }
        match busy {
            None => return Ok(()),
            Some(why) if Instant::now() >= until => return Err(why),
            Some(_) => std::thread::sleep(PAUSE),
        }
    }
}

/// The groups below one, and itself last.
fn below(group: &Utf8Path) -> Vec<Utf8PathBuf> {
    let mut found = Vec::new();
    let mut queue = vec![group.to_owned()];
    while let Some(directory) = queue.pop() {
        if let Ok(entries) = directory.read_dir_utf8() {
            let inside = entries.flatten().filter(|it| it.file_type().is_ok_and(|it| it.is_dir()));
            queue.extend(inside.map(|entry| entry.path().to_owned()));
        }
        found.push(directory);
    }
    found.reverse();
    found
}

fn members(group: &Utf8Path) -> Vec<i32> {
    let list = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    list.lines().filter_map(|line| line.trim().parse().ok()).filter(|pid| *pid > 1).collect()
}

fn end_all(group: &Utf8Path) {
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    for pid in members(group).into_iter().filter(|pid| *pid != own) {
        let handle = Pid::from_raw(pid)
            .ok_or(Errno::SRCH)
            .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()));
        // Looked at again with the handle in hand: the number may have been given away meanwhile.
        if let Ok(handle) = handle
            && members(group).contains(&pid)
        {
            let _ = pidfd_send_signal(&handle, Signal::KILL);
        }
    }
}
