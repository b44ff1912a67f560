//! The launcher's side: tries what the request lists until something holds.

use std::process::Child;

use camino::Utf8Path;
use fleet_core::isolation::{BackendName, EnforcementLevel, EnforcementRow, MemoryBytes};
use fleet_core::limits::{Attempt, GroupRecord, LimitRequest, Means, OutOfMemory, weakest};

use super::entering::{Entering, Starting, Stop};
use super::groups::Groups;
use super::scope::{Keeper, Scope};
use crate::launch::record;

/// What holds a started program.
#[derive(Debug)]
pub(crate) struct Held {
    /// What was read back.
    pub(crate) rows: Vec<EnforcementRow>,
    made: Made,
    request: LimitRequest,
}

/// What was made to hold a program.
#[derive(Debug)]
enum Made {
    Nothing,
    Groups(Groups),
    Scope(Scope),
}

impl Made {
    fn groups(&self) -> Option<&Groups> {
        match self {
            Self::Nothing => None,
            Self::Groups(groups) => Some(groups),
            Self::Scope(scope) => Some(scope.groups()),
        }
    }

    fn remove(&mut self) -> Result<(), String> {
        match self {
            Self::Nothing => Ok(()),
            Self::Groups(groups) => groups.remove(),
            Self::Scope(scope) => scope.remove(),
        }
    }
}

/// What a scope needs, if the request may come to one; to be called before any descriptor is passed on.
pub(crate) fn keeper(request: &LimitRequest) -> Option<Keeper> {
    let wanted = request.attempts.iter().any(|attempt| attempt.means == Means::Scope);
    // Without one the attempt fails, with these words, and the next one is made.
    wanted.then(Keeper::start)?.ok()
}

impl Held {
    /// Without a sandbox the command has the rights of whoever made its group, and can leave it. What
    /// podman starts was never known to be in it.
    pub(crate) fn judge(&mut self, backend: BackendName) {
        let (level, why) = match backend {
            BackendName::None => (EnforcementLevel::Degraded, "without a sandbox it can be undone"),
            BackendName::Podman => (EnforcementLevel::Missing, "on podman's client only"),
            BackendName::Bubblewrap | BackendName::Landlock => return,
        };
        let weaker = |row: &EnforcementRow| {
            row.level == EnforcementLevel::Enforced || level == EnforcementLevel::Missing
        };
        for row in self.rows.iter_mut().filter(|row| weaker(row)) {
            row.level = level;
            row.evidence = format!("{}; {why}", row.evidence);
        }
    }

    /// A process of ours that is to live until [`finish`](Self::finish).
    pub(crate) fn keeper(&self) -> Option<u32> {
        match &self.made {
            Made::Nothing | Made::Groups(_) => None,
            Made::Scope(scope) => scope.keeper(),
        }
    }

    /// To be called when the program and everything that it started has ended: tells whether the
    /// kernel killed any of it for want of memory, and removes the groups.
    pub(crate) fn finish(mut self) -> Option<OutOfMemory> {
        let MemoryBytes(cap) = self.request.resources.memory.unwrap_or(MemoryBytes(0));
        let kills = self.made.groups().and_then(Groups::memory_kills).unwrap_or(0);
        if self.made.remove().is_ok() {
            // Without it there is nothing left to look for.
            let _ = std::fs::remove_file(&self.request.record);
        }
        (kills > 0).then_some(OutOfMemory { kills, cap })
    }
}

/// Starts a program under the caps of a request. On `Ok` the program itself runs. On an error nothing
/// runs and nothing is left.
pub(crate) fn start(
    request: &LimitRequest,
    starting: &Starting<'_>,
    mut keeper: Option<Keeper>,
) -> Result<(Child, Held), String> {
    let mut record = known(request);
    let mut reasons = Vec::new();
    for attempt in &request.attempts {
        match try_one(request, attempt, starting, &mut record, &mut keeper) {
            Ok((child, mut held)) => {
                // A cap that is held by less than could be says what was tried before.
                let weak = |row: &&mut EnforcementRow| row.level != EnforcementLevel::Enforced;
                for row in held.rows.iter_mut().filter(weak) {
                    for reason in &reasons {
                        row.evidence = format!("{}; {reason}", row.evidence);
                    }
                }
                return Ok((child, held));
            }
            Err(Stop::Here(why)) => return Err(why),
            Err(Stop::Next(why)) => reasons.push(format!("{}: {why}", attempt.means)),
        }
    }
    let rule = request.strict.as_deref().map_or_else(String::new, |rule| {
        format!("{rule} refuses a start without the caps of `resources`: ")
    });
    Err(format!("{rule}{}", reasons.join("; ")))
}

fn try_one(
    request: &LimitRequest,
    attempt: &Attempt,
    starting: &Starting<'_>,
    record: &mut GroupRecord,
    keeper: &mut Option<Keeper>,
) -> Result<(Child, Held), Stop> {
    let note = |record: &mut GroupRecord, parent: &Utf8Path| {
        if !record.parents.iter().any(|known| known == parent) {
            record.parents.push(parent.to_owned());
        }
        record::publish(&request.record, record)
    };
    let (made, mut entering) = match attempt.means {
        Means::Group => {
            let mut note = |parent: &Utf8Path| note(record, parent);
            let made = Groups::make(&request.group, &attempt.caps, request.resources, &mut note);
            let groups = made.map_err(Stop::Next)?;
            let entering = Entering::begin(request, attempt, starting, groups.joining())?;
            (Made::Groups(groups), entering)
        }
        Means::Rlimits => (Made::Nothing, Entering::begin(request, attempt, starting, Vec::new())?),
        Means::Scope => {
            let noted = |error: std::io::Error| Stop::Next(error.to_string());
            record.scope.clone_from(&request.runtime_dir);
            record::publish(&request.record, record).map_err(noted)?;
            let mut entering = Entering::begin(request, attempt, starting, Vec::new())?;
            let scope = scope(request, keeper.take(), &entering).map_err(Stop::Next)?;
            for parent in scope.groups().parents() {
                note(record, parent).map_err(noted)?;
            }
            entering.moved()?;
            (Made::Scope(scope), entering)
        }
    };
    let rows = entering.rows()?;
    let lost = attempt.caps.iter().find_map(|cap| {
        let row = rows.iter().find(|row| row.item == cap.item());
        let weak = row.is_none_or(|row| row.level != EnforcementLevel::Enforced);
        weak.then(|| row.map_or_else(|| "nothing was read back".to_owned(), shown))
    });
    let refused = request.strict.as_ref().and_then(|_| weakest(&rows)).map(shown);
    if let Some(why) = lost.or(refused) {
        return Err(Stop::Next(why));
    }
    let child = entering.go()?;
    Ok((child, Held { rows, made, request: request.clone() }))
}

fn scope(
    request: &LimitRequest,
    keeper: Option<Keeper>,
    entering: &Entering,
) -> Result<Scope, String> {
    let keeper = keeper.ok_or_else(|| "no process to keep it was started".to_owned())?;
    let process = entering.pid();
    let runtime_dir = request.runtime_dir.as_deref();
    Scope::make(&request.group, runtime_dir, request.resources, keeper, process)
}

fn shown(row: &EnforcementRow) -> String {
    format!("{} is {}, {}", row.item.as_str(), row.level.as_str(), row.evidence)
}

/// What an earlier launch has left: not forgotten before it is gone.
fn known(request: &LimitRequest) -> GroupRecord {
    let text = std::fs::read(&request.record).unwrap_or_default();
    let before: GroupRecord = serde_json::from_slice(&text).unwrap_or_default();
    GroupRecord { group: Some(request.group.clone()), ..before }
}
