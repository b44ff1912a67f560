//! `send`: a text or a key into a console.

use std::time::Duration;

use fleet_adapters::runner::protocol::{Command, Delivered, Receipt};
use serde_json::json;

use super::control::call;
use super::target::{not_running, view};
use crate::app::App;
use crate::args::{self, WaitStage};
use crate::error::CliError;
use crate::exit::ExitStatus;
use crate::ui::document;

/// Beyond the wait for the agent: for the runner itself to answer.
const ANSWER: Duration = Duration::from_secs(10);

/// Sends and prints the receipt.
///
/// # Errors
/// Nothing to send; the role does not exist or does not run; the text was refused; no answer.
pub async fn run(app: &App, args: &args::Send) -> Result<ExitStatus, CliError> {
    let command = command(args)?;
    let view = view(app, &args.name).await?;
    if view.observed.has_no_runner() {
        return Err(not_running(&view));
    }
    let limit = Duration::from_secs(args.timeout) + ANSWER;
    let delivered: Delivered = call(app, &view, command, limit).await?;
    let enough = args.key.is_some() || reached(delivered.receipt, args.wait, delivered.observable);
    let receipt = delivered.receipt.as_str();
    if args.json {
        app.printer.json(&document(json!({
            "role": args.name,
            "receipt": receipt,
            "reached": enough,
        })));
    } else {
        app.printer.line(receipt);
    }
    if enough {
        return Ok(ExitStatus::Done);
    }
    app.printer.error(format!(
        "{}: {receipt}, not seen as {}; look with `ours-fleet peek {}` before you send it again",
        args.name,
        args.wait.as_str(),
        args.name
    ));
    Ok(ExitStatus::Failed)
}

fn command(args: &args::Send) -> Result<Command, CliError> {
    if let Some(key) = &args.key {
        return Ok(Command::SendKey { key: key.to_string() });
    }
    let text = args.text.join(" ");
    if text.is_empty() {
        return Err(CliError::usage("nothing to send: give a text, or a key with `--key`")
            .hint("a text that starts with `-` goes after `--`: `ours-fleet send NAME -- '-x'`"));
    }
    if text == "-" {
        return Err(CliError::usage("a text from standard input is not available in this build")
            .hint("give the text as an argument"));
    }
    let timeout_ms = args.timeout.saturating_mul(1000);
    Ok(Command::SubmitPrompt { text, interrupt: args.interrupt, timeout_ms })
}

/// Whether a receipt is what was waited for. Where no more than `typed` can be seen, it is enough.
fn reached(receipt: Receipt, wait: WaitStage, observable: bool) -> bool {
    let wanted = match wait {
        WaitStage::Typed => Receipt::Typed,
        WaitStage::Submitted => Receipt::Submitted,
        WaitStage::TurnStarted => Receipt::TurnStarted,
    };
    receipt >= wanted || !observable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_is_judged_by_what_could_be_seen() {
        for (receipt, wait, observable, enough) in [
            (Receipt::Typed, WaitStage::Submitted, false, true),
            (Receipt::Typed, WaitStage::Submitted, true, false),
            (Receipt::Typed, WaitStage::Typed, true, true),
            (Receipt::TurnStarted, WaitStage::Submitted, true, true),
            (Receipt::Submitted, WaitStage::TurnStarted, true, false),
        ] {
            assert_eq!(reached(receipt, wait, observable), enough, "{receipt:?} {wait:?}");
        }
    }
}
