//! Makes the listening sockets inside the sandbox's network namespace.
//!
//! A process can only move itself, and only while it has one thread, so a second one is started for
//! it: `listen_inside`, which joins the namespace, listens, hands the sockets over and ends.

use std::io::{self, IoSlice, IoSliceMut, Read as _};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use fleet_core::launch::NetworkPlan;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, bind, listen, recvmsg, sendmsg,
    socket_with, sockopt,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::launch::Refusal;
use crate::sys;

/// The hidden command that runs [`listen_inside`].
const COMMAND: &str = "_listen";
/// Descriptors in one message; the kernel takes at most 253.
const BATCH: usize = 64;
const BACKLOG: i32 = 128;
/// For the second process to do its work.
const PATIENCE: Duration = Duration::from_secs(10);

/// The listening sockets of the plan, in its order, made inside the network namespace of a process.
pub(super) fn sockets(process: u32, plan: &NetworkPlan) -> Result<Vec<OwnedFd>, Refusal> {
    let refuse = Refusal::system("listen inside the sandbox");
    let (ours, theirs) = UnixStream::pair().map_err(&refuse)?;
    ours.set_read_timeout(Some(PATIENCE)).map_err(&refuse)?;
    let mut child = Command::new("/proc/self/exe")
        .arg(COMMAND)
        .arg(process.to_string())
        .args(plan.listeners.iter().map(|listener| listener.at.to_string()))
        .env_clear()
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(&refuse)?;
    // Its end of the pair is closed by now, so a helper that fails ends this instead of hanging it.
    let received = receive(&ours, plan.listeners.len());
    let mut words = String::new();
    if received.is_err() {
        let _ = child.kill();
    }
    if let Some(stderr) = &mut child.stderr {
        let _ = stderr.take(1024).read_to_string(&mut words);
    }
    let status = child.wait().map_err(&refuse)?;
    match received {
        Ok(sockets) if status.success() => Ok(sockets),
        Ok(_) => Err(refuse(io::Error::other(words.trim().to_owned()))),
        Err(_) if !words.trim().is_empty() => {
            Err(refuse(io::Error::other(words.trim().to_owned())))
        }
        Err(error) => Err(refuse(error)),
    }
}

fn receive(channel: &UnixStream, count: usize) -> io::Result<Vec<OwnedFd>> {
    let mut sockets = Vec::with_capacity(count);
    while sockets.len() < count {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(BATCH))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let message = match recvmsg(channel, &mut [IoSliceMut::new(&mut byte)], &mut control, flags)
        {
            // The helper's end is told by a signal.
            Err(Errno::INTR) => continue,
            other => other?,
        };
        if message.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for part in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = part {
                sockets.extend(descriptors);
            }
        }
    }
    Ok(sockets)
}

/// The second process: `_listen PID ADDRESS…` with the channel as its standard input. Must be called
/// before any other thread exists. Returns the status to exit with.
pub fn listen_inside(arguments: &[String]) -> i32 {
    match hand_over(arguments) {
        Ok(()) => 0,
        Err(error) => {
            eprint(&error);
            1
        }
    }
}

#[expect(clippy::print_stderr, reason = "the launcher reads it through a pipe")]
fn eprint(error: &io::Error) {
    eprintln!("{error}");
}

fn hand_over(arguments: &[String]) -> io::Result<()> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let [process, addresses @ ..] = arguments else { return Err(invalid()) };
    let process: u32 = process.parse().map_err(|_| invalid())?;
    let addresses: Vec<SocketAddr> = addresses
        .iter()
        .map(|text| text.parse())
        .collect::<Result<_, _>>()
        .map_err(|_| invalid())?;
    join(process)?;
    let sockets: Vec<OwnedFd> = addresses.into_iter().map(open).collect::<io::Result<Vec<_>>>()?;
    let channel = io::stdin();
    for batch in sockets.chunks(BATCH) {
        let batch: Vec<BorrowedFd<'_>> = batch.iter().map(AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(BATCH))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(&batch)) {
            return Err(invalid());
        }
        sendmsg(&channel, &[IoSlice::new(b"s")], &mut control, SendFlags::NOSIGNAL)?;
    }
    Ok(())
}

/// Joins the network namespace of a process. The user namespace that owns it comes first: only there
/// has this process the right to. It is asked of the network namespace itself, since the process may
/// have gone on to another one already.
fn join(process: u32) -> io::Result<()> {
    let network = std::fs::File::open(format!("/proc/{process}/ns/net"))?;
    let owner = sys::owning_user_namespace(&network)?;
    move_into_link_name_space(owner.as_fd(), Some(LinkNameSpaceType::User))?;
    move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
    Ok(())
}

fn open(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // The sandbox program brings the loopback interface up by itself, and fails if it is up already;
    // until then no address can be bound without this.
    match address {
        SocketAddr::V4(_) => sockopt::set_ip_freebind(&socket, true)?,
        SocketAddr::V6(_) => {
            sockopt::set_ipv6_v6only(&socket, true)?;
            sockopt::set_ipv6_freebind(&socket, true)?;
        }
    }
    bind(&socket, &address)?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}
