//! Requests of the operator socket, answered by a living runner.

use std::sync::Arc;
use std::time::Duration;

use fleet_core::harness::screen::Sight;
use fleet_core::lifecycle::{Event, Phase};
use fleet_core::status::Status;
use tokio::sync::oneshot;

use super::{Runner, attempt};
use crate::runner::agent::Observer;
use crate::runner::control::{Answer, Failure, Incoming};
use crate::runner::deliver::{Delivery, Refused, deliver};
use crate::runner::protocol::{Command, FailureKind, Peeked, RefusalReason};

/// How long a status waits for a look at the console.
const LOOK_LIMIT: Duration = Duration::from_secs(2);
/// A sender waits at least this long for those before him.
const LEAST_TURN: Duration = Duration::from_secs(1);

impl Runner {
    pub(super) fn answer(&mut self, request: Incoming) -> Option<Event> {
        let Incoming { command, reply } = request;
        match command {
            Command::Status => {
                self.status(reply);
                None
            }
            Command::Release => {
                drop(reply.send(Answer { result: Ok(serde_json::json!({})) }));
                Some(Event::Release)
            }
            Command::Peek { lines } => {
                self.with_agent(reply, move |observer| async move {
                    let text = attempt::peek(observer.tmux(), lines).await?;
                    if observer.driver().sight() > Sight::Nothing {
                        // The text is there: a look that fails takes nothing from it.
                        drop(observer.look().await);
                    }
                    let agent = observer.news().agent;
                    Ok(serde_json::to_value(Peeked { text, agent }).unwrap_or_default())
                });
                None
            }
            Command::SendKey { key } => {
                let typing = self.typing.clone();
                self.with_agent(reply, move |observer| async move {
                    let _turn = typing.lock().await;
                    attempt::press(observer.tmux(), &key).await
                });
                None
            }
            Command::SubmitPrompt { text, interrupt, timeout_ms } => {
                let typing = self.typing.clone();
                self.with_agent(reply, move |observer| async move {
                    let timeout = Duration::from_millis(timeout_ms);
                    let begun = observer.clock().monotonic();
                    // One text at a time: two senders never mix in one console. A sender who has no
                    // time left is told so, rather than typed for after he went.
                    let mut left = tokio::select! {
                        biased;
                        left = typing.lock() => left,
                        () = observer.clock().sleep(timeout.max(LEAST_TURN)) => {
                            return Err(refused(&RefusalReason::Busy.into()));
                        }
                    };
                    let timeout = timeout.saturating_sub(observer.clock().monotonic().since(begun));
                    let delivery = Delivery { text: &text, interrupt, timeout };
                    match deliver(&observer, &mut left, delivery).await {
                        Ok(delivered) => Ok(serde_json::to_value(delivered).unwrap_or_default()),
                        Err(reason) => Err(refused(&reason)),
                    }
                });
                None
            }
        }
    }

    /// Answers with the published status, the agent looked at once more where that tells something.
    fn status(&self, reply: oneshot::Sender<Answer>) {
        let mut status = self.status.clone();
        let json = |status: &Status| Answer {
            result: Ok(serde_json::to_value(status).unwrap_or_default()),
        };
        let looked_at = self
            .attempt
            .as_ref()
            .filter(|attempt| attempt.observer.driver().sight() > Sight::Nothing);
        let Some(attempt) = looked_at else {
            drop(reply.send(json(&status)));
            return;
        };
        let (observer, finder) = (attempt.observer.clone(), attempt.finder.clone());
        tokio::spawn(async move {
            tokio::select! {
                biased;
                seen = observer.look() => drop(seen),
                () = observer.clock().sleep(LOOK_LIMIT) => {}
            }
            if status.session_id.is_none()
                && let Some(id) = finder.and_then(|finder| finder.current())
            {
                observer.set_session(id.clone());
                status.session_id = Some(id);
            }
            status.agent = observer.news().agent;
            drop(reply.send(json(&status)));
        });
    }

    /// Runs a console operation beside the loop, or says that there is no console.
    fn with_agent<F, Fut>(&self, reply: oneshot::Sender<Answer>, operation: F)
    where
        F: FnOnce(Arc<Observer>) -> Fut,
        Fut: Future<Output = Result<serde_json::Value, Failure>> + Send + 'static,
    {
        let Some(attempt) = &self.attempt else {
            let state = self.status.state.as_str();
            // A start that has no console yet is no end of a session.
            let (kind, reason) = match self.life.phase() {
                Phase::Starting => (FailureKind::Rejected, RefusalReason::Starting),
                _ => (FailureKind::Offline, RefusalReason::Offline),
            };
            let failure = Failure {
                kind,
                message: format!("`{}` has no console: it is {state}", self.role),
                reason: Some(reason),
            };
            drop(reply.send(Answer { result: Err(failure) }));
            return;
        };
        let work = operation(attempt.observer.clone());
        tokio::spawn(async move { drop(reply.send(Answer { result: work.await })) });
    }
}

fn refused(refusal: &Refused) -> Failure {
    let reason = refusal.reason;
    let kind = match reason {
        RefusalReason::Offline => FailureKind::Offline,
        _ => FailureKind::Rejected,
    };
    Failure {
        kind,
        message: format!("nothing was submitted: {}", refusal.words()),
        reason: Some(reason),
    }
}
