//! The only file of this crate where `unsafe` may appear.

use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::{self, FdFlags, fcntl_setfd};
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode};

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
