use serde::{Deserialize, Serialize};

/// Version of the control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Version {
    /// One tree a controller.
    V1,
    /// One tree for all.
    V2,
}

impl Version {
    /// The text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "cgroup v1",
            Self::V2 => "cgroup v2",
        }
    }
}

/// One tree of control groups, and where a process is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    /// Its version.
    pub version: Version,
    /// Its controllers; of version 2 each group names its own.
    pub controllers: Vec<String>,
    /// Where it is mounted.
    pub mount: String,
    /// Directory of the process's own group: the mount, or below it.
    pub group: String,
}

/// The trees of a process, by the texts of its `mountinfo` and `cgroup` files in `/proc`. A tree whose
/// mount does not show the process's own group is left out, and so is every line that isn't one.
pub fn hierarchies(mountinfo: &str, cgroup: &str) -> Vec<Hierarchy> {
    cgroup.lines().filter_map(|line| own_group(line, mountinfo)).collect()
}

/// `4:memory:/a/b`, `0::/c`.
fn own_group(line: &str, mountinfo: &str) -> Option<Hierarchy> {
    let mut fields = line.splitn(3, ':');
    let (id, names, path) = (fields.next()?, fields.next()?, fields.next()?);
    if !path.starts_with('/') || path.split('/').any(|part| part == "..") {
        // Outside of what this cgroup namespace shows.
        return None;
    }
    let version = if id == "0" && names.is_empty() { Version::V2 } else { Version::V1 };
    let controllers: Vec<String> =
        names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    // A later mount is on top of an earlier one.
    let (mount, root) = mountinfo.lines().rev().filter_map(mount_of).find_map(|mount| {
        let fits = match version {
            Version::V2 => mount.fstype == "cgroup2",
            Version::V1 => {
                mount.fstype == "cgroup"
                    && controllers.iter().all(|name| mount.options.contains(&name.as_str()))
            }
        };
        fits.then_some((mount.point, mount.root))
    })?;
    // Where only a part of the tree is mounted, as in a container, its path is cut off.
    let root = root.trim_end_matches('/');
    let below = path.strip_prefix(root).filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
    let below = below.trim_end_matches('/');
    Some(Hierarchy { version, controllers, group: format!("{mount}{below}"), mount })
}

struct MountOf<'a> {
    root: &'a str,
    point: String,
    fstype: &'a str,
    options: Vec<&'a str>,
}

/// `32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu`. A path with an escape in it is
/// no usual place of a control group and is left out.
fn mount_of(line: &str) -> Option<MountOf<'_>> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ').skip(3);
    let (root, point) = (before.next()?, before.next()?);
    if root.contains('\\') || point.contains('\\') || !point.starts_with('/') {
        return None;
    }
    let mut after = after.split(' ');
    let (fstype, _, options) = (after.next()?, after.next()?, after.next()?);
    let point = point.trim_end_matches('/').to_owned();
    Some(MountOf { root, point, fstype, options: options.split(',').collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw";

    fn groups(mountinfo: &str, cgroup: &str) -> Vec<(Version, String)> {
        hierarchies(mountinfo, cgroup).into_iter().map(|it| (it.version, it.group)).collect()
    }

    #[test]
    fn each_tree_has_its_own_place() {
        let cgroup = "8:pids:/\n4:memory:/a/b\n1:cpu,cpuacct:/\n0::/c\nnonsense\n";
        assert_eq!(
            groups(HYBRID, cgroup),
            [
                (Version::V1, "/sys/fs/cgroup/memory/a/b".to_owned()),
                (Version::V1, "/sys/fs/cgroup/cpu,cpuacct".to_owned()),
                (Version::V2, "/sys/fs/cgroup/unified/c".to_owned()),
            ]
        );
    }

    #[test]
    fn of_a_container_only_the_mounted_part_counts() {
        let mounts = "5 4 0:29 /box/1 /sys/fs/cgroup ro - cgroup2 cgroup rw";
        for (cgroup, group) in [
            ("0::/box/1", Some("/sys/fs/cgroup")),
            ("0::/box/1/in", Some("/sys/fs/cgroup/in")),
            ("0::/box/12", None),
            ("0::/other", None),
            ("0::/../x", None),
            ("0::x", None),
        ] {
            let found = groups(mounts, cgroup);
            assert_eq!(found.first().map(|(_, group)| group.as_str()), group, "{cgroup}");
        }
    }

    #[test]
    fn garbage_has_no_group() {
        for text in ["", "::", "0::", "a - b", "1 2 3 / /x\\040y rw - cgroup2 c rw", "- - -"] {
            assert!(groups(text, "0::/").is_empty() && groups(HYBRID, text).is_empty(), "{text}");
        }
    }
}
