//! The escape list as a table: each attempt is made inside every backend and network mode, by one
//! start of each, and without the protection (the control). A probe whose control does not leak
//! proves nothing and counts apart. What comes out is `docs/escape-matrix.md`.
//!
//! To add a backend, add a line to `backends::ALL`; to add an attempt, a row below `probes/`.

mod backends;
mod confined;
mod probe;
mod probes;
mod run;
mod stage;
mod table;

use std::collections::{BTreeMap, BTreeSet};

use backends::Entry;
use probe::{Cell, Control, Kind, MODES, Mode, Probe, REASONS, User};
use stage::Stage;
use table::Rows;

use crate::support::{Host, need_bwrap, skip};

/// What one start gave: the answers by number of the probe, and the host as it was after.
struct Ran {
    answers: BTreeMap<&'static str, String>,
    stage: Stage,
}

impl Ran {
    fn leaks(&self, probe: &Probe, leak: probe::Leak) -> bool {
        leak(self.answer(probe), &self.stage)
    }

    fn answer(&self, probe: &Probe) -> &str {
        let answer = self.answers.get(probe.number);
        answer.unwrap_or_else(|| panic!("{} was not attempted", probe.number))
    }
}

struct Controls {
    bare: Ran,
    open: Ran,
}

impl Controls {
    fn run() -> Self {
        Self { bare: run::bare(), open: run::open() }
    }

    /// Whether the attempt gets through without the protection.
    fn leaks(&self, probe: &Probe, leak: probe::Leak) -> bool {
        match probe.control {
            Control::Bare => self.bare.leaks(probe, leak),
            Control::Open => self.open.leaks(probe, leak),
            Control::None(_) => false,
        }
    }
}

/// What a probe came to, and what is wrong with that.
fn judge(probe: &Probe, entry: &Entry, mode: Mode, inside: &Ran, controls: &Controls) -> Cell {
    let leak = match probe.kind {
        Kind::Attempt { leak, .. } => leak,
        Kind::Test(_) => {
            let tested = entry.tests.is_none_or(|rows| rows.contains(&probe.number));
            return if tested { Cell::Test } else { Cell::NotMeasured("caps") };
        }
    };
    let answer = inside.answer(probe);
    assert!(!answer.contains("unknown attempt"), "{}: {answer}", probe.number);
    let leaked = inside.leaks(probe, leak);
    if probe.works.contains(&mode) {
        return if leaked { Cell::Works } else { Cell::Broken(answer.to_owned()) };
    }
    let excuse = entry
        .leaks
        .iter()
        .find(|(number, _)| *number == probe.number)
        .map(|(_, reason)| *reason)
        .or_else(|| probe.excuse(mode));
    match (leaked, excuse) {
        (true, Some(reason)) => Cell::Leak(reason),
        (true, None) => Cell::Unexpected(answer.to_owned()),
        (false, _) if !controls.leaks(probe, leak) => Cell::NoControl(match probe.control {
            Control::None(reason) => reason,
            Control::Bare | Control::Open => probe.lack,
        }),
        (false, _) => {
            if entry.exact && !probe.expects(answer) {
                return Cell::Unexpected(format!("{answer} instead of {}", probe.expected));
            }
            Cell::Blocked
        }
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "a backend that cannot be used is said to be left out")]
fn nothing_gets_out_of_any_backend_in_any_mode() {
    need_bwrap!();
    if cfg!(not(target_arch = "x86_64")) {
        skip!("the numbers of system calls are those of x86-64");
    }
    let user = User::of_this_process();
    let controls = Controls::run();
    let mut rows = Rows::default();
    let mut wrong = Vec::new();
    for entry in backends::ALL {
        if !entry.usable() {
            let required = std::env::var("REQUIRE_ALL").is_ok_and(|value| value == "1");
            assert!(!required, "{} cannot be used here although REQUIRE_ALL=1", entry.name);
            eprintln!("skipped: {} cannot be used here", entry.name);
            continue;
        }
        for mode in MODES {
            if !entry.takes(mode, user) {
                for probe in probes::all() {
                    rows.add(entry.name, probe.number, mode, user, &Cell::Refused);
                }
                let refuses = user == User::Root || entry.refuses(&run::policy_of(mode));
                assert!(
                    refuses,
                    "{} takes {mode:?} although its column says otherwise",
                    entry.name
                );
                continue;
            }
            let inside = run::inside(entry, mode);
            for probe in probes::all() {
                let cell = judge(probe, entry, mode, &inside, &controls);
                if let Some(what) = cell.wrong() {
                    wrong
                        .push(format!("{} {mode:?} {user:?} {}: {what}", entry.name, probe.number));
                }
                rows.add(entry.name, probe.number, mode, user, &cell);
            }
            // Whatever the answers say: nobody reached what is not listed.
            if mode != Mode::Allow && entry.exact {
                assert_eq!(
                    inside.stage.uninvited(),
                    Vec::<String>::new(),
                    "{} {mode:?}",
                    entry.name
                );
            }
        }
    }
    if let Some(directory) = std::env::var_os("OURS_FLEET_ESCAPES") {
        rows.write(directory.as_ref(), user);
    } else {
        wrong.extend(rows.differences(user));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_attempt_of_the_list_has_a_row_and_every_row_its_reasons() {
    let mut numbers = BTreeSet::new();
    for probe in probes::all() {
        assert!(numbers.insert(probe.number), "{} twice", probe.number);
        let reasons = probe.leaks.iter().map(|(_, reason)| *reason).chain([probe.lack]);
        for reason in reasons.chain(match (probe.control, probe.kind) {
            (Control::None(reason), _) => Some(reason),
            _ => None,
        }) {
            assert!(REASONS.iter().any(|(name, _)| *name == reason), "{reason}");
        }
        if let Kind::Test(path) = probe.kind {
            table::assert_exists(path);
        }
    }
    for number in 1..=55 {
        let found = numbers.iter().any(|known| {
            known.trim_end_matches(|c: char| c.is_ascii_lowercase()) == number.to_string()
        });
        assert!(found, "{number} of the list has no row");
    }
    let own = numbers.iter().filter(|number| number.starts_with('o')).count();
    assert!(own >= 25, "only {own} of our own");
    for entry in backends::ALL {
        for (number, reason) in entry.leaks {
            assert!(numbers.contains(number), "{number}");
            assert!(REASONS.iter().any(|(name, _)| name == reason), "{reason}");
        }
    }
}

#[test]
fn a_judgement_can_be_bad_news() {
    need_bwrap!();
    // The controls themselves, judged as if they were a backend: almost everything leaks.
    let controls = Controls::run();
    let entry = &backends::ALL[0];
    let leaks = probes::all().filter(|probe| {
        let ran = match probe.control {
            Control::Bare => &controls.bare,
            Control::Open => &controls.open,
            Control::None(_) => return false,
        };
        judge(probe, entry, Mode::Deny, ran, &controls).wrong().is_some()
    });
    let least = if Host::is_root() { 80 } else { 60 };
    let count = leaks.count();
    assert!(count >= least, "only {count} leak");
}
