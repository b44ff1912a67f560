//! The verdict on each role of a fleet that loads.

use std::collections::BTreeMap;

use super::lexical::{LexicalProbe, world};
use super::{Finding, Level, named_home};
use crate::config::{Fleet, Role, Unavailable};
use crate::diagnostic::{Code, Diagnostic, Place};
use crate::harness::{Harness, Harnesses};
use crate::isolation::MountMode;
use crate::isolation::forbidden::{ForbiddenList, OwnDirs, Question, Side};
use crate::judge::fresh_start;
use crate::path::LexicalPath;
use crate::permissions::{Capability, Floor, Outer, Supported, Translation, Unattended};
use crate::plan::Assessment;
use crate::policy::order::{Dimension, Reach, Value};
use crate::port::PathProbe;
use crate::world::World;

/// Lists of forbidden paths that one check makes.
const MOST_HOMES: usize = 64;
const ROOT: &str = "/root";

/// Everything found about the roles of a fleet.
pub(super) fn fleet(fleet: &Fleet, harnesses: &Harnesses) -> Vec<Finding> {
    let mut judge = Judge { fleet, worlds: Vec::new(), found: Vec::new() };
    // The two that `assess` takes come first.
    judge.add_world(None);
    judge.add_world(LexicalPath::absolute(ROOT).ok());
    for key in fleet.unavailable.iter().filter(|key| key.place.is_some()) {
        judge.unavailable(None, key, Level::Warning);
    }
    for role in fleet.roles.values() {
        // A harness that is not registered did not load.
        let Some(harness) = harnesses.get(role.harness.as_str()) else { continue };
        judge.role(role, &**harness);
    }
    judge.found
}

/// A nominal account: the home that makes it differ, and what no role may reach there.
type Account = (Option<LexicalPath>, World, ForbiddenList);

/// A path that a role names, how it gets it, and the key that says so.
type NamedPath = (LexicalPath, MountMode, String);

struct Judge<'a> {
    fleet: &'a Fleet,
    worlds: Vec<Account>,
    found: Vec<Finding>,
}

impl Judge<'_> {
    fn role(&mut self, role: &Role, harness: &dyn Harness) {
        for key in &role.unavailable {
            if key.refuses {
                self.unavailable(Some(role), key, Level::Error);
            } else if key.place.is_some() {
                self.unavailable(Some(role), key, Level::Note);
            }
        }
        let reach = Reach::of(role, harness, &super::lexical::dirs(role));
        let mut paths: Vec<NamedPath> = Vec::new();
        if Assessment::wants_isolation(role) {
            for dimension in [Dimension::Paths, Dimension::Secrets] {
                let written = reach.grants(dimension).iter().filter(|grant| grant.written);
                paths.extend(written.filter_map(|grant| match &grant.value {
                    Value::Path { path, mode } => Some((path.clone(), *mode, grant.key.clone())),
                    _ => None,
                }));
            }
        }
        let briefing = role.briefing_file.iter();
        paths.extend(
            briefing.map(|file| (file.clone(), MountMode::ReadOnly, "briefing_file".to_owned())),
        );
        let mut named: BTreeMap<LexicalPath, Vec<NamedPath>> = BTreeMap::new();
        for path in paths {
            if let Some(home) = named_home(&path.0).filter(|home| *home != super::lexical::home()) {
                named.entry(home).or_default().push(path);
            }
        }
        // For root its home is no part of the system.
        let account = usize::from(named.keys().any(|home| home.as_str() == ROOT));
        let assessment = self.assess(role, harness, account);
        self.problems(&assessment);
        self.permissions(role, harness, &assessment);
        for (home, paths) in named {
            self.named_paths(role, &home, &paths);
        }
    }

    /// The account with one more home; `None` if the fleet names too many.
    fn world(&mut self, home: Option<&LexicalPath>) -> Option<&Account> {
        let known = self.worlds.iter().position(|(known, _, _)| known.as_ref() == home);
        let number = match known {
            Some(number) => number,
            None if self.worlds.len() >= MOST_HOMES => return None,
            None => {
                self.add_world(home.cloned());
                self.worlds.len() - 1
            }
        };
        self.worlds.get(number)
    }

    fn add_world(&mut self, home: Option<LexicalPath>) {
        let world = world(home.as_ref());
        let inputs = world.forbidden_inputs(self.fleet);
        let forbidden = ForbiddenList::build(&inputs, &LexicalProbe);
        self.worlds.push((home, world, forbidden));
    }

    /// Paths below the home of an account that the file names: its forbidden paths hold for them.
    fn named_paths(&mut self, role: &Role, home: &LexicalPath, paths: &[NamedPath]) {
        let mut found = Vec::new();
        if let Some((_, _, forbidden)) = self.world(Some(home)) {
            for (path, mode, key) in paths {
                let Ok(resolved) = LexicalProbe.resolve(path) else { continue };
                let question = Question {
                    side: Side::Source,
                    written: path.as_str(),
                    resolved: &resolved,
                    mode: *mode,
                    by_user: true,
                    own: &OwnDirs::default(),
                };
                if let Err(conflict) = forbidden.judge(&question, &LexicalProbe) {
                    found.push(conflict.diagnostic(key.clone()));
                }
            }
        } else {
            let message = format!("names the homes of more than {MOST_HOMES} accounts");
            let key = paths.first().map(|(_, _, key)| key.clone()).unwrap_or_default();
            found.push(Diagnostic::error(Code::Limit, message).path(key));
        }
        for problem in found {
            let path = format!("roles.{}.{}", role.name, problem.path);
            let mut problem = problem.role(role.name.as_str());
            problem.place = self.place(&path);
            self.found.push(Finding::of(&problem));
        }
    }

    fn assess(&self, role: &Role, harness: &dyn Harness, account: usize) -> Assessment {
        let (_, world, forbidden) = &self.worlds[account];
        let outer = Assessment::boundary(role, world.uid).unwrap_or(Outer::Off);
        fresh_start(self.fleet, role, harness, (world, forbidden), outer, &LexicalProbe)
    }

    fn problems(&mut self, assessment: &Assessment) {
        self.found.extend(assessment.problems.iter().map(Finding::of));
    }

    fn permissions(&mut self, role: &Role, harness: &dyn Harness, assessment: &Assessment) {
        const KEY: &str = "permissions";
        let declared = role.permissions_declared;
        match &assessment.effective {
            Translation::Supported(supported) => self.supported(role, supported),
            Translation::Unsupported { reason } if declared => {
                self.note(role, "unsupported", Level::Warning, KEY, reason.clone());
            }
            Translation::Unsupported { .. } => {}
        }
        for conflict in &assessment.conflicts {
            let neutral = conflict.neutral.as_deref().unwrap_or("nothing");
            let message = format!(
                "`{}` is `{}` by `harness_options`, which wins; `permissions` of the role say {neutral}",
                conflict.key, conflict.native
            );
            self.note(role, "conflict", Level::Warning, "harness_options", message);
        }
        if let Some(floor) = assessment.floor.as_ref().filter(|floor| !floor.is_met()) {
            let message = floor_text(role, harness, floor);
            self.note(role, "floor", Level::Warning, KEY, message);
        }
    }

    fn supported(&mut self, role: &Role, supported: &Supported) {
        const KEY: &str = "permissions";
        for refusal in &supported.refusals {
            self.note(role, "refused", Level::Error, KEY, refusal.clone());
        }
        for warning in &supported.warnings {
            self.note(role, "inexact", Level::Warning, KEY, warning.clone());
        }
        if !supported.measured {
            let message = "not qualified: the real program was not measured with these permissions";
            self.note(role, "unqualified", Level::Note, KEY, message.to_owned());
        }
    }

    fn note(&mut self, role: &Role, what: &str, level: Level, key: &str, message: String) {
        let path = format!("roles.{}.{key}", role.name);
        self.found.push(Finding {
            rule: format!("permissions/{what}"),
            level,
            role: Some(role.name.to_string()),
            path: key.to_owned(),
            message,
            place: self.place(&path),
        });
    }

    fn unavailable(&mut self, role: Option<&Role>, key: &Unavailable, level: Level) {
        let path = match role {
            Some(role) => format!("roles.{}.{}", role.name, key.path),
            None => key.path.clone(),
        };
        self.found.push(Finding {
            rule: "config/not-built".to_owned(),
            level,
            role: role.map(|role| role.name.to_string()),
            path: key.path.clone(),
            message: format!("{}; {}", key.reason, key.instead),
            place: key.place.clone().or_else(|| self.place(&path)),
        });
    }

    /// Where the nearest written value is.
    fn place(&self, path: &str) -> Option<Place> {
        self.fleet.provenance.lookup(path).map(|(_, place)| place)
    }
}

fn floor_text(role: &Role, harness: &dyn Harness, floor: &Floor) -> String {
    let missing: Vec<&str> = floor.missing.iter().copied().map(Capability::as_str).collect();
    let then = match floor.unattended {
        Unattended::Deny => "its questions are denied",
        Unattended::Wait => "its turn waits for an answer",
    };
    format!(
        "with nobody at the console a `{}` role with `approval: {}` and `filesystem: {}` lacks {}: {then}",
        harness.id(),
        role.permissions.approval.as_str(),
        role.permissions.filesystem.as_str(),
        missing.join(", "),
    )
}
