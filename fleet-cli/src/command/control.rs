//! Requests to a role's runner, and what their failure means.

use std::time::Duration;

use fleet_adapters::runner::control::{Client, Failure};
use fleet_adapters::runner::observe::RoleView;
use fleet_adapters::runner::protocol::{Command, FailureKind, RefusalReason};
use serde::de::DeserializeOwned;

use super::target::not_running;
use crate::app::App;
use crate::error::{CliError, ErrorKind};
use crate::exit::ExitStatus;

/// Sends one request to the runner of a role.
///
/// # Errors
/// Each failure is classified once; only an offline session says that the agent is gone.
pub async fn call<T: DeserializeOwned>(
    app: &App,
    view: &RoleView,
    command: Command,
    limit: Duration,
) -> Result<T, CliError> {
    let trees = app.runtime.trees(&view.name);
    let sends = matches!(command, Command::SubmitPrompt { .. } | Command::SendKey { .. });
    let client = Client::new(&*app.runtime.ports.store, &trees);
    let result = match client {
        Ok(client) => client.call(command, limit).await,
        Err(failure) => Err(failure),
    };
    let value = result.map_err(|failure| classified(view, failure, sends))?;
    serde_json::from_value(value).map_err(|_| {
        let message = "the runner's answer could not be read".to_owned();
        classified(view, Failure::new(FailureKind::Backend, message), sends)
    })
}

fn classified(view: &RoleView, failure: Failure, sends: bool) -> CliError {
    if failure.kind == FailureKind::Offline {
        return not_running(view);
    }
    let name = &view.name;
    let status = match (failure.kind, failure.reason) {
        (FailureKind::Timeout | FailureKind::ControlUnavailable | FailureKind::Unauthorized, _) => {
            ExitStatus::NoAnswer
        }
        (
            FailureKind::Rejected,
            Some(
                RefusalReason::Modal
                | RefusalReason::Draft
                | RefusalReason::NotSeen
                | RefusalReason::Busy
                | RefusalReason::Starting
                | RefusalReason::CaptureFailed,
            ),
        ) => ExitStatus::Busy,
        _ => ExitStatus::Failed,
    };
    let hint = match failure.kind {
        FailureKind::Timeout if sends => Some(format!(
            "what was sent may have arrived: check `ours-fleet peek {name}` before you send it again"
        )),
        FailureKind::Timeout | FailureKind::ControlUnavailable | FailureKind::Unauthorized => {
            Some(format!("see `ours-fleet status {name}` and `ours-fleet logs {name}`"))
        }
        FailureKind::Rejected => failure.reason.and_then(|reason| advice(name.as_str(), reason)),
        FailureKind::Backend | FailureKind::Offline => None,
    };
    let error: CliError = ErrorKind::Control {
        role: name.clone(),
        kind: failure.reason.map_or_else(|| failure.kind.as_str(), RefusalReason::as_str),
        message: failure.message,
        status,
    }
    .into();
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

fn advice(name: &str, reason: RefusalReason) -> Option<String> {
    match reason {
        RefusalReason::Modal => {
            Some(format!("answer it with `ours-fleet attach {name}` or `send {name} --key`"))
        }
        RefusalReason::Busy => {
            Some("wait longer with `--timeout`, or use `--interrupt`".to_owned())
        }
        RefusalReason::Draft => Some(format!("send or delete it with `ours-fleet attach {name}`")),
        RefusalReason::NotSeen => {
            Some(format!("look at its console with `ours-fleet peek {name}`"))
        }
        RefusalReason::Starting => Some("wait longer with `--timeout`".to_owned()),
        RefusalReason::CaptureFailed | RefusalReason::BadText | RefusalReason::Offline => None,
    }
}
