//! Test program: the launcher as a process, and attempts to break out of a sandbox.
//!
//! `sandbox-probe pane FILE` is the launcher. Anything else is a list of attempts, separated by
//! `::`; each prints one line, `ok <what was got>` or `error <errno or reason>`. With `each FILE` in
//! front every attempt is made in a process of its own, and the lines go to that file.
#![expect(
    unsafe_code,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::too_many_lines,
    reason = "a test program: raw system calls are what it is for"
)]

mod attempts;

use std::ffi::{c_int, c_long};
use std::io::{Error, Read as _, Write as _};
use std::net::TcpStream;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::process::{Command, Stdio};
use std::time::Duration;

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn ioctl(fd: c_int, request: u64, ...) -> c_int;
}

type Attempt = Result<String, String>;

type Hidden = fn(&[std::ffi::OsString]) -> i32;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [word, file] = args.as_slice()
        && (word == "pane" || word == "_pane")
    {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
        std::process::exit(
            runtime.unwrap().block_on(fleet_sandbox::run_pane(file.as_str().into())),
        );
    }
    if let [word, arguments @ ..] = args.as_slice()
        && word == "_listen"
    {
        std::process::exit(fleet_sandbox::listen_inside(arguments));
    }
    if let [word, arguments @ ..] = args.as_slice()
        && word == fleet_sandbox::limits::ENTER
    {
        let arguments: Vec<std::ffi::OsString> = arguments.iter().map(Into::into).collect();
        std::process::exit(fleet_sandbox::limits::enter(&arguments));
    }
    if let [word, arguments @ ..] = args.as_slice()
        && word == fleet_sandbox::attest::COMMAND
    {
        let arguments: Vec<std::ffi::OsString> = arguments.iter().map(Into::into).collect();
        std::process::exit(fleet_sandbox::attest::inside(&arguments));
    }
    if let [word, arguments @ ..] = args.as_slice()
        && let Some((_, run)) = [
            (fleet_sandbox::landlock::COMMAND, fleet_sandbox::landlock::inside as Hidden),
            (fleet_sandbox::podman::KEEP, fleet_sandbox::podman::keep),
            (fleet_sandbox::podman::ENTER, fleet_sandbox::podman::inside),
        ]
        .iter()
        .find(|(verb, _)| word == verb)
    {
        let arguments: Vec<std::ffi::OsString> = arguments.iter().map(Into::into).collect();
        std::process::exit(run(&arguments));
    }
    if let [word, file, attempts @ ..] = args.as_slice()
        && word == "each"
    {
        attempts::each(file, attempts);
        return;
    }
    for attempt in args.split(|word| word == "::") {
        let attempt: Vec<&str> = attempt.iter().map(String::as_str).collect();
        match run(&attempt) {
            Ok(got) => println!("ok {}", got.escape_default()),
            Err(reason) => println!("error {}", reason.escape_default()),
        }
        let _ = std::io::stdout().flush();
    }
}

fn talk(address: &str, connect_to: Option<&str>) -> Attempt {
    use std::net::ToSocketAddrs as _;
    let mut found = Err("no address".to_owned());
    for address in io(address.to_socket_addrs())? {
        found = io(TcpStream::connect_timeout(&address, Duration::from_secs(5)));
        if found.is_ok() {
            break;
        }
    }
    let mut stream = found?;
    io(stream.set_read_timeout(Some(Duration::from_secs(5))))?;
    if let Some(target) = connect_to {
        io(write!(stream, "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n"))?;
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && io(stream.read(&mut byte))? == 1 {
            head.push(byte[0]);
        }
        let status = String::from_utf8_lossy(&head);
        let status = status.split(' ').nth(1).unwrap_or_default().to_owned();
        if status != "200" {
            return Err(status);
        }
    }
    io(stream.write_all(b"hello\n"))?;
    io(stream.shutdown(std::net::Shutdown::Write))?;
    let mut answer = String::new();
    io(stream.read_to_string(&mut answer))?;
    if answer.is_empty() { Err("no answer".to_owned()) } else { Ok(answer) }
}

fn text(error: &Error) -> String {
    match error.raw_os_error() {
        Some(number) => format!("{number} {}", error.kind()),
        None => error.to_string(),
    }
}

fn io<T>(result: std::io::Result<T>) -> Result<T, String> {
    result.map_err(|error| text(&error))
}

fn run(attempt: &[&str]) -> Attempt {
    match attempt {
        ["read", path] => {
            let mut bytes = Vec::new();
            io(io(std::fs::File::open(path))?.take(4096).read_to_end(&mut bytes))?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        }
        ["list", path] => {
            let mut names: Vec<String> = io(std::fs::read_dir(path))?
                .flatten()
                .map(|entry| entry.file_name().to_string_lossy().into_owned())
                .collect();
            names.sort();
            Ok(names.join(" "))
        }
        ["write", path] => io(std::fs::write(path, "written by the probe")).map(|()| String::new()),
        // Opens for writing without writing: harmless where it succeeds.
        ["open-write", path] => {
            io(std::fs::OpenOptions::new().write(true).open(path)).map(|_| String::new())
        }
        ["rename", from, to] => io(std::fs::rename(from, to)).map(|()| String::new()),
        ["mkdir", path] => io(std::fs::create_dir(path)).map(|()| String::new()),
        ["env", name] => std::env::var(name).map_err(|error| error.to_string()),
        ["env-names"] => {
            let mut names: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
            names.sort();
            Ok(names.join(" "))
        }
        ["fds"] => {
            let mut open = Vec::new();
            for entry in io(std::fs::read_dir("/proc/self/fd"))?.flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                let target = std::fs::read_link(entry.path()).unwrap_or_default();
                // The directory that is being read is our own.
                if name.parse::<u32>().is_ok_and(|number| number > 2)
                    && !target.to_string_lossy().ends_with("/fd")
                {
                    open.push(format!("{name}={}", target.display()));
                }
            }
            Ok(open.join(" "))
        }
        ["connect-unix", path] => io(UnixStream::connect(path)).map(|_| String::new()),
        ["connect-abstract", name] => {
            let address = io(SocketAddr::from_abstract_name(name))?;
            io(UnixStream::connect_addr(&address)).map(|_| String::new())
        }
        ["connect-tcp", port] => {
            let address = ([127, 0, 0, 1], port.parse().unwrap()).into();
            io(TcpStream::connect_timeout(&address, Duration::from_secs(2))).map(|_| String::new())
        }
        // Says a line to HOST:PORT, by name, and gives back what is answered.
        ["talk", host_and_port] => talk(host_and_port, None),
        ["talk-by-proxy", proxy, target] => talk(proxy, Some(target)),
        // Greets whoever connects, for ten seconds at most.
        ["greet", port] => {
            let listener = io(std::net::TcpListener::bind(("0.0.0.0", port.parse().unwrap())))?;
            std::thread::spawn(move || {
                for stream in listener.incoming() {
                    let _ = stream.unwrap().write_all(b"greetings");
                }
            });
            std::thread::sleep(Duration::from_secs(10));
            Ok(String::new())
        }
        ["send-udp", port] => {
            let socket = io(std::net::UdpSocket::bind("127.0.0.1:0"))?;
            io(socket.send_to(b"x", ("127.0.0.1", port.parse().unwrap()))).map(|_| String::new())
        }
        ["status", field] => {
            let status = io(std::fs::read_to_string("/proc/self/status"))?;
            status
                .lines()
                .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))
                .map(|value| value.trim().to_owned())
                .ok_or_else(|| "no such field".to_owned())
        }
        ["hostname"] => io(std::fs::read_to_string("/proc/sys/kernel/hostname"))
            .map(|name| name.trim().to_owned()),
        ["kill", pid] => {
            // SAFETY: kill(pid, 0) takes numbers only.
            raw(unsafe { syscall(62, pid.parse::<c_long>().unwrap(), 0_i64) })
        }
        ["syscall", number, arguments @ ..] => {
            let mut given = [0_i64; 6];
            for (slot, argument) in given.iter_mut().zip(arguments) {
                *slot = argument.parse().unwrap();
            }
            let number: c_long = number.parse().unwrap();
            // SAFETY: the tests pass only calls that fail on null pointers or are refused.
            raw(unsafe {
                syscall(number, given[0], given[1], given[2], given[3], given[4], given[5])
            })
        }
        // As `syscall`; a word that begins with `/` is a path.
        ["syscall-path", number, arguments @ ..] => {
            let paths: Vec<std::ffi::CString> =
                arguments.iter().map(|word| std::ffi::CString::new(*word).unwrap()).collect();
            let mut given = [0_i64; 6];
            for ((slot, argument), path) in given.iter_mut().zip(arguments.iter()).zip(&paths) {
                *slot = match argument.strip_prefix('/') {
                    Some(_) => path.as_ptr() as i64,
                    None => argument.parse().unwrap(),
                };
            }
            let number: c_long = number.parse().unwrap();
            // SAFETY: the paths live until the call is over, and it gets no other pointer.
            raw(unsafe {
                syscall(number, given[0], given[1], given[2], given[3], given[4], given[5])
            })
        }
        // Makes a file for writing with this mode, by `openat2`.
        ["openat2", path, mode] => {
            let path = std::ffi::CString::new(*path).unwrap();
            let how: [u64; 3] = [0o101, u64::from_str_radix(mode, 8).unwrap(), 0];
            // SAFETY: path and `open_how` live until the call is over; the size is that of the latter.
            raw(unsafe { syscall(437, -100_i64, path.as_ptr(), how.as_ptr(), size_of_val(&how)) })
        }
        // `fchmod` on a file that is made for it.
        ["fchmod", path, mode] => {
            let file = io(std::fs::File::create(path))?;
            let mode = u32::from_str_radix(mode, 8).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            io(file.set_permissions(mode)).map(|()| String::new())
        }
        ["tiocsti", letter] => {
            let byte = letter.as_bytes()[0];
            // SAFETY: TIOCSTI reads one byte.
            raw(i64::from(unsafe { ioctl(0, 0x5412, std::ptr::from_ref(&byte)) }))
        }
        // The kernel compares 32 bits of the request; a filter must do the same.
        ["tiocsti-high", letter] => {
            let byte = letter.as_bytes()[0];
            // SAFETY: as above.
            raw(unsafe { syscall(16, 0_i64, 0x1_0000_5412_i64, std::ptr::from_ref(&byte)) })
        }
        // A 32-bit system call (getpid) from a 64-bit program.
        #[cfg(target_arch = "x86_64")]
        ["int80"] => {
            let result: i64;
            // SAFETY: getpid takes no argument and touches no memory.
            unsafe { core::arch::asm!("int 0x80", inlateout("rax") 20_i64 => result) };
            raw(result)
        }
        ["run", program, arguments @ ..] => {
            let status = io(Command::new(program)
                .args(arguments)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status())?;
            if status.success() { Ok(String::new()) } else { Err(status.to_string()) }
        }
        // A descendant that outlives this process, if it is let.
        ["daemon", marker] => {
            let child = io(Command::new("/usr/bin/setsid")
                .args(["-f", "/usr/bin/sleep", marker])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status())?;
            Ok(child.to_string())
        }
        ["sleep", millis] => {
            std::thread::sleep(Duration::from_millis(millis.parse().unwrap()));
            Ok(String::new())
        }
        other => attempts::run(other),
    }
}

fn raw(result: c_long) -> Attempt {
    if result < 0 { Err(text(&Error::last_os_error())) } else { Ok(result.to_string()) }
}
