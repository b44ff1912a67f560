//! The form of a row.

use super::stage::Stage;
use crate::support::Host;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mode {
    Deny,
    Broker,
    Allowlist,
    Allow,
}

pub(super) const MODES: [Mode; 4] = [Mode::Deny, Mode::Broker, Mode::Allowlist, Mode::Allow];

impl Mode {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Broker => "broker",
            Self::Allowlist => "allowlist",
            Self::Allow => "allow",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum User {
    Root,
    Plain,
}

impl User {
    pub(super) fn of_this_process() -> Self {
        if Host::is_root() { Self::Root } else { Self::Plain }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Plain => "user",
        }
    }
}

/// Whether an answer, or what the host looks like after it, is a leak.
pub(super) type Leak = fn(&str, &Stage) -> bool;

#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// Words for the probe program, with `{names}` of the stage.
    Attempt { words: &'static [&'static str], leak: Leak },
    /// More than a probe can do: a test of its own, as `file::name` below `tests/escape`, or with the
    /// path of its file in front.
    Test(&'static str),
}

/// The same attempt without the protection.
#[derive(Clone, Copy)]
pub(super) enum Control {
    /// By the same launcher without isolation.
    Bare,
    /// By a `bwrap` in the shape of the predecessor: environment and descriptors inherited, nothing
    /// filtered, and all capabilities in the namespaces.
    Open,
    /// None, with the reason.
    None(&'static str),
}

/// Why something leaks as expected, or why there is no control.
pub(super) const REASONS: &[(&str, &str)] = &[
    ("allow", "`network: allow` is the network of the host, as asked"),
    ("declared", "declared in the file: it must work"),
    ("granted", "in a directory that the role may write, put there by the host"),
    ("same-role", "processes of one role are not kept apart (SECURITY.md)"),
    ("system", "the system itself refuses it to this user, with or without a sandbox"),
    ("kernel", "the kernel does not have it"),
    ("host", "this host has nothing of the kind to show"),
    ("root", "root is root already"),
    ("proxy", "only a proxy that reads on after its answer would obey"),
    ("busy", "the kernel lets nobody write a program that runs"),
    (
        "names",
        "names are not hidden by Landlock, nor what the system tells of a file without opening it",
    ),
    ("metadata", "Landlock does not look at mode, owner, times and attributes"),
    (
        "below",
        "it lies in a directory that the role may write: Landlock cannot take back what it granted above",
    ),
    (
        "bounding",
        "only with a capability could the bounding set be emptied; no_new_privs makes it useless",
    ),
    ("no namespaces", "what only a namespace of its own would hide"),
    ("caps", "caps are not set: its report says `missing`, and a strict role is refused"),
];

/// A row of the matrix.
#[derive(Clone, Copy)]
pub(super) struct Probe {
    /// Of the list of attempts (a letter behind it where one of the list is several), or `oN`.
    pub(super) number: &'static str,
    pub(super) tries: &'static str,
    /// How it is refused; names of errors, separated by `/`, are compared with the answer.
    pub(super) expected: &'static str,
    pub(super) kind: Kind,
    pub(super) control: Control,
    /// Why its control may not leak.
    pub(super) lack: &'static str,
    /// Where it gets through as expected.
    pub(super) leaks: &'static [(&'static [Mode], &'static str)],
    /// Where it must get through.
    pub(super) works: &'static [Mode],
}

pub(super) const fn probe(
    number: &'static str,
    tries: &'static str,
    expected: &'static str,
    words: &'static [&'static str],
    leak: Leak,
) -> Probe {
    let kind = Kind::Attempt { words, leak };
    Probe {
        number,
        tries,
        expected,
        kind,
        control: Control::Bare,
        lack: "system",
        leaks: &[],
        works: &[],
    }
}

pub(super) const fn test(number: &'static str, tries: &'static str, path: &'static str) -> Probe {
    Probe { kind: Kind::Test(path), ..probe(number, tries, "", &[], never) }
}

fn never(_: &str, _: &Stage) -> bool {
    false
}

impl Probe {
    /// The control is the shape of the predecessor.
    pub(super) const fn open(self) -> Self {
        Self { control: Control::Open, ..self }
    }

    pub(super) const fn no_control(self, reason: &'static str) -> Self {
        Self { control: Control::None(reason), ..self }
    }

    /// Why its control may not leak here.
    pub(super) const fn lack(self, reason: &'static str) -> Self {
        Self { lack: reason, ..self }
    }

    /// Gets through under `network: allow`.
    pub(super) const fn allow(self) -> Self {
        Self { leaks: &[(&[Mode::Allow], "allow")], ..self }
    }

    /// Gets through everywhere.
    pub(super) const fn always(self, leaks: &'static [(&'static [Mode], &'static str)]) -> Self {
        Self { leaks, ..self }
    }

    pub(super) const fn works(self, modes: &'static [Mode]) -> Self {
        Self { works: modes, ..self }
    }

    pub(super) fn excuse(&self, mode: Mode) -> Option<&'static str> {
        let found = self.leaks.iter().find(|(modes, _)| modes.contains(&mode));
        found.map(|(_, reason)| *reason)
    }

    /// Whether a refusal is the expected one; texts that are no names of errors are not compared.
    pub(super) fn expects(&self, answer: &str) -> bool {
        let known = |name: &str| ERRORS.iter().find(|(error, _)| *error == name);
        let names = || self.expected.split('/');
        if !names().all(|name| known(name).is_some()) {
            return true;
        }
        names().filter_map(known).any(|(_, prefix)| answer.starts_with(prefix))
    }
}

const ERRORS: &[(&str, &str)] = &[
    ("EPERM", "error 1 "),
    ("ENOENT", "error 2 "),
    ("ESRCH", "error 3 "),
    ("EBADF", "error 9 "),
    ("EACCES", "error 13 "),
    ("EBUSY", "error 16 "),
    ("EEXIST", "error 17 "),
    ("EXDEV", "error 18 "),
    ("EINVAL", "error 22 "),
    ("ENOSPC", "error 28 "),
    ("EROFS", "error 30 "),
    ("ENOSYS", "error 38 "),
    ("ENETUNREACH", "error 101 "),
    ("ECONNREFUSED", "error 111 "),
    ("SIGSYS", "killed 31"),
    ("400", "ok HTTP/1.1 400"),
    ("403", "ok HTTP/1.1 403"),
    ("502", "ok HTTP/1.1 502"),
];

/// What a probe came to in one start.
pub(super) enum Cell {
    /// Did not get through, and does without the protection.
    Blocked,
    /// Got through where it must.
    Works,
    /// Got through, as expected.
    Leak(&'static str),
    /// Did not get through, and would not without the protection either.
    NoControl(&'static str),
    /// See the test.
    Test,
    /// The backend starts no such role.
    Refused,
    /// There is no test of it for this backend.
    NotMeasured(&'static str),
    /// Got through although it must not, or was refused otherwise than expected.
    Unexpected(String),
    /// Did not get through although it must.
    Broken(String),
}

impl Cell {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Blocked => "blocked".to_owned(),
            Self::Works => "works".to_owned(),
            Self::Leak(reason) => format!("leak: {reason}"),
            Self::NoControl(reason) => format!("no control: {reason}"),
            Self::Test => "test".to_owned(),
            Self::Refused => "refused".to_owned(),
            Self::NotMeasured(reason) => format!("not measured: {reason}"),
            Self::Unexpected(_) => "UNEXPECTED LEAK".to_owned(),
            Self::Broken(_) => "BROKEN".to_owned(),
        }
    }

    pub(super) fn wrong(&self) -> Option<String> {
        match self {
            Self::Unexpected(answer) => Some(format!("got through: {answer}")),
            Self::Broken(answer) => Some(format!("must work: {answer}")),
            _ => None,
        }
    }
}
