//! The launcher: the process in a role's console.
//!
//! It reads the launch file, checks every source once more, starts the command with exactly the
//! built environment, watches it, writes what it saw and how it ended, and ends with the same
//! status. It decides nothing: all decisions are in the plan. Single-threaded on purpose.
//! Tests: `integration/launcher.rs`, `escape/`, `shim/`.

mod descriptors;
mod ending;
mod file;
mod guard;
mod hygiene;
pub(crate) mod pipe;
mod prepare;
pub(crate) mod record;
mod relay;
mod scratch;
mod serve;
mod status;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::id::Timestamp;
use fleet_core::isolation::BackendName;
use fleet_core::launch::{ExitRecord, LaunchFile, PlanWord};
use fleet_core::limits::OutOfMemory;

pub use file::take;
pub use relay::listen_inside;
pub(crate) use scratch::clear_left;

use crate::podman;
use descriptors::{Asked, Fulfilled};
use guard::{Ended, Guard, Listening};
use prepare::Prepared;
use scratch::Scratch;
use serve::Served;

use crate::limits::{self, Held, Starting};

/// Marks every descriptor that this process inherited beside the three standard ones, so that no
/// program that it starts keeps it open.
///
/// # Errors
/// The system does not tell which descriptors are open.
pub fn close_inherited_on_exec() -> std::io::Result<()> {
    hygiene::close_on_exec()
}

/// Exit status of the launcher when no command ran.
pub const REFUSED: i32 = 125;

/// Why a launch was refused. Nothing ran then.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The launch file is not one that only the fleet user could have written.
    #[error("the launch file {path} is refused: {why}")]
    File {
        /// The file.
        path: Utf8PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A mount source is not what was resolved.
    #[error("{path} is not what it was when the launch was planned: {why}")]
    Changed {
        /// The source.
        path: Utf8PathBuf,
        /// The difference.
        why: String,
    },
    /// A directory for the launch could not be made.
    #[error("failed to make {path}: {why}")]
    Prepare {
        /// The directory.
        path: Utf8PathBuf,
        /// Why.
        why: String,
    },
    /// The plan asks for what this launcher does not know.
    #[error("the launch plan is not usable: {why}")]
    Plan {
        /// What is wrong.
        why: String,
    },
    /// The environment would act on the sandbox program itself.
    #[error("the environment sets {name}, which would act outside of the sandbox: remove it")]
    Environment {
        /// The variable.
        name: String,
    },
    /// The system refused something.
    #[error("failed to {action}: {detail}")]
    System {
        /// What was tried.
        action: &'static str,
        /// The system's words.
        detail: String,
    },
}

impl Refusal {
    fn system(action: &'static str) -> impl Fn(std::io::Error) -> Self {
        move |error| Self::System { action, detail: error.to_string() }
    }
}

/// Runs one launch to its end, as the process that the console was started with.
///
/// Needs a current-thread tokio runtime with I/O and time enabled. Returns the status that the
/// process is to exit with: that of the command, 128+n for signal n, [`REFUSED`] if nothing ran.
///
/// # Cancel safety
/// Dropping the future leaves a started sandbox to `--die-with-parent`; run it to its end.
pub async fn run_pane(launch_file: &Utf8Path) -> i32 {
    let launch = match hygiene::close_on_exec()
        .map_err(Refusal::system("mark inherited descriptors"))
        .and_then(|()| take(launch_file))
    {
        Ok(launch) => launch,
        Err(refusal) => {
            say(&refusal.to_string());
            return REFUSED;
        }
    };
    let started_at = record::now();
    let (mut prepared, mut own) = (Prepared::default(), Scratch::default());
    let mut held = None;
    let ended = attempt(&launch, &mut prepared, &mut own, &mut held).await;
    drop(own);
    prepared.undo(&launch.plan);
    let out_of_memory = held.and_then(Held::finish);
    if let Some(reason) = &ended.error {
        say(reason);
    }
    let status = ended.status();
    let record = exit_record(&launch, started_at, ended, out_of_memory);
    if let Err(error) = record::write(&launch.exit_record, &record) {
        say(&format!("failed to write the exit record: {error}"));
    }
    status
}

async fn attempt(
    launch: &LaunchFile,
    prepared: &mut Prepared,
    own: &mut Scratch,
    held: &mut Option<Held>,
) -> Ended {
    let result = async {
        // Before anything is started, so that no request to stop is lost.
        let signals = guard::Signals::listen().map_err(Refusal::system("listen to signals"))?;
        hygiene::no_core_dumps().map_err(Refusal::system("switch core dumps off"))?;
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(|errno| Refusal::system("adopt orphans")(errno.into()))?;
        refuse_loader_variables(launch)?;
        prepared.make(&launch.plan)?;
        *own = Scratch::make(launch)?;
        let fulfilled = descriptors::fulfil(launch, prepared)?;
        let words = words(launch, &fulfilled, &launch.plan.argv);
        let Started { child, status, release, asked, held: under, life } =
            start(launch, words, fulfilled, false)?;
        *held = under;
        let mut status = status
            .map(status::StatusPipe::new)
            .transpose()
            .map_err(Refusal::system("watch the sandbox program"))?;
        // Held until after a refusal has killed the sandbox: its end would let the command go.
        let served = match (&mut status, &release) {
            (Some(status), Some(release)) => {
                serve::network(launch, child.id(), status, release).await
            }
            _ => Ok(Served::default()),
        };
        let mut guard = Guard::new(launch, &child, status, signals);
        if let Some(held) = &held {
            guard.held(held);
        }
        match asked.map(Listening::new).transpose() {
            Ok(listening) => guard.listen(listening),
            Err(error) => guard.refuse(Refusal::system("hear the sandbox")(error).to_string()),
        }
        match served {
            Ok(Served { network, reports }) => guard.begin(network, &reports),
            Err(refusal) => guard.refuse(refusal.to_string()),
        }
        let life = if launch.plan.backend == BackendName::Landlock {
            guard.hold(life);
            Vec::new()
        } else {
            life
        };
        Ok::<_, Refusal>((guard, life))
    }
    .await;
    match result {
        Err(refusal) => Ended::refused(refusal.to_string()),
        Ok((guard, _life)) => {
            let mut ended = guard.run().await;
            if !ended.started && ended.error.is_none() {
                ended.error = Some(diagnose(launch, prepared));
            }
            ended
        }
    }
}

/// `LD_PRELOAD` and its kin would load code into the sandbox program, outside of the sandbox.
fn refuse_loader_variables(launch: &LaunchFile) -> Result<(), Refusal> {
    if launch.plan.backend == BackendName::None {
        return Ok(());
    }
    match launch.env.0.keys().find(|name| name.starts_with("LD_")) {
        Some(name) => Err(Refusal::Environment { name: name.clone() }),
        None => Ok(()),
    }
}

fn words(launch: &LaunchFile, fulfilled: &Fulfilled, argv: &[PlanWord]) -> Vec<String> {
    let mut words: Vec<String> = argv
        .iter()
        .map(|word| match word {
            PlanWord::Text(text) => text.to_string(),
            PlanWord::Descriptor(index) => fulfilled.number(*index),
            PlanWord::DescriptorPath(index) => fulfilled.path(*index),
            PlanWord::Scratch { before, after } => {
                format!("{before}{}{after}", scratch::path(launch))
            }
            PlanWord::Tty => format!("--tty={}", has_console()),
        })
        .collect();
    if let Some(program) = words.first_mut()
        && !program.contains('/')
    {
        *program = hygiene::find_program(program, &launch.env);
    }
    words
}

/// Whether there is a terminal to type into and to be seen on.
fn has_console() -> bool {
    rustix::termios::isatty(std::io::stdin()) && rustix::termios::isatty(std::io::stdout())
}

/// A started sandbox program, with our ends of its pipes.
struct Started {
    child: Child,
    status: Option<OwnedFd>,
    release: Option<OwnedFd>,
    asked: Option<Asked>,
    held: Option<Held>,
    /// Their end tells what keeps the sandbox that this process is gone.
    life: Vec<OwnedFd>,
}

/// Starts the program; with `quiet` it gets no terminal and its errors can be read.
fn start(
    launch: &LaunchFile,
    words: Vec<String>,
    mut fulfilled: Fulfilled,
    quiet: bool,
) -> Result<Started, Refusal> {
    let mut words = words.into_iter();
    let Some(program) = words.next() else {
        return Err(Refusal::Plan { why: "its command line is empty".to_owned() });
    };
    let copy = match launch.plan.backend {
        BackendName::Bubblewrap => descriptors::own_program(&program)?,
        _ => None,
    };
    let executed = copy
        .as_ref()
        .map_or_else(|| program.clone(), |copy| format!("/proc/self/fd/{}", copy.as_raw_fd()));
    // podman would write it to disk; the first program in the container gets it.
    let none = BTreeMap::new();
    let env = if launch.plan.backend == BackendName::Podman { &none } else { &launch.env.0 };
    // A sandbox program changes directory itself, inside.
    let cwd = match launch.plan.backend {
        BackendName::None => launch.command.cwd.as_str(),
        _ => "/",
    };
    // A trial is over at once, and what it shows has nothing to do with caps.
    let limits = launch.limits.as_ref().filter(|_| !quiet);
    let keeper = limits.and_then(limits::keeper);
    fulfilled.pass_on().map_err(Refusal::system("hand descriptors over"))?;
    let (child, held) = if let Some(request) = limits {
        let by = copy.as_ref();
        let args = words.collect();
        let starting = Starting { program: executed, arg0: &program, args, env, cwd, by };
        let (child, mut held) = limits::start(request, &starting, keeper)
            .map_err(|detail| Refusal::System { action: "start the command", detail })?;
        held.judge(launch.plan.backend);
        (child, Some(held))
    } else {
        let mut command = Command::new(executed);
        command.arg0(&program).args(words).env_clear().envs(env).current_dir(cwd);
        if quiet {
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        }
        let child = command.spawn().map_err(|error| Refusal::System {
            action: "start the command",
            detail: format!("{program}: {error}"),
        })?;
        (child, None)
    };
    // Our copies of what was handed over are closed with `fulfilled`.
    Ok(Started {
        child,
        status: fulfilled.take_status(),
        release: fulfilled.take_release(),
        asked: fulfilled.take_asked(),
        held,
        life: fulfilled.take_life(),
    })
}

/// Why the sandbox program ended before the command ran. Its message went to the console, which is
/// gone soon, so the same line is tried once more with a harmless command and its errors read.
fn diagnose(launch: &LaunchFile, prepared: &Prepared) -> String {
    let plan = &launch.plan;
    if plan.backend == BackendName::Podman {
        let text = std::fs::read_to_string(scratch::path(launch).join(podman::ERROR));
        let reason: String = text.unwrap_or_default().trim().chars().take(500).collect();
        return if reason.is_empty() {
            "the container did not answer the questions about itself".to_owned()
        } else {
            format!("the container could not be made: {reason}")
        };
    }
    let separator = plan.argv.iter().position(|word| *word == PlanWord::text("--"));
    let Some(separator) = separator.filter(|_| plan.backend == BackendName::Bubblewrap) else {
        return "the command did not run".to_owned();
    };
    let mut argv = plan.argv[..=separator].to_vec();
    argv.push(PlanWord::text("/usr/bin/true"));
    let trial = descriptors::fulfil(launch, prepared).and_then(|fulfilled| {
        let words = words(launch, &fulfilled, &argv);
        let Started { child, status: _status, release, asked: _asked, held: _, life: _ } =
            start(launch, words, fulfilled, true)?;
        // Nothing is to be served to a harmless command: the end of input lets it go on.
        drop(release);
        child.wait_with_output().map_err(Refusal::system("wait for the sandbox program"))
    });
    match trial {
        Err(refusal) => refusal.to_string(),
        // The program inside says by itself when it cannot execute the command.
        Ok(output) if output.status.success() && plan.attestation().is_some() => {
            "the sandbox works, but it did not answer the questions about itself: ours-fleet cannot \
             be executed in it"
                .to_owned()
        }
        Ok(output) if output.status.success() => not_executed(launch),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            let reason: String = text.trim().chars().take(500).collect();
            format!("the sandbox could not be made: {reason}")
        }
    }
}

fn not_executed(launch: &LaunchFile) -> String {
    format!(
        "the sandbox works, but `{}` could not be executed in it: not visible there, or not \
         executable",
        launch.command.argv.first().map_or("", String::as_str)
    )
}

fn exit_record(
    launch: &LaunchFile,
    started_at: Timestamp,
    ended: Ended,
    out_of_memory: Option<OutOfMemory>,
) -> ExitRecord {
    ExitRecord {
        version: LaunchFile::VERSION,
        backend: "tmux".to_owned(),
        launch_id: launch.launch_id.clone(),
        started: ended.started,
        code: ended.code,
        signal: ended.signal,
        hangup: ended.hangup,
        stopped: ended.stopped,
        started_at,
        ended_at: record::now(),
        error: ended.error,
        out_of_memory,
        left: ended.left,
    }
}

/// Shows a line in the console; a console that is gone is no error.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "ours-fleet: {text}");
}
