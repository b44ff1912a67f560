//! Ways out of a network, and through a proxy that leads to listed targets only.

use std::io::{Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::time::Duration;

use super::{UNKNOWN, any};
use crate::{Attempt, io};

const PATIENCE: Duration = Duration::from_secs(2);

#[repr(C)]
struct Interface {
    index: u32,
    name: *const std::ffi::c_char,
}

unsafe extern "C" {
    fn if_nameindex() -> *const Interface;
}

pub(super) fn run(attempt: &[&str]) -> Attempt {
    match attempt {
        // Says a line to an address and gives back what is answered.
        ["say", address] => said(&mut connect(address)?, b"hello\n"),
        // Works until it is ended: appends to a file and keeps a connection busy.
        ["work", file, address] => {
            let mut own = io(std::fs::OpenOptions::new().append(true).open(file))?;
            let mut stream = connect(address)?;
            loop {
                io(own.write_all(b"x"))?;
                io(stream.write_all(b"x"))?;
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        ["connect-any", paths @ ..] => {
            any(paths, |path| io(UnixStream::connect(path)).map(|_| path.to_owned()))
        }
        ["send-abstract", name, words] => {
            let address = io(SocketAddr::from_abstract_name(name))?;
            let socket = io(UnixDatagram::unbound())?;
            io(socket.send_to_addr(words.as_bytes(), &address)).map(|_| String::new())
        }
        ["send-to", address, words] => {
            let local = if address.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" };
            let socket = io(UdpSocket::bind(local))?;
            io(socket.send_to(words.as_bytes(), address)).map(|_| String::new())
        }
        // Whether there is a way to an address; nothing is sent.
        ["route", address] => {
            let local = if address.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" };
            let socket = io(UdpSocket::bind(local))?;
            io(socket.connect(address)).map(|()| String::new())
        }
        // By netlink, whatever the files say.
        ["interfaces"] => {
            let mut names = Vec::new();
            // SAFETY: the list ends with an entry without a name.
            unsafe {
                let mut at = if_nameindex();
                while !at.is_null() && !(*at).name.is_null() && (*at).index != 0 {
                    let name = std::ffi::CStr::from_ptr((*at).name);
                    names.push(name.to_string_lossy().into_owned());
                    at = at.add(1);
                }
            }
            names.retain(|name| name != "lo");
            if names.is_empty() { Err("only lo".to_owned()) } else { Ok(names.join(" ")) }
        }
        // Any bytes to a proxy, with `\r`, `\n`, `\0` and `\x` (1000 times x) written like that.
        ["proxy", proxy, request] => {
            let request = request
                .replace("\\r", "\r")
                .replace("\\n", "\n")
                .replace("\\0", "\0")
                .replace("\\x", &"x".repeat(1000));
            said(&mut connect(proxy)?, request.as_bytes())
        }
        _ => Err(UNKNOWN.to_owned()),
    }
}

fn connect(address: &str) -> Result<TcpStream, String> {
    let mut last = Err("no address".to_owned());
    for address in io(address.to_socket_addrs())? {
        last = io(TcpStream::connect_timeout(&address, PATIENCE));
        if last.is_ok() {
            break;
        }
    }
    last
}

fn said(stream: &mut TcpStream, words: &[u8]) -> Attempt {
    io(stream.set_read_timeout(Some(PATIENCE)))?;
    io(stream.write_all(words))?;
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let end = stream.read_to_end(&mut answer);
    if answer.is_empty() {
        io(end)?;
        return Err("no answer".to_owned());
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
