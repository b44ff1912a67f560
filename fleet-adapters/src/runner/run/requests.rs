//! Requests of the operator socket, answered by a living runner.

use std::sync::Arc;
use std::time::Duration;

use fleet_core::lifecycle::{Event, Phase};
use fleet_core::port::Tmux;
use tokio::sync::oneshot;

use super::{Runner, attempt};
use crate::runner::control::{Answer, Failure, Incoming};
use crate::runner::deliver::{Delivery, deliver};
use crate::runner::protocol::{Command, FailureKind, Peeked, RefusalReason};

impl Runner {
    pub(super) fn answer(&mut self, request: Incoming) -> Option<Event> {
        let Incoming { command, reply } = request;
        match command {
            Command::Status => {
                let result = Ok(serde_json::to_value(&self.status).unwrap_or_default());
                drop(reply.send(Answer { result }));
                None
            }
            Command::Release => {
                drop(reply.send(Answer { result: Ok(serde_json::json!({})) }));
                Some(Event::Release)
            }
            Command::Peek { lines } => {
                self.with_console(reply, move |console| async move {
                    let text = attempt::peek(&*console, lines).await?;
                    Ok(serde_json::to_value(Peeked { text }).unwrap_or_default())
                });
                None
            }
            Command::SendKey { key } => {
                let typing = self.typing.clone();
                self.with_console(reply, move |console| async move {
                    let _turn = typing.lock().await;
                    attempt::press(&*console, &key).await
                });
                None
            }
            Command::SubmitPrompt { text, interrupt, timeout_ms } => {
                let (typing, clock) = (self.typing.clone(), self.runtime.ports.clock.clone());
                let screen = self.attempt.as_ref().map(|attempt| attempt.screen.clone());
                self.with_console(reply, move |console| async move {
                    // One text at a time: two senders never mix in one console.
                    let _turn = typing.lock().await;
                    let timeout = Duration::from_millis(timeout_ms);
                    let delivery = Delivery { text: &text, interrupt, timeout };
                    let screen = screen.unwrap_or_default();
                    match deliver(&*console, &*clock, &screen, delivery).await {
                        Ok(delivered) => Ok(serde_json::to_value(delivered).unwrap_or_default()),
                        Err(reason) => Err(refused(reason)),
                    }
                });
                None
            }
        }
    }

    /// Runs a console operation beside the loop, or says that there is no console.
    fn with_console<F, Fut>(&self, reply: oneshot::Sender<Answer>, operation: F)
    where
        F: FnOnce(Arc<dyn Tmux>) -> Fut,
        Fut: Future<Output = Result<serde_json::Value, Failure>> + Send + 'static,
    {
        if self.attempt.is_none() {
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
        }
        let work = operation(self.runtime.console(&self.role));
        tokio::spawn(async move { drop(reply.send(Answer { result: work.await })) });
    }
}

fn refused(reason: RefusalReason) -> Failure {
    let kind = match reason {
        RefusalReason::Offline => FailureKind::Offline,
        _ => FailureKind::Rejected,
    };
    Failure {
        kind,
        message: format!("nothing was submitted: {}", reason.words()),
        reason: Some(reason),
    }
}
