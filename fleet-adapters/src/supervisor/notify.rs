//! Tells the service manager that started this process how it does (`sd_notify`).

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The manager that waits for word from this process, or nobody.
#[derive(Debug, Default)]
pub struct ServiceManager(Option<UnixDatagram>);

impl ServiceManager {
    /// Nobody waits.
    pub fn nobody() -> Self {
        Self::default()
    }

    /// The one that listens at the value of `NOTIFY_SOCKET`: a path, or `@` and an abstract name.
    ///
    /// # Errors
    /// It cannot be reached.
    pub fn at(address: &str) -> std::io::Result<Self> {
        let at = match address.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name)?,
            None => SocketAddr::from_pathname(address)?,
        };
        let socket = UnixDatagram::unbound()?;
        socket.connect_addr(&at)?;
        // A manager that does not read keeps no runner from its work.
        socket.set_nonblocking(true)?;
        Ok(Self(Some(socket)))
    }

    /// This process is ready.
    pub fn ready(&self) {
        self.say("READY=1");
    }

    /// One line for people.
    pub fn status(&self, line: &str) {
        self.say(&format!("STATUS={}", line.replace('\n', " ")));
    }

    fn say(&self, word: &str) {
        if let Some(socket) = &self.0 {
            let _ = socket.send(word.as_bytes());
        }
    }
}
