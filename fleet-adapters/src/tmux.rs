use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::port::{
    Capture, CommandSpec, ConsolePresence, ConsoleView, Exec, ExecOutput, Exit, KeyName,
    NewConsole, Tmux, TmuxAddress, TmuxError, TmuxServers, check_paste, check_shown,
};

use fleet_core::error_chain::chain;

/// Longest path of a server's socket in bytes. The kernel takes 107, tmux 3.3a was seen to fail from
/// 109 on; the rest is a margin.
pub const SOCKET_PATH_LIMIT: usize = 100;

/// The paste buffer of a role's own server; its former content is of no interest.
const BUFFER: &str = "ours-fleet";

/// How often a dying server is looked at before it counts as one that does not die.
const KILL_ATTEMPTS: u32 = 200;

/// The little that tmux gets from the fleet's own environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TmuxEnvironment {
    /// Where `tmux` is looked up.
    pub path: String,
    /// `HOME`, which tmux wants although it reads no file of it.
    pub home: Utf8PathBuf,
}

impl TmuxEnvironment {
    /// The whole environment of every tmux process, so also of the server. It reaches the program in
    /// the console, hence it holds nothing else.
    fn variables(&self) -> Vec<(String, String)> {
        [
            ("PATH", self.path.as_str()),
            ("HOME", self.home.as_str()),
            // Makes tmux count characters as UTF-8 and keep its messages, which are classified, plain.
            ("LANG", "C.UTF-8"),
            ("LC_ALL", "C.UTF-8"),
            ("TERM", "xterm-256color"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
    }
}

/// Hands out [`CliTmux`] consoles.
#[derive(Debug, Clone)]
pub struct CliTmuxServers {
    exec: Arc<dyn Exec>,
    environment: TmuxEnvironment,
    terminal: &'static str,
}

impl CliTmuxServers {
    /// Consoles by the `tmux` that is found on the given `PATH`. Looks once which terminal
    /// descriptions the machine has.
    pub fn new(exec: Arc<dyn Exec>, environment: TmuxEnvironment) -> Self {
        let terminal = terminal_on_this_machine(&environment.home);
        Self { exec, environment, terminal }
    }
}

impl TmuxServers for CliTmuxServers {
    fn server(&self, address: TmuxAddress) -> Arc<dyn Tmux> {
        Arc::new(CliTmux {
            exec: Arc::clone(&self.exec),
            environment: self.environment.variables(),
            terminal: self.terminal,
            address,
        })
    }
}

/// The better of the two terminal descriptions that fit tmux, if the machine has it.
fn terminal_on_this_machine(home: &Utf8Path) -> &'static str {
    let best = "tmux-256color";
    let homes = home.join(".terminfo");
    let directories = [
        homes.as_std_path(),
        Path::new("/etc/terminfo"),
        Path::new("/lib/terminfo"),
        Path::new("/usr/share/terminfo"),
        Path::new("/usr/lib/terminfo"),
        Path::new("/opt/homebrew/share/terminfo"),
    ];
    // Below the first letter, or its hexadecimal code on file systems that ignore case.
    let described = directories
        .iter()
        .any(|dir| ["t", "74"].iter().any(|letter| dir.join(letter).join(best).is_file()));
    if described { best } else { "screen-256color" }
}

/// A role's console by the `tmux` program: one process call an operation, each naming the socket.
#[derive(Debug)]
pub struct CliTmux {
    exec: Arc<dyn Exec>,
    environment: Vec<(String, String)>,
    terminal: &'static str,
    address: TmuxAddress,
}

/// What tmux said.
enum Answer {
    Done(ExecOutput),
    /// No such session, or no server.
    Absent,
    /// Something that proves nothing.
    Unclear(String),
}

/// An argument as tmux must see it: it takes a final `;` for the end of a command, even after `--`.
fn quoted(argument: &str) -> String {
    match argument.strip_suffix(';') {
        Some(rest) => format!("{rest}\\;"),
        None => argument.to_owned(),
    }
}

/// Whether the words mean that there is no such session or no server.
fn says_absent(stderr: &str) -> bool {
    stderr.lines().any(|line| {
        line.starts_with("can't find session")
            || line.starts_with("no server running on ")
            || (line.starts_with("error connecting to ")
                && (line.ends_with("(No such file or directory)")
                    || line.ends_with("(Connection refused)")))
    })
}

/// Whether the words mean that the server ended while it was spoken to.
fn says_dying(stderr: &str) -> bool {
    stderr.lines().any(|line| {
        line.starts_with("server exited")
            || line.starts_with("lost server")
            || line.starts_with("[server exited")
            || line.starts_with("[lost server")
    })
}

/// What an unclear answer was, in words for people.
fn in_words(output: &ExecOutput) -> String {
    let words = output.stderr_text();
    match output.exit {
        Exit::Code(127) => "the program `tmux` was not found; install tmux".to_owned(),
        Exit::Code(126) => "the program `tmux` may not be executed".to_owned(),
        Exit::Code(code) if words.is_empty() => format!("exit code {code} and no message"),
        Exit::Code(_) => words.escape_debug().to_string(),
        Exit::Signal(signal) => format!("killed by signal {signal}"),
    }
}

/// The options of a new server, as commands before the one that opens the session.
fn options(terminal: &'static str) -> [(&'static str, &'static str); 8] {
    [
        ("history-limit", "20000"),
        ("remain-on-exit", "off"),
        ("default-terminal", terminal),
        ("status", "off"),
        ("exit-empty", "on"),
        ("exit-unattached", "off"),
        ("destroy-unattached", "off"),
        ("allow-rename", "off"),
    ]
}

impl CliTmux {
    /// Target of a session; `=` forbids a match by prefix.
    fn session(&self) -> String {
        format!("={}", self.address.session.as_str())
    }

    /// Target of the pane. Without the `:` tmux would match windows, and those by prefix again.
    fn pane(&self) -> String {
        format!("={}:", self.address.session.as_str())
    }

    fn spec<'a>(&'a self, words: impl IntoIterator<Item = &'a str>) -> CommandSpec {
        let server = ["-S", self.address.socket.as_str(), "-f", "/dev/null"];
        let mut spec = CommandSpec::new("tmux", server.into_iter().chain(words));
        spec.env.clone_from(&self.environment);
        spec.timeout = Duration::from_secs(10);
        spec
    }

    async fn ask(&self, spec: &CommandSpec) -> Answer {
        let length = self.address.socket.as_str().len();
        if length > SOCKET_PATH_LIMIT {
            let socket = &self.address.socket;
            return Answer::Unclear(format!(
                "the socket path {socket} has {length} bytes, at most {SOCKET_PATH_LIMIT} work"
            ));
        }
        match self.exec.run(spec).await {
            Ok(output) if output.success() => Answer::Done(output),
            Ok(output) if output.exit == Exit::Code(1) && says_absent(&output.stderr_text()) => {
                Answer::Absent
            }
            Ok(output) => Answer::Unclear(in_words(&output)),
            Err(error) => Answer::Unclear(chain(&error)),
        }
    }

    /// An operation that needs the console.
    async fn on_console(
        &self,
        action: &'static str,
        spec: &CommandSpec,
    ) -> Result<ExecOutput, TmuxError> {
        match self.ask(spec).await {
            Answer::Done(output) => Ok(output),
            Answer::Absent => Err(TmuxError::NoConsole { session: self.address.session.clone() }),
            Answer::Unclear(detail) => Err(TmuxError::Failed { action, detail }),
        }
    }

    /// Refuses a directory in which others could put or reach a socket.
    fn check_directory(&self) -> Result<(), String> {
        let directory = self.address.socket.parent().unwrap_or(Utf8Path::new("/"));
        let facts = directory
            .as_std_path()
            .symlink_metadata()
            .map_err(|error| format!("the socket's directory {directory}: {error}"))?;
        let problem = if !facts.is_dir() {
            "is not a directory"
        } else if facts.uid() != rustix::process::geteuid().as_raw() {
            "belongs to another user"
        } else if facts.mode() & 0o077 != 0 {
            "is open to other users; it must have mode 0700"
        } else {
            return Ok(());
        };
        Err(format!("the socket's directory {directory} {problem}"))
    }
}

/// What `look` asks for in one line before the screen.
const FACTS: &str = "#{pane_in_mode} #{pane_title}";

/// What tmux prints once a key was pressed.
const PRESSED: &str = "pressed";

fn parse_view(text: &str) -> Option<ConsoleView> {
    let (facts, screen) = text.split_once('\n')?;
    let (mode, title) = facts.split_once(' ')?;
    let modes: u32 = mode.parse().ok()?;
    Some(ConsoleView { screen: screen.to_owned(), title: title.to_owned(), in_mode: modes > 0 })
}

/// A key as a word of a tmux command line.
fn in_quotes(key: &KeyName) -> String {
    match key.as_str() {
        "'" => "\"'\"".to_owned(),
        name => format!("'{name}'"),
    }
}

fn parse_pid(action: &'static str, output: &ExecOutput) -> Result<u32, TmuxError> {
    let text = output.stdout_text();
    let first = text.lines().next().unwrap_or_default();
    first.parse().map_err(|_| TmuxError::Failed {
        action,
        detail: format!("it gave no pid but `{}`", first.escape_debug()),
    })
}

#[async_trait]
impl Tmux for CliTmux {
    fn address(&self) -> &TmuxAddress {
        &self.address
    }

    fn attach_argv(&self) -> Vec<String> {
        let socket = self.address.socket.as_str();
        let session = self.session();
        // `-u`: bare machines have no locale set, and all terminals in use read UTF-8.
        ["tmux", "-u", "-S", socket, "-f", "/dev/null", "attach-session", "-t", &session]
            .map(str::to_owned)
            .to_vec()
    }

    async fn presence(&self) -> ConsolePresence {
        match self.ask(&self.spec(["has-session", "-t", &self.session()])).await {
            Answer::Done(_) => ConsolePresence::Present,
            Answer::Absent => ConsolePresence::Absent,
            Answer::Unclear(detail) => ConsolePresence::Unknown(detail),
        }
    }

    async fn open(&self, console: &NewConsole) -> Result<u32, TmuxError> {
        let action = "open the console";
        let failed = |detail| TmuxError::Failed { action, detail };
        if console.argv.len() < 2 {
            let detail = "a console needs a program and at least one argument: \
                          tmux hands a single word to a shell";
            return Err(failed(detail.to_owned()));
        }
        self.check_directory().map_err(failed)?;
        let mut words: Vec<String> = vec!["start-server".into(), ";".into()];
        for (name, value) in options(self.terminal) {
            words.extend(["set-option", "-g", name, value, ";"].map(str::to_owned));
        }
        let (columns, rows) = (console.columns.to_string(), console.rows.to_string());
        let session = self.address.session.as_str();
        words.extend(
            ["new-session", "-d", "-P", "-F", "#{pane_pid}", "-x", &columns, "-y", &rows]
                .into_iter()
                .chain(["-s", session, "--"])
                .map(str::to_owned),
        );
        words.extend(console.argv.iter().map(|word| quoted(word)));
        let mut spec = self.spec(words.iter().map(String::as_str));
        // The session takes over the directory of this call. The option `-c` would expand formats
        // in the path.
        spec.cwd = Some(console.cwd.clone());
        match self.ask(&spec).await {
            Answer::Done(output) => parse_pid(action, &output),
            Answer::Absent => Err(failed("the server did not start".to_owned())),
            Answer::Unclear(detail) => Err(failed(detail)),
        }
    }

    async fn kill(&self) -> Result<bool, TmuxError> {
        // The answer comes before the server is gone, and a new one at the same socket must not meet
        // the old one: asked again until nobody answers.
        let spec = self.spec(["kill-server"]);
        let mut existed = false;
        let mut last = String::new();
        for _ in 0..KILL_ATTEMPTS {
            match self.ask(&spec).await {
                Answer::Absent => return Ok(existed),
                Answer::Done(_) => existed = true,
                Answer::Unclear(detail) if says_dying(&detail) => {
                    existed = true;
                    last = detail;
                }
                Answer::Unclear(detail) => {
                    return Err(TmuxError::Failed { action: "end the console", detail });
                }
            }
        }
        let detail = format!("the server still answers {last}").trim_end().to_owned();
        Err(TmuxError::Failed { action: "end the console", detail })
    }

    async fn capture(&self, what: Capture) -> Result<String, TmuxError> {
        let (pane, start) = (self.pane(), format!("-{}", what.history));
        let mut words = vec!["capture-pane", "-p", "-t", &pane];
        if what.joined {
            words.push("-J");
        }
        if what.history > 0 {
            words.extend(["-S", &start]);
        }
        Ok(self.on_console("read the console", &self.spec(words)).await?.stdout_text())
    }

    async fn look(&self) -> Result<ConsoleView, TmuxError> {
        let action = "look at the console";
        let (session, pane) = (self.session(), self.pane());
        // `display-message` would answer for a missing session too, hence the check before it.
        let check = ["has-session", "-t", &session, ";"];
        let facts = ["display-message", "-p", "-t", &pane, FACTS, ";"];
        let screen = ["capture-pane", "-p", "-J", "-t", &pane];
        let spec = self.spec(check.into_iter().chain(facts).chain(screen));
        let text = self.on_console(action, &spec).await?.stdout_text();
        parse_view(&text).ok_or_else(|| {
            let detail = "its answer has no first line of facts".to_owned();
            TmuxError::Failed { action, detail }
        })
    }

    async fn leave_mode(&self) -> Result<(), TmuxError> {
        let spec = self.spec(["copy-mode", "-q", "-t", &self.pane()]);
        self.on_console("leave a mode of the console", &spec).await.map(drop)
    }

    async fn pane_pid(&self) -> Result<u32, TmuxError> {
        let action = "find the program in the console";
        // `display-message` would answer with an empty text and success for a missing session.
        let spec = self.spec(["list-panes", "-t", &self.pane(), "-F", "#{pane_pid}"]);
        parse_pid(action, &self.on_console(action, &spec).await?)
    }

    async fn paste(&self, text: &str) -> Result<(), TmuxError> {
        check_paste(text)?;
        let pane = self.pane();
        let load = ["load-buffer", "-b", BUFFER, "-", ";"];
        // -p brackets the text if the program asked for that, -r keeps newlines as they are.
        let paste = ["paste-buffer", "-p", "-r", "-d", "-b", BUFFER, "-t", &pane];
        // Looked up first, so that no text is left in the buffer of a server without the session.
        let session = self.session();
        let check = ["has-session", "-t", &session, ";"];
        let mut spec = self.spec(check.into_iter().chain(load).chain(paste));
        spec.stdin = Some(text.as_bytes().to_vec());
        self.on_console("paste into the console", &spec).await.map(drop)
    }

    async fn key(&self, key: &KeyName) -> Result<(), TmuxError> {
        let spec = self.spec(["send-keys", "-t", &self.pane(), "--", key.as_str()]);
        self.on_console("press a key in the console", &spec).await.map(drop)
    }

    async fn key_if_shown(&self, key: &KeyName, shown: &str) -> Result<bool, TmuxError> {
        check_shown(shown)?;
        let action = "press a key in the console";
        let (session, pane) = (self.session(), self.pane());
        // Letters and digits only: nothing in them is a format, a glob or a quote.
        let condition = format!("#{{C:{shown}}}");
        let press =
            format!("send-keys -t '{pane}' -- {} ; display-message -p {PRESSED}", in_quotes(key));
        let check = ["has-session", "-t", &session, ";"];
        let ask = ["if-shell", "-F", "-t", &pane, &condition, &press];
        let output = self.on_console(action, &self.spec(check.into_iter().chain(ask))).await?;
        Ok(output.stdout_text().trim() == PRESSED)
    }

    async fn clients(&self) -> Result<Vec<String>, TmuxError> {
        let spec = self.spec(["list-clients", "-t", &self.session(), "-F", "#{client_tty}"]);
        let output = self.on_console("list the attached terminals", &spec).await?;
        Ok(output.stdout_text().lines().map(str::to_owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clear_words_mean_absent() {
        for absent in [
            "can't find session: Rev",
            "no server running on /x/tmux.sock",
            "error connecting to /x/tmux.sock (No such file or directory)",
            "error connecting to /x/tmux.sock (Connection refused)",
        ] {
            assert!(says_absent(absent), "{absent}");
        }
        for other in [
            "",
            "error connecting to /x/tmux.sock (Permission denied)",
            "error connecting to /x/tmux.sock (File name too long)",
            "server exited unexpectedly",
            "duplicate session: Rev",
            "can't find window: Rev",
        ] {
            assert!(!says_absent(other), "{other}");
        }
    }

    #[test]
    fn a_look_is_taken_apart() {
        let view = parse_view("1 a title  with\tblanks\n\nrow\n").expect("a view");
        assert_eq!((view.in_mode, view.title.as_str()), (true, "a title  with\tblanks"));
        assert_eq!(view.screen, "\nrow\n");
        assert!(!parse_view("0 \n").expect("a view").in_mode);
        for bad in ["", "0 x", "x y\n", "\n"] {
            assert_eq!(parse_view(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_final_semicolon_stays_part_of_its_word() {
        for (word, seen) in
            [("a", "a"), ("a;", "a\\;"), (";", "\\;"), ("a\\;", "a\\\\;"), ("a;b", "a;b")]
        {
            assert_eq!(quoted(word), seen);
        }
    }
}
