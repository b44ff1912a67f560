//! What can be told of the agent in a console: looks at screen, title and session record, judged by
//! the harness's driver (02 §7.3), completed by what the program's hook told. Nobody looks unless
//! asked, starting, delivering, or told by the kernel or the hook that something changed; an idle
//! runner sleeps.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use camino::Utf8PathBuf;
use fleet_core::harness::hooks::HookSeen;
use fleet_core::harness::screen::{
    AgentState, Composer, Evidence, EvidenceSource, Readiness, SessionRecord, Sight, TerminalDriver,
};
use fleet_core::id::{SessionId, Timestamp};
use fleet_core::path::LexicalPath;
use fleet_core::port::{
    Clock, ConsoleView, Descendant, DirectoryWatch, DirectoryWatches, EntryKind, ProcessIdentity,
    ProcessTable, StateStore, Tmux, TmuxError,
};
use fleet_core::status::AgentStatus;
use tokio::sync::watch;

/// A program keeps one record a live process; of more files only so many are read.
const MOST_RECORDS: usize = 32;
/// Changes of a record closer together are looked at once.
const COALESCE: Duration = Duration::from_millis(200);

/// One look at an agent.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The console.
    pub view: ConsoleView,
    /// The session record, if one belongs to a live process of this role.
    pub record: Option<SessionRecord>,
    /// What the driver makes of both.
    pub state: AgentState,
    /// What stands in the composer, if one is seen.
    pub composer: Option<Composer>,
}

/// What is known of an agent, for whoever publishes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct News {
    /// What was last seen.
    pub agent: Option<AgentStatus>,
    /// Whether the program is up.
    pub ready: bool,
    /// The conversation, once a program that chooses its ids said which.
    pub session: Option<SessionId>,
    /// What of the project the agent can write although the launch covered it.
    pub uncovered: Vec<LexicalPath>,
}

/// Looks at one agent. Every look is told to whoever holds the other end of the news.
#[derive(Debug)]
pub struct Observer {
    tmux: Arc<dyn Tmux>,
    clock: Arc<dyn Clock>,
    driver: Arc<dyn TerminalDriver>,
    records: Option<Records>,
    hooks: Option<watch::Receiver<Option<HookSeen>>>,
    /// When a look last saw anything certain, in milliseconds; 0 if none did.
    known: AtomicU64,
    following: AtomicBool,
    news: watch::Sender<News>,
}

impl Observer {
    /// An observer of a console, without session records.
    pub fn new(
        tmux: Arc<dyn Tmux>,
        clock: Arc<dyn Clock>,
        driver: Arc<dyn TerminalDriver>,
    ) -> Self {
        let news = watch::Sender::default();
        let (following, known) = (AtomicBool::new(false), AtomicU64::new(0));
        Self { tmux, clock, driver, records: None, hooks: None, known, following, news }
    }

    /// With the session records of the processes below a launcher.
    #[must_use]
    pub(super) fn with_records(mut self, records: Records) -> Self {
        self.records = Some(records);
        self
    }

    /// With what the program's hook tells.
    #[must_use]
    pub fn with_hooks(mut self, hooks: watch::Receiver<Option<HookSeen>>) -> Self {
        self.hooks = Some(hooks);
        self
    }

    /// The console.
    pub fn tmux(&self) -> &dyn Tmux {
        &*self.tmux
    }

    /// Time.
    pub fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// How the program shows itself.
    pub fn driver(&self) -> &dyn TerminalDriver {
        &*self.driver
    }

    /// What was last seen, and each change of it.
    pub fn subscribe(&self) -> watch::Receiver<News> {
        self.news.subscribe()
    }

    /// What was last seen.
    pub fn news(&self) -> News {
        self.news.borrow().clone()
    }

    /// Looks once.
    ///
    /// # Cancel safety
    /// Reads only.
    pub async fn look(&self) -> Result<Seen, TmuxError> {
        let view = self.tmux.look().await?;
        let record = self.records.as_ref().and_then(Records::current);
        let title = Some(view.title.as_str()).filter(|title| !title.is_empty());
        let evidence = Evidence { screen: &view.screen, title, record: record.as_ref() };
        let state = self.with_hook(self.driver.state(&evidence));
        let composer = self.driver.composer(&view.screen);
        if self.driver.sight() > Sight::Nothing {
            self.tell(&state);
        }
        Ok(Seen { view, record, state, composer })
    }

    /// Says that the program is up.
    pub(super) fn set_ready(&self) {
        self.news.send_if_modified(|news| !std::mem::replace(&mut news.ready, true));
    }

    /// Says what is not covered any more.
    pub(super) fn set_uncovered(&self, paths: &[LexicalPath]) {
        self.news.send_if_modified(|news| {
            let new = news.uncovered != paths;
            if new {
                news.uncovered = paths.to_vec();
            }
            new
        });
    }

    /// Says which conversation it is.
    pub(super) fn set_session(&self, id: SessionId) {
        self.news.send_if_modified(|news| news.session.replace(id.clone()) != Some(id));
    }

    /// Looks again whenever a session record changes or the hook tells something; returns when
    /// neither can be told any more, at once for a program that has neither.
    ///
    /// # Cancel safety
    /// Reads only.
    pub(super) async fn follow(&self, watches: &dyn DirectoryWatches) {
        let records = self.records.as_ref();
        let mut records = records.and_then(|records| watches.watch(&records.directory).ok());
        let mut hooks = self.hooks.clone();
        while records.is_some() || hooks.is_some() {
            self.following.store(records.is_some(), Ordering::Relaxed);
            // At first for what changed before the watch began.
            drop(self.look().await);
            tokio::select! {
                watching = record_changed(records.as_mut()) => if !watching { records = None },
                listening = hook_told(hooks.as_mut()) => if !listening { hooks = None },
            }
            self.clock.sleep(COALESCE).await;
        }
        self.following.store(false, Ordering::Relaxed);
        drop(self.look().await);
    }

    fn with_hook(&self, state: AgentState) -> AgentState {
        let known = match self.known.load(Ordering::Relaxed) {
            0 => None,
            at => Some(Timestamp::from_millis(at)),
        };
        if state.readiness != Readiness::Unknown {
            self.known.store(self.clock.now().as_millis(), Ordering::Relaxed);
        }
        let told = self.hooks.as_ref().and_then(|hooks| hooks.borrow().clone());
        match told {
            Some(told) => told.complete(state, known),
            None => state,
        }
    }

    fn tell(&self, state: &AgentState) {
        let now = self.clock.now();
        let followed =
            self.following.load(Ordering::Relaxed) && state.evidence == EvidenceSource::Record;
        self.news.send_if_modified(|news| {
            let known = news.agent.as_mut().filter(|agent| agent.state == *state);
            if let Some(agent) = known.filter(|agent| agent.followed == followed) {
                // Nothing new, but seen again: whoever asks gets the time, nobody is woken.
                agent.at = now;
                return false;
            }
            let before = news.agent.as_ref();
            let same = before.filter(|agent| agent.state.readiness == state.readiness);
            let since = same.map_or(now, |agent| agent.since);
            news.agent = Some(AgentStatus { state: state.clone(), since, at: now, followed });
            true
        });
    }
}

/// Waits for a change of a session record; `false` if that cannot be told any more.
async fn record_changed(watch: Option<&mut Box<dyn DirectoryWatch>>) -> bool {
    match watch {
        Some(watch) => watch.changed().await.is_ok(),
        None => std::future::pending().await,
    }
}

/// Waits for the next event of the hook; `false` if none can come any more.
async fn hook_told(hooks: Option<&mut watch::Receiver<Option<HookSeen>>>) -> bool {
    match hooks {
        Some(hooks) => hooks.changed().await.is_ok(),
        None => std::future::pending().await,
    }
}

/// Session records of the live processes of a role. Written by the agent: hints, and only with a
/// process of this role behind them, since a record stays after a kill with its last status.
#[derive(Debug)]
pub(super) struct Records {
    pub(super) store: Arc<dyn StateStore>,
    pub(super) processes: Arc<dyn ProcessTable>,
    pub(super) directory: Utf8PathBuf,
    pub(super) launcher: ProcessIdentity,
    /// The process that the last record belonged to: while it lives, nobody else is looked at.
    pub(super) known: Mutex<Option<Descendant>>,
}

impl Records {
    /// The newest record that belongs to a live process below the launcher.
    fn current(&self) -> Option<SessionRecord> {
        let records = self.read();
        if records.is_empty() {
            return None;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(process) = known.as_ref()
            && self.processes.is_alive(&process.process).unwrap_or(false)
            && let Some(record) = records.iter().find(|record| belongs(record, process))
        {
            return Some(record.clone());
        }
        let living = self.processes.descendants(&self.launcher).unwrap_or_default();
        let owner = |record: &SessionRecord| {
            living.iter().find(|process| belongs(record, process)).cloned()
        };
        let (record, process) = records
            .into_iter()
            .filter_map(|record| owner(&record).map(|process| (record, process)))
            .max_by_key(|(record, _)| record.status_updated_at)?;
        *known = Some(process);
        Some(record)
    }

    fn read(&self) -> Vec<SessionRecord> {
        let limit = u64::try_from(SessionRecord::LIMIT).unwrap_or(u64::MAX);
        let entries = self.store.list(&self.directory).ok().flatten().unwrap_or_default();
        entries
            .into_iter()
            .filter(|entry| entry.kind == EntryKind::File)
            .filter_map(|entry| entry.name.strip_suffix(".json")?.parse::<u32>().ok())
            .take(MOST_RECORDS)
            .filter_map(|pid| {
                let path = self.directory.join(format!("{pid}.json"));
                let record = SessionRecord::parse(&self.store.read(&path, limit).ok()??)?;
                (record.pid == pid).then_some(record)
            })
            .filter(|record| record.kind.as_deref().is_none_or(|kind| kind == "interactive"))
            .collect()
    }
}

/// Whether a record is one of this process. Its pid is the one inside its own namespace, which another
/// process has elsewhere: the start time and the namespace tell them apart.
fn belongs(record: &SessionRecord, process: &Descendant) -> bool {
    let started = record.proc_start.as_deref().and_then(|start| start.parse::<u64>().ok());
    let namespaces = record.pid_namespace().zip(process.pid_namespace);
    record.pid == process.inner_pid
        && started == Some(process.process.start_time)
        && namespaces.is_none_or(|(told, real)| told == real)
}
