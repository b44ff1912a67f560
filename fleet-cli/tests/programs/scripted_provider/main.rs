//! Test program: a model provider that follows scripts, for driving real coding agents offline.
//!
//! ```text
//! scripted-provider [--port N] [--log FILE] [--script FILE] [--follow-briefing] [--stay]
//!                   [--side-reply TEXT] [--hold-limit SECONDS] [--chunk LETTERS] [--model NAME]
//! scripted-provider mcp FILE     an MCP server instead, for what agents do with one: `mcp.rs`
//! ```
//!
//! The first line it prints is its URL on 127.0.0.1. It ends when standard input ends; with `--stay`
//! only by a signal. Steps: `script.rs`. Outages: `outage.rs`.
//!
//! | Request | What it does |
//! |---|---|
//! | `POST …/messages`, `…/messages/count_tokens` | Anthropic Messages, streamed or whole |
//! | `POST …/responses` | OpenAI Responses, streamed or whole |
//! | `GET …/models`, `HEAD` | one made-up model; 200 |
//! | `POST /_script` | replaces the script for prompts that hold none |
//! | `POST /_release` | lets every waiting `hold` go on |
//! | `POST /_outage` | begins or ends an outage |
//! | `GET /_log` | all requests so far; `--log` appends the same as JSON lines |
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test program that reads its own files"
)]

#[path = "provider.rs"]
mod provider;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use provider::script::parse_script;
use provider::server::{Options, start};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match args.as_slice() {
        [word, file] if word == "mcp" => {
            provider::mcp::serve(file, std::io::stdin().lock(), std::io::stdout())
                .map_err(|error| error.to_string())
        }
        _ => run(args.into_iter()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("scripted-provider: {error}");
            ExitCode::from(64)
        }
    }
}

fn run(args: impl Iterator<Item = String>) -> Result<(), String> {
    let (options, stay) = parse(args)?;
    let address = start(options).map_err(|error| format!("can't listen: {error}"))?;
    println!("http://{address}");
    std::io::stdout().flush().map_err(|error| error.to_string())?;
    if stay {
        loop {
            std::thread::park();
        }
    }
    let mut byte = [0];
    while matches!(std::io::stdin().read(&mut byte), Ok(1..)) {}
    Ok(())
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<(Options, bool), String> {
    let mut options = Options::default();
    let mut stay = false;
    while let Some(name) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{name} needs a value"));
        let number = |text: String| {
            text.parse::<u16>().map_err(|_| format!("{name} needs a small number, not {text}"))
        };
        match name.as_str() {
            "--stay" => stay = true,
            "--follow-briefing" => options.rules.follow_briefing = true,
            "--port" => options.port = number(value()?)?,
            "--chunk" => options.piece = usize::from(number(value()?)?),
            "--hold-limit" => {
                options.hold_limit = Duration::from_secs(u64::from(number(value()?)?));
            }
            "--side-reply" => options.side_reply = value()?,
            "--model" => options.model = value()?,
            "--log" => {
                let path = value()?;
                let file = File::options().append(true).create(true).open(&path);
                options.log = Some(file.map_err(|error| format!("{path}: {error}"))?);
            }
            "--script" => {
                let path = value()?;
                let text = std::fs::read(&path).map_err(|error| format!("{path}: {error}"))?;
                let script = serde_json::from_slice(&text).map_err(|error| error.to_string());
                options.rules.fallback = script
                    .and_then(|script| parse_script(&script))
                    .map_err(|error| format!("{path}: {error}"))?;
            }
            _ => return Err(format!("unknown argument: {name}")),
        }
    }
    Ok((options, stay))
}
