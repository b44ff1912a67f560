use std::fmt::{self, Debug};
use std::str::FromStr;
use std::sync::Arc;

use async_trait::async_trait;
use camino::Utf8PathBuf;

use crate::id::{NameError, RoleName};

/// A role's own tmux server and the session in it. An adapter is built for one address, so no call
/// can reach another role's console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TmuxAddress {
    /// The server's socket.
    pub socket: Utf8PathBuf,
    /// The session name.
    pub session: RoleName,
}

/// Whether a console exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConsolePresence {
    /// It exists.
    Present,
    /// tmux said that there is no such session or no server.
    Absent,
    /// Neither could be established, with the reason.
    Unknown(String),
}

/// A console to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewConsole {
    /// The program and its arguments, executed without a shell: at least two words, since tmux hands
    /// a single one to a shell. Must hold no secret: it is visible in the process list.
    pub argv: Vec<String>,
    /// Working directory of the program.
    pub cwd: Utf8PathBuf,
    /// Columns of the screen.
    pub columns: u16,
    /// Rows of the screen.
    pub rows: u16,
}

/// What to read from a console.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capture {
    /// Lines of history above the screen to include.
    pub history: u32,
    /// Whether wrapped rows are joined.
    pub joined: bool,
}

/// One look at a console: everything of the same moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConsoleView {
    /// The visible screen, wrapped rows joined.
    pub screen: String,
    /// The title that the program set.
    pub title: String,
    /// Whether a person reads its history or a menu of tmux: keys would go there.
    pub in_mode: bool,
}

/// The name of a key as tmux spells it, for example `Enter`, `C-c` or `Up`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyName(String);

impl KeyName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for KeyName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        const NAMED: &[&str] = &[
            "Enter", "Escape", "Space", "Tab", "BTab", "BSpace", "Up", "Down", "Left", "Right",
            "Home", "End", "NPage", "PPage", "PageUp", "PageDown", "IC", "DC", "F1", "F2", "F3",
            "F4", "F5", "F6", "F7", "F8", "F9", "F10", "F11", "F12",
        ];
        let mut base = text;
        while let Some(rest) =
            ["C-", "M-", "S-"].iter().find_map(|prefix| base.strip_prefix(prefix))
        {
            base = rest;
        }
        let mut chars = base.chars();
        let single = matches!((chars.next(), chars.next()), (Some(c), None) if c.is_ascii_graphic() && c != ';');
        if text.len() <= 16 && (single || NAMED.contains(&base)) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NameError {
                what: "key",
                found: text.escape_debug().take(40).collect(),
                allowed: "a tmux key name such as Enter, Escape, Up, Tab, C-c, M-x, F1 or one character",
            })
        }
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a console operation failed.
#[derive(Debug, thiserror::Error)]
pub enum TmuxError {
    /// tmux said that the session or the server does not exist.
    #[error("the console of `{session}` is not running")]
    NoConsole {
        /// The session asked for.
        session: RoleName,
    },
    /// tmux itself could not be run or gave an answer that proves nothing.
    #[error("tmux failed to {action}: {detail}")]
    Failed {
        /// What was tried.
        action: &'static str,
        /// tmux's own words.
        detail: String,
    },
    /// The text cannot be typed unchanged.
    #[error("the text cannot be typed: {reason}")]
    BadText {
        /// Why.
        reason: &'static str,
    },
}

/// Refuses what [`Tmux::paste`] cannot put into a console unchanged.
pub fn check_paste(text: &str) -> Result<(), TmuxError> {
    let reason = if text.is_empty() {
        "it is empty"
    } else if text.chars().any(|c| c.is_control() && c != '\n' && c != '\t') {
        "it holds a control character other than newline and tab"
    } else {
        return Ok(());
    };
    Err(TmuxError::BadText { reason })
}

/// Refuses what [`Tmux::key_if_shown`] cannot look for: anything but ASCII letters and digits.
pub fn check_shown(shown: &str) -> Result<(), TmuxError> {
    let plain = !shown.is_empty() && shown.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let reason = "only letters and digits can be looked for";
    if plain { Ok(()) } else { Err(TmuxError::BadText { reason }) }
}

/// One role's console.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait Tmux: Send + Sync + Debug {
    /// The server and session that every call addresses.
    fn address(&self) -> &TmuxAddress;

    /// Program and arguments that attach a terminal to the console.
    fn attach_argv(&self) -> Vec<String>;

    /// Whether the console exists. Never fails: what cannot be told is `Unknown`.
    ///
    /// # Cancel safety
    /// Reads only.
    async fn presence(&self) -> ConsolePresence;

    /// Opens the console in a server of its own, detached, and returns the pid of the program in it.
    /// Fails if the session already exists, and if the directory of the socket lets others in.
    ///
    /// # Cancel safety
    /// Not cancel safe: the console may exist afterwards. Call [`Tmux::kill`] to be sure.
    async fn open(&self, console: &NewConsole) -> Result<u32, TmuxError>;

    /// Ends the server with everything in it; tells whether there was one. Idempotent.
    ///
    /// # Cancel safety
    /// Repeat after a drop.
    async fn kill(&self) -> Result<bool, TmuxError>;

    /// The text on the console.
    ///
    /// # Cancel safety
    /// Reads only.
    async fn capture(&self, what: Capture) -> Result<String, TmuxError>;

    /// Screen, title and mode at one moment.
    ///
    /// # Cancel safety
    /// Reads only.
    async fn look(&self) -> Result<ConsoleView, TmuxError>;

    /// Leaves the history or menu that a person has open; does nothing if there is none.
    ///
    /// # Cancel safety
    /// Repeat after a drop.
    async fn leave_mode(&self) -> Result<(), TmuxError>;

    /// The pid of the program in the console.
    ///
    /// # Cancel safety
    /// Reads only.
    async fn pane_pid(&self) -> Result<u32, TmuxError>;

    /// Puts text into the console as a bracketed paste, byte for byte, without Enter. The text
    /// never appears on a command line. No text at all, and control characters but newline and tab,
    /// are refused.
    ///
    /// # Cancel safety
    /// Not cancel safe: whether the text arrived is then unknown.
    async fn paste(&self, text: &str) -> Result<(), TmuxError>;

    /// Presses one key.
    ///
    /// # Cancel safety
    /// Not cancel safe: whether the key arrived is then unknown.
    async fn key(&self, key: &KeyName) -> Result<(), TmuxError>;

    /// Presses one key only if this text is on the visible screen at that moment; tells whether it
    /// did. Look and key are one step of the server, so nothing that the program has drawn goes
    /// unseen. The text is of ASCII letters and digits and stands in one row.
    ///
    /// # Cancel safety
    /// Not cancel safe: whether the key arrived is then unknown.
    async fn key_if_shown(&self, key: &KeyName, shown: &str) -> Result<bool, TmuxError>;

    /// The terminals attached to the console.
    ///
    /// # Cancel safety
    /// Reads only.
    async fn clients(&self) -> Result<Vec<String>, TmuxError>;
}

/// Hands out consoles by address.
pub trait TmuxServers: Send + Sync + Debug {
    /// The console at this address. Contacts nothing.
    fn server(&self, address: TmuxAddress) -> Arc<dyn Tmux>;
}
