//! systemd user units: one template for a fleet, an instance for each role (02 §4.1).
//!
//! Read back with systemd 252 (`systemd-analyze --user verify`); tests: `golden/units.rs`.

use std::fmt::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use sha2::{Digest, Sha256};

use crate::id::RoleName;
use crate::layout::Homes;
use crate::port::RunState;

/// What a template says of this installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitFacts {
    /// The program `ours-fleet`, absolute, by the path that stays when it is updated.
    pub binary: Utf8PathBuf,
    /// The fleet home.
    pub home: Utf8PathBuf,
    /// `PATH` of whoever installs: a lingering manager has that of no login.
    pub path: Vec<Utf8PathBuf>,
}

/// The first line of every template: by it fleet knows its own files.
pub const MARKER: &str = "# Written by ours-fleet; `ours-fleet init` writes it again.";

/// What the name of every unit of every fleet begins with.
const PREFIX: &str = "ours-fleet-agent";

/// The name of a fleet's units without the role: of its own for each fleet home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitNames(String);

impl UnitNames {
    /// The names of the fleet with these homes.
    pub fn of(homes: &Homes) -> Self {
        if homes.fleet == homes.os {
            return Self(PREFIX.to_owned());
        }
        let digest = Sha256::digest(homes.fleet.as_str());
        let mut name = format!("{PREFIX}-");
        for byte in digest.iter().take(4) {
            let _ = write!(name, "{byte:02x}");
        }
        Self(name)
    }

    /// File name of the template.
    pub fn template(&self) -> String {
        format!("{}@.service", self.0)
    }

    /// The unit of one role. The characters of role names mean nothing to systemd.
    pub fn unit(&self, role: &RoleName) -> String {
        format!("{}@{role}.service", self.0)
    }
}

/// A value in double quotes; `%` begins a specifier. In the path of a program `$` means nothing.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '\\' | '"' => quoted.extend(['\\', c]),
            '%' => quoted.push_str("%%"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

fn search_path(directories: &[Utf8PathBuf]) -> String {
    let mut seen: Vec<&Utf8Path> = Vec::new();
    for directory in directories {
        if !seen.contains(&directory.as_path()) {
            seen.push(directory);
        }
    }
    seen.iter().map(|directory| directory.as_str()).collect::<Vec<_>>().join(":")
}

/// The text of the template.
pub fn template(facts: &UnitFacts) -> String {
    let variables = [
        ("PATH", search_path(&facts.path)),
        ("OURS_FLEET_HOME", facts.home.to_string()),
        ("OURS_FLEET_SUPERVISOR", "systemd".to_owned()),
    ];
    let mut environment = String::new();
    for (name, value) in variables {
        let _ = writeln!(environment, "Environment={}", quoted(&format!("{name}={value}")));
    }
    let binary = quoted(facts.binary.as_str());
    format!(
        "{MARKER}
[Unit]
Description=ours-fleet agent %i
Documentation=man:ours-fleet(1)
# The runner counts failures and holds a role down by itself; systemd would leave it silently dead.
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
{environment}ExecStart={binary} _run %i
# Not always: a runner that ended in order was told to.
Restart=on-failure
RestartSec=5
# Asked alone, the runner ends its agent in order; what is left after that is killed.
KillMode=mixed
TimeoutStopSec=15
# An agent that runs out of memory does not take its runner along.
OOMPolicy=continue
Slice=ours-fleet.slice
MemoryAccounting=yes
TasksAccounting=yes
UMask=0077

[Install]
WantedBy=default.target
"
    )
}

/// What a `systemctl show -p ActiveState -p SubState -p MainPID` says of a runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitState {
    /// Whether systemd holds the unit to be running, or about to.
    pub state: RunState,
    /// In systemd's words.
    pub detail: String,
    /// The main process, if there is one.
    pub pid: Option<u32>,
}

/// Reads the properties `ActiveState`, `SubState` and `MainPID`, in any order.
pub fn unit_state(shown: &str) -> UnitState {
    let value = |name: &str| {
        shown
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
            .unwrap_or_default()
    };
    let (active, sub) = (value("ActiveState"), value("SubState"));
    let state = match active {
        "active" | "activating" | "reloading" | "deactivating" => RunState::Running,
        "inactive" | "failed" => RunState::Stopped,
        _ => RunState::Unknown,
    };
    let detail = match active {
        "" => "systemd says nothing of it".to_owned(),
        active => format!("systemd: {active} ({sub})"),
    };
    let pid = value("MainPID").parse().ok().filter(|pid| *pid != 0);
    UnitState { state, detail, pid }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fleet_home_of_its_own_has_units_of_its_own() {
        let homes = |fleet: &str| Homes { fleet: fleet.into(), os: "/h".into(), passwd: None };
        let own = UnitNames::of(&homes("/h"));
        assert_eq!(own.template(), "ours-fleet-agent@.service");
        assert_eq!(own.unit(&"a-b".parse().expect("a name")), "ours-fleet-agent@a-b.service");
        let other = UnitNames::of(&homes("/h/fleet"));
        assert_eq!(other, UnitNames::of(&homes("/h/fleet")));
        assert_ne!(other, UnitNames::of(&homes("/h/fleet2")));
        assert_eq!(other.template().len(), "ours-fleet-agent-01234567@.service".len());
    }

    #[test]
    fn what_systemd_says_is_judged() {
        for (active, state) in [
            ("active", RunState::Running),
            ("activating", RunState::Running),
            ("deactivating", RunState::Running),
            ("inactive", RunState::Stopped),
            ("failed", RunState::Stopped),
            ("maintenance", RunState::Unknown),
            ("", RunState::Unknown),
        ] {
            let shown = format!("MainPID=0\nActiveState={active}\nSubState=x\n");
            assert_eq!(unit_state(&shown).state, state, "{active}");
            assert_eq!(unit_state(&shown).pid, None);
        }
        let shown = "ActiveState=active\nSubState=running\nMainPID=42\n";
        let running = UnitState {
            state: RunState::Running,
            detail: "systemd: active (running)".to_owned(),
            pid: Some(42),
        };
        assert_eq!(unit_state(shown), running);
        assert_eq!(unit_state("").state, RunState::Unknown);
    }

    #[test]
    fn hostile_paths_stay_one_word() {
        let text = template(&UnitFacts {
            binary: "/o p/t%n/\"q\"/$HOME/\\x".into(),
            home: "/h $x %h".into(),
            path: vec!["/b".into(), "/a%i".into(), "/b".into()],
        });
        assert!(text.contains(r#"ExecStart="/o p/t%%n/\"q\"/$HOME/\\x" _run %i"#), "{text}");
        assert!(text.contains(r#"Environment="OURS_FLEET_HOME=/h $x %%h""#), "{text}");
        assert!(text.contains(r#"Environment="PATH=/b:/a%%i""#), "{text}");
    }
}
