//! The host around one start: what an attempt could read, change or reach, and what came of it.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use camino::Utf8PathBuf;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::escape::network::Greeter;
use crate::support::{Host, Launch, probe_program};

/// Files with a canary in them, which no policy of the matrix shows.
const HIDDEN: &[&str] = &[
    "home/.ssh/id",
    "home/.aws/credentials",
    "home/.docker/config.json",
    "home/.gnupg/private",
    "agents/other/notes",
    "control/secret",
];
/// Files that are shown, or lie where the agent may write.
const SHOWN: &[&str] = &[
    "home/.claude/.credentials.json",
    "home/.claude/settings.json",
    "shown/file",
    "shown/linked",
    "work/.git/config",
];

pub(super) struct Stage {
    pub(super) launch: Launch,
    id: String,
    listed: Greeter,
    other: Greeter,
    /// At the listed port of another address.
    beside: Greeter,
    six: Option<Greeter>,
    datagrams: UdpSocket,
    datagrams_six: Option<UdpSocket>,
    abstract_stream: UnixListener,
    abstract_datagrams: UnixDatagram,
    _sockets: [UnixListener; 3],
    victim: Child,
    _consoles: [OwnedFd; 2],
    pts: String,
    key: String,
    received: Mutex<Vec<String>>,
}

impl Stage {
    pub(super) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(1);
        let id = format!("{}{}", std::process::id(), COUNT.fetch_add(1, Ordering::SeqCst));
        let mut launch = Launch::new();
        // A sandbox program that this user owns.
        let program = launch.base.join("bwrap");
        std::fs::copy(&launch.bwrap, &program).expect("copy");
        launch.bwrap = program;
        let base = &launch.base;
        for directory in
            ["home/.aws", "home/.docker", "home/.gnupg", "home/.claude", "shown", "work/.git"]
        {
            std::fs::create_dir(base.join(directory)).expect("mkdir");
        }
        std::fs::create_dir(base.join("work/mp")).expect("mkdir");
        for file in HIDDEN {
            std::fs::write(base.join(file), "canary").expect("write");
        }
        for file in SHOWN {
            std::fs::write(base.join(file), "as it was").expect("write");
        }
        std::fs::hard_link(base.join("shown/linked"), base.join("work/linked")).expect("link");
        for place in ["/tmp", "/dev/shm"] {
            std::fs::write(format!("{place}/ofe-{id}"), "canary").expect("write");
        }
        let (listed, beside) = neighbours();
        let abstract_at = |name: &str| {
            SocketAddr::from_abstract_name(format!("ofe-{name}-{id}")).expect("a name")
        };
        let at = |path: &str| UnixListener::bind(path).expect("bind");
        let sockets = [
            at(base.join("control/tmux.sock").as_str()),
            at(&format!("/tmp/ofe-{id}.sock")),
            at(base.join("work/socket").as_str()),
        ];
        let victim = Command::new("/usr/bin/sleep")
            .arg(format!("97531.{id}"))
            .stdin(Stdio::null())
            .spawn()
            .expect("sleep");
        let terminal =
            || openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("pty");
        // A container numbers its terminals anew: the first one of the host would have the name of
        // its own.
        let spare = terminal();
        let console = terminal();
        grantpt(&console).expect("grant");
        unlockpt(&console).expect("unlock");
        let pts = ptsname(&console, Vec::new()).expect("name").into_string().expect("utf-8");
        let datagrams = UdpSocket::bind("127.0.0.1:0").expect("bind");
        datagrams.set_nonblocking(true).expect("set");
        let datagrams_six = UdpSocket::bind("[::1]:0").ok();
        if let Some(socket) = &datagrams_six {
            socket.set_nonblocking(true).expect("set");
        }
        let abstract_stream = UnixListener::bind_addr(&abstract_at("s")).expect("bind");
        abstract_stream.set_nonblocking(true).expect("set");
        let abstract_datagrams = UnixDatagram::bind_addr(&abstract_at("d")).expect("bind");
        abstract_datagrams.set_nonblocking(true).expect("set");
        let stage = Self {
            other: Greeter::new("other:"),
            six: Greeter::at("[::1]:0", "other:"),
            key: helper(&["key-make", &format!("ofe-{id}")]),
            launch,
            id,
            listed,
            beside,
            datagrams,
            datagrams_six,
            abstract_stream,
            abstract_datagrams,
            _sockets: sockets,
            victim,
            _consoles: [spare, console],
            pts,
            received: Mutex::default(),
        };
        helper(&["shm-make", &stage.shm_key()]);
        stage
    }

    fn shm_key(&self) -> String {
        (u64::from(std::process::id()) * 64 % 1_000_000_000 + 7 + self.id.len() as u64).to_string()
    }

    pub(super) fn path(&self, path: &str) -> Utf8PathBuf {
        self.launch.base.join(path)
    }

    pub(super) fn results(&self) -> Utf8PathBuf {
        self.launch.cwd.join("results")
    }

    pub(super) fn listed_address(&self) -> String {
        format!("127.0.0.1:{}", self.listed.port())
    }

    /// A rule for names, whose only port leads to what is not listed.
    pub(super) fn rule_of_names(&self) -> String {
        format!("*.allowed.example:{}", self.other.port())
    }

    /// The text of a word of an attempt.
    pub(super) fn fill_in(&self, word: &str, proxy: &str) -> String {
        if !word.contains('{') {
            return word.to_owned();
        }
        let base = self.launch.base.as_str();
        let six = self.six.as_ref().map_or(9, Greeter::port).to_string();
        let udp = |socket: &UdpSocket| socket.local_addr().expect("address").port().to_string();
        let udp_six = self.datagrams_six.as_ref().map_or("9".to_owned(), udp);
        let names: &[(&str, &str)] = &[
            ("{base}", base),
            ("{home}", &format!("{base}/home")),
            ("{cwd}", &format!("{base}/work")),
            ("{id}", &self.id),
            ("{listed}", &self.listed.port().to_string()),
            ("{other}", &self.other.port().to_string()),
            ("{six}", &six),
            ("{udp}", &udp(&self.datagrams)),
            ("{udp6}", &udp_six),
            ("{victim}", &self.victim.id().to_string()),
            ("{pts}", &self.pts),
            ("{shm}", &self.shm_key()),
            ("{key}", &self.key),
            ("{proxy}", proxy),
            ("{probe}", probe_program().as_str()),
        ];
        let filled =
            names.iter().fold(word.to_owned(), |text, (name, value)| text.replace(name, value));
        assert!(!filled.contains('{'), "{word}: an unknown name");
        filled
    }

    /// A proxy that connects to this host at the port that the request names last, whatever it says.
    pub(super) fn careless_proxy(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let address = listener.local_addr().expect("address").to_string();
        let (listed, other) = (self.listed.port(), self.other.port());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || careless(stream, &[listed, other]));
            }
        });
        address
    }

    /// Takes in what has arrived.
    pub(super) fn settle(&self) {
        let mut received = self.received.lock().expect("lock");
        let mut buffer = [0; 256];
        let sockets = [Some(&self.datagrams), self.datagrams_six.as_ref()];
        for socket in sockets.into_iter().flatten() {
            while let Ok(count) = socket.recv(&mut buffer) {
                received.push(String::from_utf8_lossy(&buffer[..count]).into_owned());
            }
        }
        while let Ok(count) = self.abstract_datagrams.recv(&mut buffer) {
            received.push(String::from_utf8_lossy(&buffer[..count]).into_owned());
        }
    }

    pub(super) fn received(&self, words: &str) -> bool {
        self.received.lock().expect("lock").iter().any(|text| text == words)
    }

    /// Whether a file of the host is there and no longer as it was.
    pub(super) fn changed(&self, path: &str) -> bool {
        std::fs::read(self.path(path)).is_ok_and(|text| text != b"as it was")
    }

    /// Whether the mode of the sandbox program is no longer as it was.
    pub(super) fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// Who met visitors without being listed.
    pub(super) fn uninvited(&self) -> Vec<String> {
        let mut who = Vec::new();
        for (name, met) in [
            ("another port", self.other.met()),
            ("another address", self.beside.met()),
            ("IPv6", self.six.as_ref().map_or(0, Greeter::met)),
        ] {
            if met > 0 {
                who.push(name.to_owned());
            }
        }
        if self.abstract_stream.accept().is_ok() {
            who.push("an abstract socket".to_owned());
        }
        who.extend(
            self.received.lock().expect("lock").iter().map(|text| format!("datagram {text}")),
        );
        who
    }
}

/// Greeters at the same port of two addresses.
fn neighbours() -> (Greeter, Greeter) {
    loop {
        let listed = Greeter::new("listed:");
        if let Some(beside) = Greeter::at(&format!("127.0.0.2:{}", listed.port()), "other:") {
            return (listed, beside);
        }
    }
}

fn careless(mut stream: TcpStream, ports: &[u16]) {
    let mut head = Vec::new();
    let mut byte = [0];
    while head.len() < 300_000 && !head.ends_with(b"\r\n\r\n") && !head.ends_with(b"\n\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => break,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let last = ports.iter().filter_map(|port| Some((head.rfind(&port.to_string())?, *port))).max();
    let Some((_, port)) = last else { return };
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)) else { return };
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    let _ = server.write_all(&rest);
    let _ = server.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let _ = server.read_to_end(&mut answer);
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
    let _ = stream.write_all(&answer);
}

/// Has the probe program do something on the host; what it got.
fn helper(words: &[&str]) -> String {
    let output = Command::new(probe_program()).args(words).output().expect("the probe program");
    let answer = String::from_utf8_lossy(&output.stdout).into_owned();
    answer.trim().strip_prefix("ok ").unwrap_or("0").to_owned()
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
        let id = &self.id;
        helper(&["key-remove", &format!("ofe-{id}")]);
        helper(&["shm-remove", &self.shm_key()]);
        for path in
            [format!("/tmp/ofe-{id}"), format!("/dev/shm/ofe-{id}"), format!("/tmp/ofe-{id}.sock")]
        {
            let _ = std::fs::remove_file(path);
        }
        if Host::is_root() {
            // Where a control wrote it.
            for directory in ["/usr", "/etc", "/"] {
                let _ =
                    std::fs::remove_file(Utf8PathBuf::from(directory).join(format!("ofe-{id}")));
            }
        }
    }
}
