//! What a launch leaves in the role's directories before it starts.

use camino::Utf8PathBuf;
use fleet_core::briefing::{self, BriefingInputs};
use fleet_core::harness::StartMode;
use fleet_core::id::SessionId;
use fleet_core::isolation::IsolationPolicy;
use fleet_core::lifecycle::{RecordedSession, StartDecision};
use fleet_core::plan::Assessment;
use fleet_core::port::{PathProbe, StoreError};

use super::outer::Outer;
use super::{Attempt, Refused, json};
use crate::runner::sessions::{SessionFinder, recorded};

/// Briefing files are not larger (01 §1.7).
const MAX_BRIEFING: usize = 256 * 1024;

impl Attempt<'_> {
    pub(super) fn write_degraded_marker(
        &self,
        degraded: Option<&str>,
        now: &str,
    ) -> Result<(), Refused> {
        let (store, marker) = (&self.runtime.ports.store, self.trees.isolation_degraded());
        match degraded {
            Some(reason) => {
                let line = format!("{now} {}\n", reason.replace('\n', " "));
                store.write(&marker, line.as_bytes(), 0o600)?;
            }
            None => {
                store.remove(&marker)?;
            }
        }
        Ok(())
    }

    pub(super) fn write_state_files(&self) -> Result<(), Refused> {
        // The agent can replace its log by a link: `read` refuses one, and the launch says so. It can
        // also let it grow beyond any memory, so only whether it is there is asked, not what it holds.
        let store = &self.runtime.ports.store;
        let log = self.trees.worklog();
        match store.read(&log, 0) {
            Ok(Some(_)) | Err(StoreError::TooLarge { .. }) => Ok(()),
            Ok(None) => Ok(store.write(&log, b"", 0o600)?),
            Err(error) => {
                self.log.warn(&format!("worklog left alone: {error}"));
                Ok(())
            }
        }
    }

    pub(super) fn write_briefing(
        &self,
        assessment: &Assessment,
        policy: Option<&IsolationPolicy>,
        outer: &Outer<'_>,
        probe: &dyn PathProbe,
    ) -> Result<(), Refused> {
        let store = &self.runtime.ports.store;
        let curated = match &assessment.briefing {
            None if self.role.briefing_file.is_some() => {
                return Err(Refused::new("briefing_file was not judged".to_owned()));
            }
            None => None,
            // The very file that was judged: an agent may put another in its place at any moment.
            Some(file) => {
                let bytes = file
                    .read(probe, MAX_BRIEFING + 1)
                    .map_err(|error| Refused::new(format!("briefing_file: {error}")))?;
                if bytes.len() > MAX_BRIEFING {
                    let (path, most) = (&file.path, MAX_BRIEFING / 1024);
                    let message = format!("briefing_file {path} is larger than {most} KiB");
                    return Err(Refused::new(message));
                }
                Some(String::from_utf8_lossy(&bytes).into_owned())
            }
        };
        let text = briefing::render(&BriefingInputs {
            role: self.role,
            vocabulary: self.harness.vocabulary(),
            trees: self.trees,
            cwd: &assessment.dirs.cwd,
            user: &self.runtime.world.user,
            curated: curated.as_deref(),
            policy,
            backend: outer.backend.name(),
            degraded: outer.degraded.as_deref(),
        });
        Ok(store.write(&self.trees.briefing(), text.as_bytes(), 0o600)?)
    }

    pub(super) fn record_session(
        &self,
        home: &Utf8PathBuf,
        finder: Option<&SessionFinder>,
        decision: &StartDecision,
        session: Option<&SessionId>,
    ) -> Result<(), Refused> {
        if decision.mode == StartMode::Resume {
            return Ok(());
        }
        let (store, path) = (&self.runtime.ports.store, self.trees.session_id());
        // A conversation without an id leaves the one before it in its place.
        let previous =
            recorded(&**store, self.trees)?.and_then(|recorded| recorded.id.or(recorded.previous));
        let record = RecordedSession {
            version: 1,
            harness: self.harness.id().clone(),
            home: home.clone(),
            id: session.cloned(),
            after: finder.map(SessionFinder::newest),
            previous,
        };
        Ok(store.write(&path, &json(&record), 0o600)?)
    }
}
