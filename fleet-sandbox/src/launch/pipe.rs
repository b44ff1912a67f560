//! Our read end of a pipe that leads out of a sandbox.

use std::io::ErrorKind;
use std::os::fd::OwnedFd;

use rustix::fs::OFlags;
use rustix::io::Errno;
use tokio::net::unix::pipe::Receiver;

/// Whether more can come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It can.
    Open,
    /// Everything that held the other end is gone.
    Ended,
    /// It could not be read, or too much came.
    Failed,
}

/// The pipe, and what came of it.
#[derive(Debug)]
pub(crate) struct ReadPipe {
    pipe: Receiver,
    limit: usize,
    /// What has been read and not been taken out by the owner.
    pub(crate) text: Vec<u8>,
    pub(crate) state: State,
}

impl ReadPipe {
    /// Fails once more than `limit` bytes have been read and not been taken out. Needs a runtime with I/O.
    pub(crate) fn new(end: OwnedFd, limit: usize) -> std::io::Result<Self> {
        let flags = rustix::fs::fcntl_getfl(&end)?;
        rustix::fs::fcntl_setfl(&end, flags | OFlags::NONBLOCK)?;
        let pipe = Receiver::from_owned_fd(end)?;
        Ok(Self { pipe, limit, text: Vec::new(), state: State::Open })
    }

    /// Waits until something has arrived, or the state is another one.
    ///
    /// # Cancel safety
    /// Nothing is read before the only wait is over.
    pub(crate) async fn more(&mut self) {
        if self.pipe.readable().await.is_err() {
            self.state = State::Failed;
        }
        let mut chunk = [0; 4096];
        while self.state == State::Open {
            match self.pipe.try_read(&mut chunk) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(count) => self.take_in(&chunk[..count]),
                Err(_) => self.state = State::Failed,
            }
        }
    }

    /// Reads what is in the pipe right now, whether or not the runtime has been told of it.
    pub(crate) fn drain(&mut self) {
        let mut chunk = [0; 4096];
        while self.state == State::Open {
            match rustix::io::read(&self.pipe, &mut chunk) {
                Ok(count) => self.take_in(&chunk[..count]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => self.state = State::Failed,
            }
        }
    }

    fn take_in(&mut self, bytes: &[u8]) {
        self.text.extend_from_slice(bytes);
        if bytes.is_empty() {
            self.state = State::Ended;
        } else if self.text.len() > self.limit {
            self.state = State::Failed;
        }
    }
}
