//! The only file of this crate where `unsafe` may appear.

use std::ffi::{c_int, c_long};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd, OwnedFd};

use fleet_core::attest::DeniedCall;

use rustix::io::{self, Errno, FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode};
use rustix::process::Pid;

/// `_IO(0xb7, 0x1)` of `linux/nsfs.h`: opens the user namespace that owns a namespace.
const NS_GET_USERNS: Opcode = 0xb701;
/// `_IO(0xb7, 0x2)`: opens the parent of a user or pid namespace.
const NS_GET_PARENT: Opcode = 0xb702;

/// A request of `linux/nsfs.h` that opens a related namespace.
struct Related(Opcode);

// SAFETY: the requests of `linux/nsfs.h` that this module makes take no argument, so the null pointer
// is never read or written by the kernel, and their result is a descriptor that nobody else owns.
unsafe impl Ioctl for Related {
    type Output = OwnedFd;
    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        self.0
    }

    fn as_ptr(&mut self) -> *mut std::ffi::c_void {
        std::ptr::null_mut()
    }

    unsafe fn output_from_ptr(
        out: IoctlOutput,
        _: *mut std::ffi::c_void,
    ) -> io::Result<Self::Output> {
        // SAFETY: a non-negative result of this ioctl is a new descriptor (see above), and rustix
        // calls this function only for a non-negative result.
        Ok(unsafe { OwnedFd::from_raw_fd(out) })
    }
}

/// The parent of the namespace that `namespace` refers to. An error when the parent lies outside of
/// what this process may see.
pub(crate) fn parent_namespace(namespace: impl AsFd) -> io::Result<OwnedFd> {
    // SAFETY: `Related` describes the ioctl as the kernel documents it.
    unsafe { rustix::ioctl::ioctl(namespace, Related(NS_GET_PARENT)) }
}

/// The user namespace that owns the namespace that `namespace` refers to.
pub(crate) fn owning_user_namespace(namespace: impl AsFd) -> io::Result<OwnedFd> {
    // SAFETY: as above.
    unsafe { rustix::ioctl::ioctl(namespace, Related(NS_GET_USERNS)) }
}

/// Marks a descriptor that this process inherited, so that it does not survive the next exec. A
/// number that is not open is left alone.
pub(crate) fn close_on_exec(number: i32) {
    if number < 0 {
        return;
    }
    // SAFETY: the descriptor is borrowed for one `fcntl` only; if the number is not open, or is
    // open as something else by now, that call fails or marks a descriptor that this process, which
    // passes descriptors on by unmarking them explicitly, wants marked anyway.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    let _ = fcntl_setfd(descriptor, FdFlags::CLOEXEC);
}

/// The process that listens at the other end of a local socket, and its user. The process is 0 if it
/// has no number in this pid namespace.
pub(crate) fn peer(socket: BorrowedFd<'_>) -> io::Result<(i32, u32)> {
    let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut size = libc::socklen_t::try_from(size_of::<libc::ucred>()).map_err(|_| Errno::INVAL)?;
    // SAFETY: the pointers are to locals that outlive the call, and `size` is the size of the first;
    // every value of its fields is valid.
    let status = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut size,
        )
    };
    if status != 0 {
        return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL));
    }
    Ok((peer.pid, peer.uid))
}

/// Looks at a descriptor by number; the number may be any.
pub(crate) fn with_descriptor<T>(
    number: i32,
    look: impl FnOnce(BorrowedFd<'_>) -> io::Result<T>,
) -> io::Result<T> {
    if number < 0 {
        return Err(Errno::BADF);
    }
    // SAFETY: not -1, and borrowed for one call only, which fails if the number is not open.
    look(unsafe { BorrowedFd::borrow_raw(number) })
}

/// Takes over a descriptor that was handed to this process by number; `None` if it is not open.
///
/// To be called once for a number, before this process opens anything that it keeps.
pub(crate) fn take(number: i32) -> Option<OwnedFd> {
    with_descriptor(number, |fd| fcntl_getfd(fd)).ok()?;
    // SAFETY: open, as just seen, and inherited, so that nobody else in this process owns it: its
    // callers run before anything else was opened.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn fork() -> c_int;
    fn kill(pid: c_int, signal: c_int) -> c_int;
    fn _exit(status: c_int) -> !;
}

/// Number on x86-64 and on aarch64, and arguments that make the call fail whatever is allowed.
type Attempt = (c_long, c_long, [c_long; 5]);

/// `TIOCSTI`.
const TYPE_INTO_TERMINAL: c_long = 0x5412;
/// A bit that `unshare` does not know.
const NO_FLAG: c_long = 1;
/// `SOCK_RAW | SOCK_CLOEXEC`, `SOCK_SEQPACKET | SOCK_CLOEXEC`, `SOCK_STREAM | SOCK_CLOEXEC`.
const RAW: c_long = 3 | 0o2_000_000;
const SEQUENTIAL: c_long = 5 | 0o2_000_000;
const STREAM: c_long = 1 | 0o2_000_000;
/// `SOCK_DGRAM | SOCK_CLOEXEC`.
const DATAGRAM: c_long = 2 | 0o2_000_000;

fn attempt(call: DeniedCall) -> Attempt {
    match call {
        // No such operation.
        DeniedCall::Keyctl => (250, 219, [-1, 0, 0, 0, 0]),
        // No type, attributes or parameters at the null address; nothing to mount on.
        DeniedCall::AddKey => (248, 217, [0, 0, 0, 0, 0]),
        DeniedCall::IoUringSetup => (425, 425, [0, 0, 0, 0, 0]),
        DeniedCall::PerfEventOpen => (298, 241, [0, 0, -1, -1, 0]),
        DeniedCall::Mount => (165, 40, [0, 0, 0, 0, 0]),
        DeniedCall::Unshare => (272, 97, [NO_FLAG, 0, 0, 0, 0]),
        // Arguments of no size.
        DeniedCall::Clone3 => (435, 435, [0, 0, 0, 0, 0]),
        // No such descriptor.
        DeniedCall::TypeIntoTerminal => (16, 29, [-1, TYPE_INTO_TERMINAL, 0, 0, 0]),
        // These are made where they are allowed, and closed again unused.
        DeniedCall::PacketSocket => (41, 198, [17, RAW, 0, 0, 0]),
        DeniedCall::AlgSocket => (41, 198, [38, SEQUENTIAL, 0, 0, 0]),
        DeniedCall::VsockSocket => (41, 198, [40, STREAM, 0, 0, 0]),
        DeniedCall::UnixSocket => (41, 198, [1, STREAM, 0, 0, 0]),
        DeniedCall::InetSocket => (41, 198, [2, DATAGRAM, 0, 0, 0]),
        // No place for the pair.
        DeniedCall::DatagramPair => (53, 199, [1, DATAGRAM, 0, 0, 0]),
        // Memory of no size.
        DeniedCall::SharedMemory => (29, 194, [0, 0, 0, 0, 0]),
    }
}

/// Makes a call in a way in which it does nothing, even where it is allowed. A filter answers by its
/// own error before the kernel looks at the arguments.
pub(crate) fn try_harmless(call: DeniedCall) -> io::Result<()> {
    let (x86_64, aarch64, given) = attempt(call);
    let number = match std::env::consts::ARCH {
        "x86_64" => x86_64,
        "aarch64" => aarch64,
        _ => return Err(Errno::NOSYS),
    };
    // SAFETY: every attempt above passes no pointer but the null one, which the kernel refuses, and
    // changes no state of this process.
    let result = unsafe { syscall(number, given[0], given[1], given[2], given[3], given[4]) };
    if result < 0 {
        let error = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
    }
    let socket = [
        DeniedCall::PacketSocket,
        DeniedCall::AlgSocket,
        DeniedCall::VsockSocket,
        DeniedCall::UnixSocket,
        DeniedCall::InetSocket,
    ];
    if socket.contains(&call) {
        // Closed by being dropped.
        drop(i32::try_from(result).ok().and_then(take));
    }
    Ok(())
}

/// `landlock_create_ruleset`, the same on every architecture.
const LANDLOCK_CREATE_RULESET: c_long = 444;
/// `LANDLOCK_CREATE_RULESET_VERSION`: asks for the version and makes nothing.
const VERSION: c_long = 1;

/// Version of the kernel's Landlock interface; `None` where there is none, or it is switched off.
pub(crate) fn landlock_abi() -> Option<u32> {
    // SAFETY: with this flag the kernel takes a null pointer and no size, reads no memory, and answers
    // with a number, which is no descriptor.
    let version = unsafe { syscall(LANDLOCK_CREATE_RULESET, 0 as c_long, 0 as c_long, VERSION) };
    u32::try_from(version).ok().filter(|version| *version > 0)
}

/// Goes on in two processes: the number of the new one in this one, `None` in the new one.
///
/// To be called while this process has a single thread: others would be missing in the new one.
pub(crate) fn fork_single() -> io::Result<Option<Pid>> {
    // SAFETY: no memory is passed. With a single thread, as the caller sees to, no lock is held by
    // anybody who is not there any more.
    let number = unsafe { fork() };
    match number {
        0 => Ok(None),
        number => match Pid::from_raw(number).filter(|_| number > 0) {
            Some(child) => Ok(Some(child)),
            None => Err(last_error()),
        },
    }
}

/// Ends this process at once, running nothing of what it has from the one that it was forked from.
pub(crate) fn leave(status: c_int) -> ! {
    // SAFETY: takes a number and does not return.
    unsafe { _exit(status) }
}

/// `close_range`, the same on every architecture.
const CLOSE_RANGE: c_long = 436;

/// Closes every descriptor but these two. Only for a process that goes on with those alone: what any
/// other value of it owns is closed behind its back, so none may be used or dropped.
pub(crate) fn close_all_but(mut kept: [i32; 2]) -> io::Result<()> {
    kept.sort_unstable();
    let mut first: c_long = 0;
    for keep in kept.map(c_long::from).into_iter().chain([c_long::from(i32::MAX)]) {
        if first < keep {
            // SAFETY: no memory is passed; that nothing else is used is what the caller sees to.
            let result = unsafe { syscall(CLOSE_RANGE, first, keep - 1, 0 as c_long) };
            if result < 0 {
                return Err(last_error());
            }
        }
        first = keep + 1;
    }
    Ok(())
}

/// Kills every process that this one may signal, but not itself.
///
/// Only for a process in a domain of Landlock with a scope for signals, which makes that the domain
/// and what is inside it: anywhere else it kills all processes of the user.
pub(crate) fn kill_domain() {
    const KILL: c_int = 9;
    // SAFETY: takes two numbers. Whether nobody was there to be killed makes no difference.
    let _ = unsafe { kill(-1, KILL) };
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
