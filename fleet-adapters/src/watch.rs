use std::io;

use camino::Utf8Path;
use fleet_core::port::{DirectoryWatch, DirectoryWatches};

/// Directories of this machine, by inotify. On other systems nothing can be watched.
#[derive(Debug, Clone, Copy, Default)]
pub struct InotifyWatches;

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;

    use async_trait::async_trait;
    use camino::Utf8Path;
    use fleet_core::port::DirectoryWatch;
    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    #[derive(Debug)]
    pub(super) struct Inotify {
        fd: AsyncFd<OwnedFd>,
    }

    impl Inotify {
        pub(super) fn new(directories: &[&Utf8Path]) -> io::Result<Self> {
            let fd = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
            let what = WatchFlags::CREATE
                | WatchFlags::CLOSE_WRITE
                | WatchFlags::MODIFY
                | WatchFlags::MOVED_TO
                | WatchFlags::MOVED_FROM
                | WatchFlags::DELETE
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF;
            let only = WatchFlags::ONLYDIR | WatchFlags::DONT_FOLLOW;
            for directory in directories {
                inotify::add_watch(&fd, directory.as_std_path(), what | only)?;
            }
            #[expect(
                deprecated,
                reason = "its successor is unsafe; the fault needs a descriptor that changes, and this type keeps its own"
            )]
            let fd = AsyncFd::with_interest(fd, Interest::READABLE)?;
            Ok(Self { fd })
        }

        /// Takes every event that is there; `None` if there was none.
        fn drain(&self) -> io::Result<Option<()>> {
            let mut space = [MaybeUninit::uninit(); 4096];
            let mut reader = inotify::Reader::new(self.fd.get_ref(), &mut space);
            let mut any = None;
            loop {
                match reader.next() {
                    Ok(event) => {
                        let ended = ReadFlags::IGNORED | ReadFlags::MOVE_SELF;
                        if event.events().intersects(ended) {
                            return Err(io::ErrorKind::NotFound.into());
                        }
                        any = Some(());
                    }
                    Err(rustix::io::Errno::AGAIN) => return Ok(any),
                    Err(rustix::io::Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }

    #[async_trait]
    impl DirectoryWatch for Inotify {
        async fn changed(&mut self) -> io::Result<()> {
            loop {
                let mut ready = self.fd.readable().await?;
                let seen = self.drain()?;
                ready.clear_ready();
                if seen.is_some() {
                    return Ok(());
                }
            }
        }
    }
}

impl DirectoryWatches for InotifyWatches {
    #[cfg(target_os = "linux")]
    fn watch_all(&self, directories: &[&Utf8Path]) -> io::Result<Box<dyn DirectoryWatch>> {
        Ok(Box::new(linux::Inotify::new(directories)?))
    }

    #[cfg(not(target_os = "linux"))]
    fn watch_all(&self, _directories: &[&Utf8Path]) -> io::Result<Box<dyn DirectoryWatch>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
