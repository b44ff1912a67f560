//! Reads `/proc`: mounts, process status, parents. Parsing is apart from reading.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use fleet_core::port::ProcessIdentity;

/// One line of a `mountinfo` file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MountLine {
    /// Where it is mounted, unescaped.
    pub(crate) point: Vec<u8>,
    /// Per-mount options.
    pub(crate) options: Vec<String>,
    /// File system type.
    pub(crate) fstype: String,
    /// Options of the file system.
    pub(crate) super_options: Vec<String>,
}

impl MountLine {
    pub(crate) fn is_read_only(&self) -> bool {
        self.options.iter().any(|option| option == "ro")
    }

    pub(crate) fn super_option(&self, name: &str) -> Option<&str> {
        self.super_options.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    }
}

/// The lines of a `mountinfo` file; malformed ones are left out.
pub(crate) fn mountinfo(text: &[u8]) -> impl Iterator<Item = MountLine> + '_ {
    text.split(|byte| *byte == b'\n').filter_map(mount_line)
}

/// The mount points of a `mountinfo` file alone, unescaped; malformed lines are left out.
pub(crate) fn mount_points(text: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    text.split(|byte| *byte == b'\n').filter_map(|line| {
        let mut fields = line.split(|byte| *byte == b' ');
        let point = fields.nth(4)?;
        fields.find(|field| *field == b"-").map(|_| unescape(point))
    })
}

fn mount_line(line: &[u8]) -> Option<MountLine> {
    let mut fields = line.split(|byte| *byte == b' ');
    let point = unescape(fields.nth(4)?);
    let list = |field: &[u8]| {
        String::from_utf8_lossy(field).split(',').map(str::to_owned).collect::<Vec<_>>()
    };
    let options = list(fields.next()?);
    fields.find(|field| *field == b"-")?;
    let fstype = String::from_utf8_lossy(fields.next()?).into_owned();
    let super_options = list(fields.nth(1).unwrap_or_default());
    Some(MountLine { point, options, fstype, super_options })
}

/// Undoes the kernel's octal escapes (`\040` and so on).
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, tail)) = rest.split_first() {
        let octal = (*first == b'\\')
            .then(|| tail.get(..3))
            .flatten()
            .filter(|digits| digits.iter().all(|digit| (b'0'..=b'7').contains(digit)))
            .and_then(|digits| {
                u8::try_from(
                    digits.iter().fold(0_u32, |sum, digit| sum * 8 + u32::from(digit - b'0')),
                )
                .ok()
            });
        if let Some(byte) = octal {
            plain.push(byte);
            rest = &tail[3..];
        } else {
            plain.push(*first);
            rest = tail;
        }
    }
    plain
}

/// The fields of `/proc/<pid>/status`.
pub(crate) fn status(pid: u32) -> Option<BTreeMap<String, String>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(
        text.lines()
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
            .collect(),
    )
}

/// Names of the network interfaces that a process sees.
pub(crate) fn interfaces(pid: u32) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/net/dev")).ok()?;
    // Two lines of heading.
    let lines = text.lines().skip(2).filter_map(|line| line.split_once(':'));
    Some(lines.map(|(name, _)| name.trim().to_owned()).collect())
}

/// Which of these addresses a TCP socket listens at in the network of a process.
///
/// The kernel walks its whole table for each file, some milliseconds, so only those are read that can
/// name one of the addresses.
pub(crate) fn listening(pid: u32, wanted: &[SocketAddr]) -> Option<Vec<SocketAddr>> {
    let mut found = Vec::new();
    for (name, is_its) in
        [("tcp", SocketAddr::is_ipv4 as fn(&SocketAddr) -> bool), ("tcp6", SocketAddr::is_ipv6)]
    {
        if wanted.iter().any(is_its) {
            let text = std::fs::read_to_string(format!("/proc/{pid}/net/{name}")).ok()?;
            found.extend(text.lines().filter_map(listening_line).filter(|at| wanted.contains(at)));
        }
    }
    Some(found)
}

/// `  0: 0100007F:0277 00000000:0000 0A …`: words of the address in the byte order of the host.
fn listening_line(line: &str) -> Option<SocketAddr> {
    const LISTEN: &str = "0A";
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (address, port) = fields.next()?.split_once(':')?;
    if fields.nth(1)? != LISTEN {
        return None;
    }
    let mut bytes = Vec::with_capacity(16);
    for word in address.as_bytes().chunks(8) {
        let word = u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    let address = match bytes.as_slice() {
        [a, b, c, d] => IpAddr::from([*a, *b, *c, *d]),
        _ => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?),
    };
    Some(SocketAddr::new(address, u16::from_str_radix(port, 16).ok()?))
}

/// The fields of `/proc/<pid>/stat` from the third on.
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    // The name in parentheses may hold anything, parentheses too.
    let fields = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace();
    let fields: Vec<String> = fields.map(str::to_owned).collect();
    (!fields.is_empty()).then_some(fields)
}

/// State letter and parent of a process.
fn state_and_parent(pid: u32) -> Option<(char, u32)> {
    let fields = stat(pid)?;
    Some((fields.first()?.chars().next()?, fields.get(1)?.parse().ok()?))
}

/// What names a living process for good.
pub(crate) fn identity(pid: u32) -> Option<ProcessIdentity> {
    const START_TIME: usize = 22 - 3;
    let fields = stat(pid).filter(|fields| !matches!(fields[0].as_str(), "Z" | "X"))?;
    let start_time = fields.get(START_TIME)?.parse().ok()?;
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(ProcessIdentity { pid, start_time, boot_id: boot_id.trim().to_owned() })
}

pub(crate) fn processes() -> Vec<(u32, char, u32)> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid| state_and_parent(pid).map(|(state, parent)| (pid, state, parent)))
        .collect()
}

/// Living children of a process, oldest first as far as pids tell.
pub(crate) fn children(parent: u32) -> Vec<u32> {
    // One small file where the kernel has it, instead of a walk over all processes.
    if let Ok(list) = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")) {
        return list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect();
    }
    let mut found: Vec<u32> = processes()
        .into_iter()
        .filter(|(_, state, above)| *above == parent && !matches!(state, 'Z' | 'X'))
        .map(|(pid, ..)| pid)
        .collect();
    found.sort_unstable();
    found
}

/// Living processes below a process.
pub(crate) fn descendants(ancestor: u32) -> Vec<u32> {
    let all = processes();
    let mut found = Vec::new();
    let mut queue = vec![ancestor];
    while let Some(parent) = queue.pop() {
        for (pid, state, above) in &all {
            if *above == parent {
                queue.push(*pid);
                if !matches!(state, 'Z' | 'X') {
                    found.push(*pid);
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_lines_are_unescaped_and_split() {
        let text =
            b"36 35 98:0 /m /a\\040b\\134c rw,noatime master:1 - ext3 /dev/root rw,size=64k\nx\n";
        let lines: Vec<_> = mountinfo(text).collect();
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].point, b"/a b\\c");
        assert!(!lines[0].is_read_only());
        assert_eq!(
            (lines[0].fstype.as_str(), lines[0].super_option("size")),
            ("ext3", Some("64k"))
        );
    }

    #[test]
    fn an_escape_that_is_no_octal_byte_stays() {
        assert_eq!(unescape(b"a\\9\\777\\04"), b"a\\9\\777\\04");
    }
}
