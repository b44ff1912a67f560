use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};

use super::{ConsoleProgram, MemoryProcesses};
use crate::id::RoleName;
use crate::port::{
    Capture, ConsolePresence, ConsoleView, KeyName, NewConsole, ProcessIdentity, ProcessTable,
    Signal, Tmux, TmuxAddress, TmuxError, TmuxServers, check_paste, check_shown,
};
use crate::test_support::sync::lock;

/// What reached a console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Typed {
    /// A paste.
    Text(String),
    /// A key.
    Key(KeyName),
}

/// Servers of the kind tmux runs, whose programs are entries of a [`MemoryProcesses`]. A console goes
/// with its program, a server with its last console. Copies share everything.
#[derive(Debug, Clone)]
pub struct MemoryTmuxServers {
    world: Arc<Mutex<World>>,
    processes: Arc<MemoryProcesses>,
}

#[derive(Debug, Default)]
struct World {
    servers: BTreeMap<Utf8PathBuf, BTreeMap<RoleName, Console>>,
    opened: Vec<(TmuxAddress, NewConsole)>,
    broken: BTreeMap<Utf8PathBuf, String>,
}

#[derive(Debug)]
struct Console {
    program: ProcessIdentity,
    screen: String,
    typed: Vec<Typed>,
    clients: Vec<String>,
    title: String,
    in_mode: bool,
    shown: Option<Box<dyn ConsoleProgram>>,
}

impl Console {
    fn view(&mut self) -> ConsoleView {
        let (screen, title) = match &mut self.shown {
            Some(program) => program.draw(),
            None => (self.screen.clone(), self.title.clone()),
        };
        ConsoleView { screen, title, in_mode: self.in_mode }
    }

    /// In a mode keys are tmux's own: only those that end it do anything here.
    fn key(&mut self, key: &KeyName) {
        if self.in_mode {
            self.in_mode = !matches!(key.as_str(), "Enter" | "Escape" | "q");
            return;
        }
        if let Some(program) = &mut self.shown {
            program.key(key.as_str());
        } else if key.as_str() == "Enter" {
            self.screen.push('\n');
        }
        self.typed.push(Typed::Key(key.clone()));
    }
}

impl MemoryTmuxServers {
    /// No server runs yet.
    pub fn new(processes: Arc<MemoryProcesses>) -> Self {
        Self { world: Arc::default(), processes }
    }

    /// Every console that was opened, in order.
    pub fn opened(&self) -> Vec<(TmuxAddress, NewConsole)> {
        lock(&self.world).opened.clone()
    }

    /// What was typed into a console so far.
    pub fn typed(&self, address: &TmuxAddress) -> Vec<Typed> {
        self.with(address, |console| console.typed.clone()).unwrap_or_default()
    }

    /// Replaces the text on a console.
    pub fn show(&self, address: &TmuxAddress, screen: &str) {
        self.with(address, |console| screen.clone_into(&mut console.screen));
    }

    /// Sets the title of a console.
    pub fn set_title(&self, address: &TmuxAddress, title: &str) {
        self.with(address, |console| title.clone_into(&mut console.title));
    }

    /// Lets a program draw a console and take what is typed.
    pub fn set_program(&self, address: &TmuxAddress, program: impl ConsoleProgram + 'static) {
        self.with(address, |console| console.shown = Some(Box::new(program)));
    }

    /// Opens the history of a console, as a person does who scrolls.
    pub fn enter_mode(&self, address: &TmuxAddress) {
        self.with(address, |console| console.in_mode = true);
    }

    /// Sets the terminals attached to a console.
    pub fn attach(&self, address: &TmuxAddress, clients: &[&str]) {
        let clients: Vec<String> = clients.iter().map(|&client| client.to_owned()).collect();
        self.with(address, |console| console.clients.clone_from(&clients));
    }

    /// Lets every operation on a socket fail with this reason, or work again.
    pub fn set_broken(&self, socket: &Utf8Path, why: Option<&str>) {
        let mut world = lock(&self.world);
        match why {
            Some(why) => world.broken.insert(socket.to_owned(), why.to_owned()),
            None => world.broken.remove(socket),
        };
    }

    /// Ends a server as a signal from outside would, with the programs in it.
    pub fn kill_server(&self, socket: &Utf8Path) -> bool {
        let sessions = lock(&self.world).servers.remove(socket).unwrap_or_default();
        let mut existed = false;
        for console in sessions.into_values() {
            existed |= matches!(self.processes.is_alive(&console.program), Ok(true));
            let _outcome = self.processes.signal(&console.program, Signal::Kill);
        }
        existed
    }

    /// Works on a console whose program lives; others are forgotten first.
    fn with<T>(&self, address: &TmuxAddress, work: impl FnOnce(&mut Console) -> T) -> Option<T> {
        let mut world = lock(&self.world);
        let sessions = world.servers.get_mut(&address.socket)?;
        sessions.retain(|_, console| matches!(self.processes.is_alive(&console.program), Ok(true)));
        sessions.get_mut(&address.session).map(work)
    }

    fn fault(&self, socket: &Utf8Path) -> Option<String> {
        lock(&self.world).broken.get(socket).cloned()
    }
}

impl TmuxServers for MemoryTmuxServers {
    fn server(&self, address: TmuxAddress) -> Arc<dyn Tmux> {
        Arc::new(MemoryTmux { servers: self.clone(), address })
    }
}

/// One console of [`MemoryTmuxServers`].
#[derive(Debug, Clone)]
pub struct MemoryTmux {
    servers: MemoryTmuxServers,
    address: TmuxAddress,
}

impl MemoryTmux {
    fn check(&self, action: &'static str) -> Result<(), TmuxError> {
        match self.servers.fault(&self.address.socket) {
            Some(detail) => Err(TmuxError::Failed { action, detail }),
            None => Ok(()),
        }
    }

    fn on_console<T>(
        &self,
        action: &'static str,
        work: impl FnOnce(&mut Console) -> T,
    ) -> Result<T, TmuxError> {
        self.check(action)?;
        let missing = || TmuxError::NoConsole { session: self.address.session.clone() };
        self.servers.with(&self.address, work).ok_or_else(missing)
    }
}

#[async_trait]
impl Tmux for MemoryTmux {
    fn address(&self) -> &TmuxAddress {
        &self.address
    }

    fn attach_argv(&self) -> Vec<String> {
        let session = self.address.session.as_str();
        ["tmux", "-S", self.address.socket.as_str(), "attach-session", "-t", &format!("={session}")]
            .map(str::to_owned)
            .to_vec()
    }

    async fn presence(&self) -> ConsolePresence {
        if let Some(why) = self.servers.fault(&self.address.socket) {
            return ConsolePresence::Unknown(why);
        }
        match self.servers.with(&self.address, |_| ()) {
            Some(()) => ConsolePresence::Present,
            None => ConsolePresence::Absent,
        }
    }

    async fn open(&self, console: &NewConsole) -> Result<u32, TmuxError> {
        let action = "open the console";
        self.check(action)?;
        let failed = |detail: String| Err(TmuxError::Failed { action, detail });
        if console.argv.len() < 2 {
            return failed("a console needs a program and at least one argument".to_owned());
        }
        if self.presence().await == ConsolePresence::Present {
            return failed(format!("duplicate session: {}", self.address.session.as_str()));
        }
        let program = self.servers.processes.spawn();
        let pid = program.pid;
        let fresh = Console {
            program,
            screen: String::new(),
            typed: Vec::new(),
            clients: Vec::new(),
            title: String::new(),
            in_mode: false,
            shown: None,
        };
        let mut world = lock(&self.servers.world);
        let sessions = world.servers.entry(self.address.socket.clone()).or_default();
        sessions.insert(self.address.session.clone(), fresh);
        world.opened.push((self.address.clone(), console.clone()));
        Ok(pid)
    }

    async fn kill(&self) -> Result<bool, TmuxError> {
        self.check("end the console")?;
        Ok(self.servers.kill_server(&self.address.socket))
    }

    async fn capture(&self, _: Capture) -> Result<String, TmuxError> {
        self.on_console("read the console", |console| console.view().screen)
    }

    async fn look(&self) -> Result<ConsoleView, TmuxError> {
        self.on_console("look at the console", Console::view)
    }

    async fn leave_mode(&self) -> Result<(), TmuxError> {
        self.on_console("leave a mode of the console", |console| console.in_mode = false)
    }

    async fn pane_pid(&self) -> Result<u32, TmuxError> {
        self.on_console("find the program in the console", |console| console.program.pid)
    }

    async fn paste(&self, text: &str) -> Result<(), TmuxError> {
        check_paste(text)?;
        self.on_console("paste into the console", |console| {
            // A paste reaches the program whatever mode tmux is in.
            match &mut console.shown {
                Some(program) => program.paste(text),
                None => console.screen.push_str(text),
            }
            console.typed.push(Typed::Text(text.to_owned()));
        })
    }

    async fn key(&self, key: &KeyName) -> Result<(), TmuxError> {
        self.on_console("press a key in the console", |console| console.key(key))
    }

    async fn key_if_shown(&self, key: &KeyName, shown: &str) -> Result<bool, TmuxError> {
        check_shown(shown)?;
        self.on_console("press a key in the console", |console| {
            let seen = console.view().screen.contains(shown);
            if seen {
                console.key(key);
            }
            seen
        })
    }

    async fn clients(&self) -> Result<Vec<String>, TmuxError> {
        self.on_console("list the attached terminals", |console| console.clients.clone())
    }
}
