//! As much of HTTP/1.1 as the two programs speak.

use std::io::{self, BufRead, Read as _, Write};

use serde_json::Value;

/// No line of a head is longer, and no head has more of them.
const LINE: u64 = 64 * 1024;
const HEADERS: usize = 200;
/// Conversations are long, but not that long.
const BODY: u64 = 64 * 1024 * 1024;

/// A request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Without its query.
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// Whether the client wants no second answer on this connection.
    pub(crate) fn closes(&self) -> bool {
        self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

fn cut() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

fn line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    let size = reader.take(LINE).read_line(&mut line)?;
    if !line.ends_with('\n') {
        let too_long = size as u64 == LINE;
        return Err(if too_long { bad("a line is too long") } else { cut() });
    }
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// Reads a request; `None` when the client has closed the connection.
pub(crate) fn read_request(reader: &mut impl BufRead) -> io::Result<Option<Request>> {
    if reader.fill_buf()?.is_empty() {
        return Ok(None);
    }
    let first = line(reader)?;
    let mut words = first.split(' ');
    let (Some(method), Some(target), Some(_)) = (words.next(), words.next(), words.next()) else {
        return Err(bad("no request line"));
    };
    let path = target.split('?').next().unwrap_or_default().to_owned();
    let headers = read_headers(reader)?;
    let mut request = Request { method: method.to_owned(), path, headers, body: Vec::new() };
    request.body = read_body(reader, &request.headers)?;
    Ok(Some(request))
}

/// Header lines up to the empty one.
pub(crate) fn read_headers(reader: &mut impl BufRead) -> io::Result<Vec<(String, String)>> {
    let mut headers = Vec::new();
    loop {
        let line = line(reader)?;
        if line.is_empty() {
            return Ok(headers);
        }
        let (name, value) = line.split_once(':').ok_or_else(|| bad("a header has no colon"))?;
        headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        if headers.len() > HEADERS {
            return Err(bad("too many headers"));
        }
    }
}

/// The body that these headers announce. One that is cut is an error.
pub(crate) fn read_body(
    reader: &mut impl BufRead,
    headers: &[(String, String)],
) -> io::Result<Vec<u8>> {
    let value = |name: &str| headers.iter().find(|(other, _)| other == name).map(|(_, v)| v);
    let mut body = Vec::new();
    if value("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
        loop {
            let line = line(reader)?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = u64::from_str_radix(size, 16).map_err(|_| bad("no size of a chunk"))?;
            read_exactly(reader, size, &mut body)?;
            if size == 0 {
                while !self::line(reader)?.is_empty() {}
                return Ok(body);
            }
            self::line(reader)?;
        }
    }
    let size = match value("content-length") {
        None => 0,
        Some(size) => size.parse().map_err(|_| bad("content-length is no number"))?,
    };
    read_exactly(reader, size, &mut body)?;
    Ok(body)
}

fn read_exactly(reader: &mut impl BufRead, size: u64, body: &mut Vec<u8>) -> io::Result<()> {
    if size > BODY || body.len() as u64 + size > BODY {
        return Err(bad("the body is too long"));
    }
    if reader.take(size).read_to_end(body)? as u64 != size {
        return Err(cut());
    }
    Ok(())
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        429 => "Too Many Requests",
        _ => "Error",
    }
}

/// Writes a whole answer; without its body for HEAD.
pub(crate) fn write_json(
    out: &mut impl Write,
    request: &Request,
    status: u16,
    retry_after: Option<u64>,
    body: &Value,
) -> io::Result<()> {
    let body = body.to_string();
    write!(out, "HTTP/1.1 {status} {}\r\ncontent-type: application/json\r\n", reason(status))?;
    write!(out, "content-length: {}\r\n", body.len())?;
    if let Some(seconds) = retry_after {
        write!(out, "retry-after: {seconds}\r\n")?;
    }
    write!(out, "\r\n")?;
    if request.method != "HEAD" {
        write!(out, "{body}")?;
    }
    out.flush()
}

/// Begins a stream of events.
pub(crate) fn begin_stream(out: &mut impl Write) -> io::Result<()> {
    out.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n",
    )
}

/// Writes one event as a chunk of its own.
pub(crate) fn write_event(out: &mut impl Write, (name, data): &super::Event) -> io::Result<()> {
    let text = format!("event: {name}\ndata: {data}\n\n");
    write!(out, "{:x}\r\n{text}\r\n", text.len())?;
    out.flush()
}

/// Ends a stream; one that lacks this was cut.
pub(crate) fn end_stream(out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"0\r\n\r\n")?;
    out.flush()
}
