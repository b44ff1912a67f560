use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::wait_for;
use crate::scripted_provider::anthropic;
use crate::scripted_provider::http::{read_body, read_headers};
use crate::scripted_provider::outage::Kind;
use crate::scripted_provider::record::Entry;

/// A scripted model provider that lives as long as this value.
#[derive(Debug)]
pub(crate) struct Provider {
    pub(crate) url: String,
    child: Child,
}

/// An outage: what goes wrong, and for how long (for ever where nothing is said).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outage {
    kind: Kind,
    count: Option<u64>,
    seconds: Option<u64>,
}

impl Outage {
    /// Answers with this HTTP status.
    pub(crate) fn status(status: u16) -> Self {
        Self::of(Kind::Status { status, retry_after: None })
    }

    /// Breaks streams off in the middle.
    pub(crate) fn cut() -> Self {
        Self::of(Kind::Cut)
    }

    /// Closes connections before an answer.
    pub(crate) fn refuse() -> Self {
        Self::of(Kind::Refuse)
    }

    fn of(kind: Kind) -> Self {
        Self { kind, count: None, seconds: None }
    }

    /// Says when to try again; for a status only.
    pub(crate) fn retry_after(mut self, seconds: u64) -> Self {
        if let Kind::Status { retry_after, .. } = &mut self.kind {
            *retry_after = Some(seconds);
        }
        self
    }

    /// Ends after so many turns; side calls are not counted.
    pub(crate) fn count(mut self, count: u64) -> Self {
        self.count = Some(count);
        self
    }

    /// Ends after this time.
    pub(crate) fn seconds(mut self, seconds: u64) -> Self {
        self.seconds = Some(seconds);
        self
    }

    fn to_json(self) -> Value {
        let mut value = serde_json::to_value(self.kind).expect("JSON");
        value["count"] = json!(self.count);
        value["seconds"] = json!(self.seconds);
        value
    }
}

/// Each text of the user in the whole conversation that a request holds, oldest first, without what
/// the harness adds.
pub(crate) fn said(entry: &Entry) -> Vec<String> {
    let list = |name: &str| entry.body[name].as_array().cloned().unwrap_or_default();
    let messages = [list("messages"), list("input")].concat();
    let mut said = Vec::new();
    for message in messages.iter().filter(|message| message["role"] == "user") {
        let blocks = match &message["content"] {
            Value::Array(blocks) => blocks.clone(),
            text => vec![json!({ "text": text })],
        };
        let texts = blocks.iter().filter_map(|block| block["text"].as_str());
        said.extend(texts.map(|text| unwrapped(anthropic::said(text).trim()).to_owned()));
    }
    said.retain(|text| !text.is_empty());
    said
}

/// A long paste without the marks that Claude Code puts around it.
fn unwrapped(text: &str) -> &str {
    let (Some((first, rest)), Some((_, last))) = (text.split_once('\n'), text.rsplit_once('\n'))
    else {
        return text;
    };
    let wrapped = first.starts_with("<pasted_content ") && last.starts_with("</pasted_content");
    rest.strip_suffix(last).filter(|_| wrapped).map_or(text, str::trim_end)
}

/// A whole HTTP answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// Names and data of the events of a stream.
    pub(crate) fn events(&self) -> Vec<(String, Value)> {
        let text = std::str::from_utf8(&self.body).expect("UTF-8");
        let event = |block: &str| {
            let (name, data) = block.split_once('\n').expect("two lines");
            let name = name.strip_prefix("event: ").expect("a name").to_owned();
            let data = data.strip_prefix("data: ").expect("data");
            (name, serde_json::from_str(data).expect("JSON"))
        };
        text.split_terminator("\n\n").map(event).collect()
    }
}

impl Provider {
    /// A provider whose scripts stand in prompts.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// A provider that reads the briefing a prompt names and follows the script in it.
    pub(crate) fn start_following() -> Self {
        Self::start_with(&["--follow-briefing"])
    }

    /// The program itself.
    pub(crate) fn program() -> &'static str {
        match option_env!("CARGO_BIN_EXE_scripted-provider") {
            Some(program) => program,
            None => panic!("the feature test-programs is off: build with --all-features"),
        }
    }

    pub(crate) fn start_with(args: &[&str]) -> Self {
        let mut child = Command::new(Self::program())
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the scripted provider starts");
        let mut url = String::new();
        let out = child.stdout.take().expect("standard output");
        BufReader::new(out).read_line(&mut url).expect("its first line");
        assert!(url.starts_with("http://127.0.0.1:"), "{url:?}");
        Self { url: url.trim().to_owned(), child }
    }

    /// Every request to the model so far, oldest first.
    pub(crate) fn log(&self) -> Vec<Entry> {
        let reply = self.send("GET", "/_log", &[], b"").expect("the log");
        serde_json::from_value(reply.json()).expect("entries")
    }

    /// Lets every waiting `hold` go on. One that comes later waits for the next release.
    pub(crate) fn release(&self) {
        self.control("/_release", &json!({}));
    }

    /// Replaces the script for prompts that hold none.
    pub(crate) fn set_script(&self, script: &Value) {
        self.control("/_script", script);
    }

    pub(crate) fn set_outage(&self, outage: Outage) {
        self.control("/_outage", &outage.to_json());
    }

    pub(crate) fn clear_outage(&self) {
        self.control("/_outage", &json!({}));
    }

    /// Waits for a request, past or coming, that is a turn and like this.
    #[track_caller]
    pub(crate) fn wait_for_request(&self, what: &str, wanted: impl Fn(&Entry) -> bool) -> Entry {
        wait_for(what, || self.log().into_iter().find(|entry| !entry.side && wanted(entry)))
    }

    #[track_caller]
    fn control(&self, path: &str, body: &Value) {
        let reply = self.post(path, body);
        assert_eq!(reply.status, 200, "{}", reply.json());
    }

    /// Sends JSON, expecting an answer of any status.
    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        self.send("POST", path, &[], body.to_string().as_bytes()).expect("an answer")
    }

    /// Sends a request on a connection of its own. An answer that is cut is an error.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> std::io::Result<Reply> {
        let address = self.url.strip_prefix("http://").expect("a URL");
        let mut stream = TcpStream::connect(address)?;
        let mut head =
            format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
        for (name, value) in headers {
            head.push_str(&[name, ": ", value, "\r\n"].concat());
        }
        head.push_str(&["content-length: ", &body.len().to_string(), "\r\n\r\n"].concat());
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)?;
        let mut reader = BufReader::new(stream);
        let mut first = String::new();
        if reader.read_line(&mut first)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let status = first.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        let headers = read_headers(&mut reader)?;
        let body = if method == "HEAD" { Vec::new() } else { read_body(&mut reader, &headers)? };
        Ok(Reply { status, headers, body })
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
