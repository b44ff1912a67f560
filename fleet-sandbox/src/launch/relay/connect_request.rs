//! The request of a proxy client. Only `CONNECT` is served: then one connection has one target, which
//! is judged once, and what follows stays between the program and that target.

use std::io;

use fleet_core::isolation::network::Target;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// No head of a request is longer.
const LIMIT: usize = 8 * 1024;

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// A connection.
    Connect(Target),
    /// Something else, with the reason why it is not served.
    Unfit(&'static str),
}

/// Reads the head of a request, and not a byte more: what follows belongs to the target.
pub(super) async fn read(client: &mut TcpStream) -> io::Result<Request> {
    let mut head = Vec::with_capacity(256);
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= LIMIT {
            return Ok(Request::Unfit("the request is too long"));
        }
        head.push(client.read_u8().await?);
    }
    Ok(parse(&head))
}

fn parse(head: &[u8]) -> Request {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let Ok(line) = std::str::from_utf8(line) else {
        return Request::Unfit("the request is not text");
    };
    let mut words = line.split(' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    if method != Some("CONNECT") {
        return Request::Unfit("this proxy serves CONNECT only: use https, or list the exact host");
    }
    let known = matches!(version, Some("HTTP/1.1" | "HTTP/1.0")) && words.next().is_none();
    match target.and_then(|text| text.parse::<Target>().ok()) {
        Some(target) if known => Request::Connect(target),
        _ => Request::Unfit("the request names no host and port"),
    }
}

/// Answers a request that goes nowhere. A client that does not listen is no error.
pub(super) async fn refuse(client: &mut TcpStream, status: &str, reason: &str) {
    let body = format!("ours-fleet: {reason}\n");
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    let _ = client.write_all((head + &body).as_bytes()).await;
    let _ = client.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_connect_is_served() {
        let connect = parse(b"CONNECT API.example.:443 HTTP/1.1\r\nHost: other.example\r\n\r\n");
        assert_eq!(connect, Request::Connect("api.example:443".parse().expect("a target")));
        for head in [
            &b"GET http://a.example/ HTTP/1.1\r\n\r\n"[..],
            b"CONNECT a.example HTTP/1.1\r\n\r\n",
            b"CONNECT a.example:443\r\n\r\n",
            b"CONNECT a.example:443 HTTP/1.1 x\r\n\r\n",
            b"CONNECT a.example:443@b:1 HTTP/1.1\r\n\r\n",
            b"CONNECT a\0.example:443 HTTP/1.1\r\n\r\n",
            b"CONNECT a.example:443\nX: y HTTP/1.1\r\n\r\n",
            b"\xff\xfe\r\n\r\n",
            b"\r\n\r\n",
        ] {
            assert!(matches!(parse(head), Request::Unfit(_)), "{head:?}");
        }
    }
}
