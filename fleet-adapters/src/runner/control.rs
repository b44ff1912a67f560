//! The operator socket of a runner, and its client (02 §7.1, 03 B.1).

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::layout::RoleTrees;
use fleet_core::port::StateStore;
use rustix::fs::{Mode, OFlags};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};

use super::protocol::{
    Command, FailureKind, MAX_REQUEST, MAX_RESPONSE, RefusalReason, Request, Response, VERSION,
};

/// The token file holds 64 hex digits and a newline.
const MAX_TOKEN: u64 = 256;
/// A client must send its request within this time.
const REQUEST_TIME: Duration = Duration::from_secs(5);
/// Connections served at the same time.
const MAX_CONNECTIONS: usize = 16;

/// An answer on its way back.
#[derive(Debug)]
pub struct Answer {
    /// The result, or why not.
    pub result: Result<serde_json::Value, Failure>,
}

/// Why a request was not carried out.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The kind.
    pub kind: FailureKind,
    /// For people.
    pub message: String,
    /// Why a text was refused.
    pub reason: Option<RefusalReason>,
}

impl Failure {
    /// A failure without a refusal reason.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), reason: None }
    }
}

/// A request for the runner.
#[derive(Debug)]
pub struct Incoming {
    /// What is asked.
    pub command: Command,
    /// Where the answer goes.
    pub reply: oneshot::Sender<Answer>,
}

/// A socket address that works for any path length: a long one is reached through its directory's
/// descriptor, which must stay open as long as the address is used.
pub(in crate::runner) struct Address {
    pub(in crate::runner) path: PathBuf,
    _directory: Option<std::os::fd::OwnedFd>,
}

pub(in crate::runner) fn address(socket: &Utf8Path) -> io::Result<Address> {
    const LONGEST: usize = 100;
    if socket.as_str().len() <= LONGEST || !cfg!(target_os = "linux") {
        return Ok(Address { path: socket.as_std_path().to_owned(), _directory: None });
    }
    let (Some(parent), Some(name)) = (socket.parent(), socket.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::open(parent.as_std_path(), flags, Mode::empty())?;
    let number = std::os::fd::AsRawFd::as_raw_fd(&directory);
    Ok(Address {
        path: PathBuf::from(format!("/proc/self/fd/{number}/{name}")),
        _directory: Some(directory),
    })
}

/// Reads the operator token, making one if there is none.
pub fn ensure_token(
    store: &dyn StateStore,
    trees: &RoleTrees,
    new_token: impl FnOnce() -> String,
) -> Result<String, fleet_core::port::StoreError> {
    let path = trees.control_token();
    if let Some(bytes) = store.read(&path, MAX_TOKEN)? {
        let token = String::from_utf8_lossy(&bytes).trim().to_owned();
        if token.len() == 64 && token.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(token);
        }
    }
    let token = new_token();
    store.write(&path, format!("{token}\n").as_bytes(), 0o600)?;
    Ok(token)
}

/// Serves the operator socket until dropped; requests go to `requests` one by one.
///
/// The caller holds the runner lock, so a socket file already there is stale and is replaced.
pub fn serve(
    socket: &Utf8Path,
    token: String,
    uid: u32,
    requests: mpsc::Sender<Incoming>,
) -> io::Result<Server> {
    listen(socket, |listener| accept(listener, token, uid, requests))
}

/// Binds a socket in a directory of ours and serves it until the result is dropped.
pub(in crate::runner) fn listen<F>(
    socket: &Utf8Path,
    service: impl FnOnce(UnixListener) -> F,
) -> io::Result<Server>
where
    F: Future<Output = ()> + Send + 'static,
{
    let address = address(socket)?;
    match rustix::fs::unlink(&address.path) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    // The directory is 0700; the mode of the socket is set all the same.
    let listener = UnixListener::bind(&address.path)?;
    std::fs::set_permissions(&address.path, std::fs::Permissions::from_mode(0o600))?;
    let task = tokio::spawn(service(listener));
    Ok(Server { task, address })
}

/// A served socket. Dropping it ends the service and removes the socket.
#[derive(Debug)]
pub struct Server {
    task: tokio::task::JoinHandle<()>,
    address: Address,
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.path.fmt(f)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
        // A socket that stays behind is replaced by the next runner.
        let _gone = rustix::fs::unlink(&self.address.path);
    }
}

async fn accept(listener: UnixListener, token: String, uid: u32, requests: mpsc::Sender<Incoming>) {
    let slots = std::sync::Arc::new(tokio::sync::Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(slot) = slots.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, most likely: let others finish first.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        if !stream.peer_cred().is_ok_and(|peer| peer.uid() == uid) {
            continue;
        }
        let (token, requests) = (token.clone(), requests.clone());
        tokio::spawn(async move {
            drop(serve_one(stream, &token, &requests).await);
            drop(slot);
        });
    }
}

async fn serve_one(
    stream: UnixStream,
    token: &str,
    requests: &mpsc::Sender<Incoming>,
) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let limit = u64::try_from(MAX_REQUEST).unwrap_or(u64::MAX);
    let mut lines = BufReader::new(read.take(limit)).lines();
    loop {
        let next = tokio::time::timeout(REQUEST_TIME, lines.next_line()).await;
        let Ok(Ok(Some(line))) = next else { return Ok(()) };
        if line.trim().is_empty() {
            continue;
        }
        let response = answer(&line, token, requests).await;
        let mut bytes = serde_json::to_vec(&response)?;
        bytes.push(b'\n');
        write.write_all(&bytes).await?;
    }
}

async fn answer(line: &str, token: &str, requests: &mpsc::Sender<Incoming>) -> Response {
    let request: Request = match serde_json::from_str(line) {
        Ok(request) => request,
        Err(_) => {
            return failure("?", Failure::new(FailureKind::Unauthorized, "unreadable request"));
        }
    };
    if request.version != VERSION || !same(request.token.as_bytes(), token.as_bytes()) {
        let failed = Failure::new(FailureKind::Unauthorized, "wrong version or token");
        return failure(&request.id, failed);
    }
    let (reply, answered) = oneshot::channel();
    let gone = || Failure::new(FailureKind::Backend, "the runner is stopping");
    if requests.send(Incoming { command: request.command, reply }).await.is_err() {
        return failure(&request.id, gone());
    }
    match answered.await {
        Ok(Answer { result: Ok(result) }) => Response {
            version: VERSION,
            id: request.id,
            ok: true,
            result: Some(result),
            error: None,
            kind: None,
            reason: None,
        },
        Ok(Answer { result: Err(failed) }) => failure(&request.id, failed),
        Err(_) => failure(&request.id, gone()),
    }
}

fn failure(id: &str, failed: Failure) -> Response {
    Response {
        version: VERSION,
        id: id.to_owned(),
        ok: false,
        result: None,
        error: Some(failed.message),
        kind: Some(failed.kind),
        reason: failed.reason,
    }
}

/// Compares without an early end, so that the time tells nothing about the content.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

/// Talks to the runner of one role.
#[derive(Debug, Clone)]
pub struct Client {
    socket: Utf8PathBuf,
    token: String,
}

impl Client {
    /// A client for the runner whose control directory this is.
    pub fn new(store: &dyn StateStore, trees: &RoleTrees) -> Result<Self, Failure> {
        let unavailable = |detail: String| {
            Failure::new(
                FailureKind::ControlUnavailable,
                format!("the runner cannot be reached: {detail}"),
            )
        };
        match store.read(&trees.control_token(), MAX_TOKEN) {
            Ok(Some(bytes)) => Ok(Self {
                socket: trees.control_socket(),
                token: String::from_utf8_lossy(&bytes).trim().to_owned(),
            }),
            Ok(None) => Err(unavailable("it has no token yet".to_owned())),
            Err(error) => Err(unavailable(error.to_string())),
        }
    }

    /// Sends one request and waits for the answer.
    ///
    /// # Cancel safety
    /// Whether the request was carried out is unknown after a drop.
    pub async fn call(
        &self,
        command: Command,
        limit: Duration,
    ) -> Result<serde_json::Value, Failure> {
        match tokio::time::timeout(limit, self.exchange(command)).await {
            Ok(result) => result,
            Err(_) => Err(Failure::new(
                FailureKind::Timeout,
                format!(
                    "no answer within {} s; this says nothing about the agent",
                    limit.as_secs_f32()
                ),
            )),
        }
    }

    async fn exchange(&self, command: Command) -> Result<serde_json::Value, Failure> {
        let backend = |error: io::Error| Failure::new(FailureKind::Backend, error.to_string());
        let address = address(&self.socket).map_err(backend)?;
        let stream = UnixStream::connect(&address.path).await.map_err(|error| {
            Failure::new(
                FailureKind::ControlUnavailable,
                format!("the runner does not answer at {}: {error}", self.socket),
            )
        })?;
        let (read, mut write) = stream.into_split();
        let request =
            Request { version: VERSION, id: "1".to_owned(), token: self.token.clone(), command };
        let mut line = serde_json::to_vec(&request).map_err(|error| backend(error.into()))?;
        line.push(b'\n');
        if line.len() > MAX_REQUEST {
            return Err(Failure::new(
                FailureKind::Rejected,
                format!("the request is larger than {MAX_REQUEST} bytes"),
            ));
        }
        write.write_all(&line).await.map_err(backend)?;
        let limit = u64::try_from(MAX_RESPONSE).unwrap_or(u64::MAX);
        let mut text = String::new();
        BufReader::new(read.take(limit)).read_line(&mut text).await.map_err(backend)?;
        let response: Response = serde_json::from_str(&text).map_err(|_| {
            Failure::new(FailureKind::Backend, "the runner's answer could not be read")
        })?;
        if response.ok {
            return Ok(response.result.unwrap_or_default());
        }
        Err(Failure {
            kind: response.kind.unwrap_or(FailureKind::Backend),
            message: response.error.unwrap_or_else(|| "no reason given".to_owned()),
            reason: response.reason,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::same;

    #[test]
    fn tokens_compare_whole() {
        assert!(same(b"abc", b"abc"));
        for other in [&b"abd"[..], b"ab", b"abcd", b""] {
            assert!(!same(b"abc", other));
        }
    }
}
