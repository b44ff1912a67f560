//! The server: a thread for each connection, on loopback alone.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::http::{self, Request};
use super::outage::{Kind, Outage};
use super::record::{Entry, ToolResult, masked, now_ms};
use super::script::{Action, Step, parse_script};
use super::turns::{Rules, Turn, pick};
use super::{Answer, Event, anthropic, responses, side_text};

/// What is chosen at the start.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) port: u16,
    pub(crate) log: Option<File>,
    pub(crate) rules: Rules,
    pub(crate) side_reply: String,
    pub(crate) hold_limit: Duration,
    pub(crate) piece: usize,
    pub(crate) model: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            port: 0,
            log: None,
            rules: Rules::default(),
            side_reply: "ok".to_owned(),
            hold_limit: Duration::from_mins(2),
            piece: 40,
            model: "scripted-1".to_owned(),
        }
    }
}

struct State {
    rules: Mutex<Rules>,
    outage: Mutex<Option<Outage>>,
    entries: Mutex<Vec<Entry>>,
    log: Mutex<Option<File>>,
    /// How often `POST /_release` came.
    released: Mutex<u64>,
    release: Condvar,
    side_reply: String,
    hold_limit: Duration,
    piece: usize,
    model: String,
}

/// A thread that panicked has left nothing half done here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the server; it lives as long as the process.
pub(crate) fn start(options: Options) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))?;
    let address = listener.local_addr()?;
    let state = Arc::new(State {
        rules: Mutex::new(options.rules),
        outage: Mutex::new(None),
        entries: Mutex::new(Vec::new()),
        log: Mutex::new(options.log),
        released: Mutex::new(0),
        release: Condvar::new(),
        side_reply: options.side_reply,
        hold_limit: options.hold_limit,
        piece: options.piece,
        model: options.model,
    });
    thread::Builder::new().name("accept".to_owned()).spawn(move || {
        for stream in listener.incoming().flatten() {
            let state = Arc::clone(&state);
            // An error ends a connection and nothing else: the harness may break off at any time.
            drop(thread::Builder::new().spawn(move || drop(serve(&state, &stream))));
        }
    })?;
    Ok(address)
}

fn serve(state: &State, stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    let mut out = BufWriter::new(stream);
    while let Some(request) = http::read_request(&mut reader)? {
        let goes_on = answer(state, &request, &mut out)?;
        if !goes_on || request.closes() {
            break;
        }
    }
    out.flush()?;
    stream.shutdown(Shutdown::Both)
}

/// Answers one request; whether the connection may be used again.
fn answer(state: &State, request: &Request, out: &mut impl Write) -> io::Result<bool> {
    let (status, body) = match (request.method.as_str(), request.path.as_str()) {
        ("HEAD", _) => (200, json!({})),
        ("GET", "/_log") => (200, json!(*lock(&state.entries))),
        ("GET", path) if path.ends_with("/models") => (200, models(&state.model)),
        ("POST", "/_script" | "/_release" | "/_outage") => match control(state, request) {
            Ok(()) => (200, json!({ "ok": true })),
            Err(error) => (400, json!({ "error": error })),
        },
        ("POST", path) if path.ends_with("/count_tokens") => (200, json!({ "input_tokens": 10 })),
        ("POST", path) if path.ends_with("/messages") => {
            return model(state, request, Protocol::Anthropic, out);
        }
        ("POST", path) if path.ends_with("/responses") => {
            return model(state, request, Protocol::Responses, out);
        }
        (_, path) => {
            let body = serde_json::from_slice(&request.body).unwrap_or_default();
            note(state, entry(request, body, "status 404"));
            (404, anthropic::error(404, path))
        }
    };
    http::write_json(out, request, status, None, &body)?;
    Ok(true)
}

/// One made-up model, in the shape of both vendors.
fn models(model: &str) -> Value {
    let one = json!({
        "id": model, "type": "model", "object": "model", "display_name": model, "created": 0,
        "created_at": "2026-01-01T00:00:00Z", "owned_by": "test",
    });
    json!({
        "object": "list", "data": [one], "has_more": false, "first_id": model, "last_id": model,
    })
}

fn control(state: &State, request: &Request) -> Result<(), String> {
    let body: Value = match request.body.as_slice() {
        b"" => json!({}),
        bytes => serde_json::from_slice(bytes).map_err(|error| error.to_string())?,
    };
    match request.path.as_str() {
        "/_script" => lock(&state.rules).fallback = parse_script(&body)?,
        "/_outage" => *lock(&state.outage) = Outage::parse(&body, Instant::now())?,
        _ => {
            *lock(&state.released) += 1;
            state.release.notify_all();
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Protocol {
    Anthropic,
    Responses,
}

impl Protocol {
    fn turns(self, body: &Value) -> Vec<Turn> {
        match self {
            Self::Anthropic => anthropic::turns(body),
            Self::Responses => responses::turns(body),
        }
    }

    fn told(self, body: &Value) -> Vec<ToolResult> {
        match self {
            Self::Anthropic => anthropic::told(body),
            Self::Responses => responses::told(body),
        }
    }

    fn tools(self, body: &Value) -> Vec<String> {
        match self {
            Self::Anthropic => anthropic::tools(body),
            Self::Responses => responses::tools(body),
        }
    }

    fn is_side(self, request: &Request, body: &Value, turns: &[Turn]) -> bool {
        match self {
            Self::Anthropic => anthropic::is_side(body, turns),
            Self::Responses => responses::is_side(body, request.header("x-codex-turn-metadata")),
        }
    }

    fn answer(self, step: &Step, body: &Value) -> Answer {
        match self {
            Self::Anthropic => anthropic::answer(step, body),
            Self::Responses => responses::answer(step, body),
        }
    }

    fn error(self, status: u16, message: &str) -> Value {
        match self {
            Self::Anthropic => anthropic::error(status, message),
            Self::Responses => responses::error(status, message),
        }
    }

    fn whole(self, body: &Value, answer: &Answer, model: &str) -> Value {
        match self {
            Self::Anthropic => anthropic::whole(body, answer, model),
            Self::Responses => responses::whole(body, answer, model),
        }
    }

    fn events(self, body: &Value, answer: &Answer, state: &State) -> Vec<Event> {
        match self {
            Self::Anthropic => anthropic::events(body, answer, &state.model, state.piece),
            Self::Responses => responses::events(body, answer, &state.model, state.piece),
        }
    }
}

fn entry(request: &Request, body: Value, outcome: &str) -> Entry {
    Entry {
        at: now_ms(),
        path: request.path.clone(),
        side: true,
        step: Value::Null,
        outcome: outcome.to_owned(),
        answer: Value::Null,
        tools: Vec::new(),
        told: Vec::new(),
        user: String::new(),
        headers: masked(&request.headers),
        body,
    }
}

fn note(state: &State, entry: Entry) {
    if let Some(file) = lock(&state.log).as_mut()
        && let Ok(mut line) = serde_json::to_vec(&entry)
    {
        line.push(b'\n');
        // One write, so that a reader sees whole lines. A full disk must not stop the model.
        drop(file.write_all(&line));
    }
    lock(&state.entries).push(entry);
}

/// Answers a request to the model.
fn model(
    state: &State,
    request: &Request,
    protocol: Protocol,
    out: &mut impl Write,
) -> io::Result<bool> {
    let body: Value = match serde_json::from_slice(&request.body) {
        Ok(body) => body,
        Err(error) => {
            note(state, entry(request, Value::Null, "status 400"));
            let error = protocol.error(400, &format!("the body is no JSON: {error}"));
            http::write_json(out, request, 400, None, &error)?;
            return Ok(true);
        }
    };
    let turns = protocol.turns(&body);
    let side = protocol.is_side(request, &body, &turns);
    let step = if side {
        Step::say(&side_text(&body, &state.side_reply))
    } else {
        pick(&turns, &lock(&state.rules))
    };
    let answer = protocol.answer(&step, &body);
    let strike = Outage::strike(&mut lock(&state.outage), Instant::now(), side);
    let failure = match (strike, &step.action) {
        (Some(kind), _) => Some((kind, "scripted outage")),
        (None, Action::Status { status, message, retry_after }) => {
            let kind = Kind::Status { status: *status, retry_after: *retry_after };
            Some((kind, message.as_str()))
        }
        (None, _) => None,
    };
    let mut entry = entry(request, Value::Null, "");
    entry.side = side;
    entry.outcome = match failure {
        None => "answered".to_owned(),
        Some((Kind::Cut, _)) => "cut".to_owned(),
        Some((Kind::Refuse, _)) => "refused".to_owned(),
        Some((Kind::Status { status, .. }, _)) => format!("status {status}"),
    };
    if failure.is_none() {
        entry.answer = answer.to_json();
    }
    entry.step = if side { Value::Null } else { step.raw.clone() };
    entry.tools = protocol.tools(&body);
    entry.told = protocol.told(&body);
    entry.user = turns.iter().rev().find_map(user_text).unwrap_or_default();
    entry.body = body.clone();
    // A release counts from the moment at which the log shows the request.
    let released = *lock(&state.released);
    note(state, entry);
    if strike.is_none() {
        delay(state, &step, released);
    }
    let kind = match failure {
        Some((Kind::Refuse, _)) => return Ok(false),
        Some((Kind::Status { status, retry_after }, message)) => {
            let error = protocol.error(status, message);
            http::write_json(out, request, status, retry_after, &error)?;
            return Ok(true);
        }
        Some((Kind::Cut, _)) => Some(Kind::Cut),
        None => None,
    };
    if body["stream"] != true && kind.is_none() {
        let whole = protocol.whole(&body, &answer, &state.model);
        http::write_json(out, request, 200, None, &whole)?;
        return Ok(true);
    }
    let events = protocol.events(&body, &answer, state);
    http::begin_stream(out)?;
    let count = if kind.is_some() { events.len() / 2 } else { events.len() };
    for event in &events[..count] {
        http::write_event(out, event)?;
    }
    if kind.is_some() {
        return Ok(false);
    }
    http::end_stream(out)?;
    Ok(true)
}

fn user_text(turn: &Turn) -> Option<String> {
    match turn {
        Turn::User(text) => Some(text.clone()),
        _ => None,
    }
}

/// Waits as long as the step says.
fn delay(state: &State, step: &Step, released: u64) {
    thread::sleep(step.sleep);
    if step.hold {
        let count = lock(&state.released);
        let waiting = |count: &mut u64| *count == released;
        drop(state.release.wait_timeout_while(count, state.hold_limit, waiting));
    }
}
