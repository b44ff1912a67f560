//! One connection: decide, resolve, dial, copy, record.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use fleet_core::isolation::network::{Host, HostRule, Serve, Target, decide, judge_answer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::connect_request::{self, Request};
use super::log::{ConnectionLog, Outcome};
use super::resolve;

/// For the request of a proxy client to arrive.
const PATIENCE: Duration = Duration::from_secs(30);
/// For a name to be resolved, and for each address to answer.
const DIAL: Duration = Duration::from_secs(10);

/// The rules and the record.
pub(super) struct Relay {
    rules: Vec<HostRule>,
    log: ConnectionLog,
}

/// Why a connection goes nowhere.
enum Refused {
    /// No rule allows it, or the answer leads to where none does.
    Rule(String),
    /// It is allowed but did not work out.
    Failed(String),
}

impl Relay {
    pub(super) fn new(rules: Vec<HostRule>, log: ConnectionLog) -> Self {
        Self { rules, log }
    }

    pub(super) fn log(&self) -> &ConnectionLog {
        &self.log
    }

    /// Serves one accepted connection to its end.
    pub(super) async fn serve(&self, mut client: TcpStream, serve: &Serve) {
        // Small messages go at once, as they would without us.
        let _ = client.set_nodelay(true);
        let number = self.log.number();
        let (target, proxied) = match serve {
            Serve::Target(target) => (target.clone(), false),
            Serve::Proxy => match timeout(PATIENCE, connect_request::read(&mut client)).await {
                Ok(Ok(Request::Connect(target))) => (target, true),
                Ok(Ok(Request::Unfit(reason))) => {
                    connect_request::refuse(&mut client, "400 Bad Request", reason).await;
                    self.log.write(number, None, None, &Outcome::refused(reason));
                    return;
                }
                Ok(Err(_)) | Err(_) => return,
            },
        };
        let rule = decide(&self.rules, &target);
        let outcome = match self.dial(&target).await {
            Ok((server, address)) => {
                self.log.write(number, Some(&target), rule, &Outcome::opened(address));
                relay(client, server, address, proxied).await
            }
            Err(refused) => {
                let (status, outcome) = match refused {
                    Refused::Rule(why) => ("403 Forbidden", Outcome::refused(&why)),
                    Refused::Failed(why) => ("502 Bad Gateway", Outcome::failed(&why)),
                };
                if proxied {
                    connect_request::refuse(&mut client, status, &outcome.reason).await;
                }
                outcome
            }
        };
        self.log.write(number, Some(&target), rule, &outcome);
    }

    /// Decides on the name, then resolves it, then decides on each answer.
    async fn dial(&self, target: &Target) -> Result<(TcpStream, IpAddr), Refused> {
        if decide(&self.rules, target).is_none() {
            return Err(Refused::Rule("no rule of `allow_hosts` allows it".to_owned()));
        }
        let answers = match &target.host {
            Host::Address(address) => vec![SocketAddr::new(*address, target.port)],
            Host::Name(name) => match timeout(DIAL, resolve::name(name, target.port)).await {
                Ok(Ok(answers)) => answers,
                Ok(Err(error)) => return Err(Refused::Failed(format!("not resolved: {error}"))),
                Err(_) => return Err(Refused::Failed("not resolved in time".to_owned())),
            },
        };
        // Asked anew each time: addresses come and go.
        let own = resolve::own_addresses().map_err(|error| {
            Refused::Failed(format!("the host's own addresses are not known: {error}"))
        })?;
        let mut last = Refused::Failed("the name has no address".to_owned());
        for answer in answers {
            if let Err(class) = judge_answer(&self.rules, answer.ip(), target.port, &own) {
                last = Refused::Rule(format!(
                    "it leads to the {class} address {}, which is not listed itself",
                    answer.ip()
                ));
                continue;
            }
            match timeout(DIAL, TcpStream::connect(answer)).await {
                Ok(Ok(server)) => return Ok((server, answer.ip())),
                Ok(Err(error)) => last = Refused::Failed(error.to_string()),
                Err(_) => last = Refused::Failed("no answer in time".to_owned()),
            }
        }
        Err(last)
    }
}

/// Copies both ways until both sides are done.
async fn relay(
    mut client: TcpStream,
    mut server: TcpStream,
    address: IpAddr,
    proxied: bool,
) -> Outcome {
    let _ = server.set_nodelay(true);
    if proxied
        && let Err(error) = client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await
    {
        return Outcome::allowed(address, 0, 0, error.to_string());
    }
    let mut sent = Counted { inner: &mut client, read: 0 };
    let mut received = Counted { inner: &mut server, read: 0 };
    let end = copy_bidirectional(&mut sent, &mut received).await;
    let (sent, received) = (sent.read, received.read);
    let reason = end.err().map(|error| error.to_string()).unwrap_or_default();
    Outcome::allowed(address, sent, received, reason)
}

/// Counts what is read, so that a connection that breaks is recorded with what went through.
struct Counted<'a> {
    inner: &'a mut TcpStream,
    read: u64,
}

impl AsyncRead for Counted<'_> {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
        buf: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = std::pin::Pin::new(&mut *self.inner).poll_read(cx, buf);
        self.read += u64::try_from(buf.filled().len() - before).unwrap_or(0);
        polled
    }
}

impl AsyncWrite for Counted<'_> {
    fn poll_write(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
        buf: &[u8],
    ) -> std::task::Poll<io::Result<usize>> {
        std::pin::Pin::new(&mut *self.inner).poll_write(cx, buf)
    }

    fn poll_flush(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::pin::Pin::new(&mut *self.inner).poll_flush(cx)
    }

    fn poll_shutdown(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::pin::Pin::new(&mut *self.inner).poll_shutdown(cx)
    }
}
