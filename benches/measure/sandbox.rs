//! Our launcher against raw `bwrap` with the same binds, and both against the program
//! alone: the time until it says its first word.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use fleet_core::launch::{
    DescriptorRequest, Environment, LaunchCommand, LaunchFile, LaunchPlan, PlanWord,
};
use fleet_core::path::LexicalPath;
use fleet_core::port::{FileIdentity, IsolationBackend, ProbeEvidence};
use fleet_sandbox::HostView;

use crate::{Failure, summary};

/// What is started: a program that says something at once.
const ECHO: [&str; 2] = ["/bin/echo", "started"];
const SEARCH: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// Runs all three in turn, `times` times, and compares within each round.
pub(crate) fn compare(
    times: usize,
    binary: &str,
    directory: &Path,
    mounts: usize,
) -> Result<Vec<String>, Failure> {
    let directory = Utf8PathBuf::try_from(directory.canonicalize()?)?;
    let root = directory.join("sandbox");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&root)?;
    for index in 0..mounts {
        fs::create_dir_all(root.join(format!("m{index}")))?;
    }
    let plan = plan(&root, mounts)?;
    let raw = raw_words(&plan, &directory)?;

    let (mut raw_times, mut over) = (Vec::new(), Vec::new());
    let (mut of_raw, mut of_plain) = (Vec::new(), Vec::new());
    for round in 0..=times {
        let plain_time = until_first_word(Command::new(ECHO[0]).args(&ECHO[1..]))?;
        let (program, arguments) = raw.split_first().ok_or("an empty plan")?;
        let raw_time = until_first_word(Command::new(program).args(arguments))?;
        let file = launch_file(&plan, &directory, round)?;
        let our_time = until_first_word(Command::new(binary).args(["_pane", file.as_str()]))?;
        if round > 0 {
            raw_times.push(raw_time.as_secs_f64() * 1000.0);
            over.push((our_time.as_secs_f64() - raw_time.as_secs_f64()) * 1000.0);
            of_raw.push(our_time.as_secs_f64() / raw_time.as_secs_f64());
            of_plain.push(our_time.as_secs_f64() / plain_time.as_secs_f64());
        }
    }
    let lines = [
        summary::line("raw", raw_times),
        summary::line("over", over),
        summary::line("of-raw", of_raw),
        summary::line("of-plain", of_plain),
    ];
    Ok(lines.into_iter().flatten().collect())
}

/// Time until the command says its first word, which is when a sandbox has started.
fn until_first_word(command: &mut Command) -> Result<Duration, Failure> {
    let start = Instant::now();
    let mut child = alone(command).stdout(Stdio::piped()).spawn()?;
    let mut word = [0];
    child.stdout.take().ok_or("no output")?.read_exact(&mut word)?;
    let elapsed = start.elapsed();
    ended_well(command, child)?;
    Ok(elapsed)
}

/// Runs the command to its end.
pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    let child = alone(command).stdout(Stdio::null()).spawn()?;
    ended_well(command, child)
}

fn alone(command: &mut Command) -> &mut Command {
    let path = SEARCH.join(":");
    command.env_clear().env("PATH", path).stdin(Stdio::null()).stderr(Stdio::piped())
}

fn ended_well(command: &Command, child: Child) -> Result<(), Failure> {
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let program = command.get_program().display();
    Err(format!("{program} ended with {}: {text}", output.status).into())
}

pub(crate) fn host_evidence() -> Result<ProbeEvidence, Failure> {
    let program = HostView::find_program(&SEARCH.map(Utf8PathBuf::from), "bwrap");
    let program = program.ok_or("`bwrap` is not installed")?;
    let help = Command::new(&program).arg("--help").output()?;
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    Ok(fleet_benches::evidence(program.as_str(), &help))
}

fn plan(root: &Utf8PathBuf, mounts: usize) -> Result<LaunchPlan, Failure> {
    let evidence = host_evidence()?;
    let identify = |path: &LexicalPath| {
        fs::symlink_metadata(path.as_str()).map_or(FileIdentity { dev: 0, ino: 0 }, |found| {
            FileIdentity { dev: found.dev(), ino: found.ino() }
        })
    };
    let policy =
        fleet_benches::policy_of(&LexicalPath::absolute(root.as_str())?, mounts, identify)?;
    let command = LaunchCommand { argv: ECHO.map(str::to_owned).to_vec(), cwd: root.join("m1") };
    Ok(fleet_benches::host_backend().plan(&policy, &evidence, &command)?)
}

/// The plan as a person would type it: paths in place of descriptors, no filters, no status pipe.
fn raw_words(plan: &LaunchPlan, directory: &Utf8PathBuf) -> Result<Vec<String>, Failure> {
    let mut words: Vec<String> = Vec::new();
    for word in &plan.argv {
        let index = match word {
            PlanWord::Text(text) => {
                words.push(text.to_string());
                continue;
            }
            PlanWord::Descriptor(index) => *index,
            // What asks the sandbox about itself: its three words are part of what is measured.
            PlanWord::DescriptorPath(_) => continue,
            other @ (PlanWord::Scratch { .. } | PlanWord::Tty) => {
                return Err(format!("not known to this program: {other:?}").into());
            }
        };
        let flag = words.pop().ok_or("a plan that begins with a descriptor")?;
        match plan.descriptors.get(index).ok_or("a descriptor that was not asked for")? {
            DescriptorRequest::Source { path, .. } => {
                words.extend([flag.trim_end_matches("-fd").to_owned(), path.to_string()]);
            }
            DescriptorRequest::Data { content, .. } => {
                // A mode belongs to the flag that makes the file; a bind has none.
                if words.len() > 1 && words[words.len() - 2] == "--perms" {
                    words.truncate(words.len() - 2);
                }
                let path = directory.join(format!("data{index}"));
                fs::write(&path, content)?;
                words.extend(["--ro-bind".to_owned(), path.to_string()]);
            }
            DescriptorRequest::SeccompFilter { .. }
            | DescriptorRequest::StatusPipe
            | DescriptorRequest::AttestRequest { .. } => {}
            // Stands for no flag: the separator in front of it stays.
            DescriptorRequest::AttestPipe => words.push(flag),
            other @ (DescriptorRequest::Prepared { .. }
            | DescriptorRequest::ReleasePipe
            | DescriptorRequest::Environment
            | DescriptorRequest::LifeLine
            | DescriptorRequest::OwnProgram) => {
                return Err(format!("not known to this program: {other:?}").into());
            }
        }
    }
    Ok(words)
}

fn launch_file(
    plan: &LaunchPlan,
    directory: &Utf8PathBuf,
    round: usize,
) -> Result<Utf8PathBuf, Failure> {
    let command = LaunchCommand { argv: ECHO.map(str::to_owned).to_vec(), cwd: directory.clone() };
    write_launch_file(plan, command, directory, round)
}

pub(crate) fn write_launch_file(
    plan: &LaunchPlan,
    command: LaunchCommand,
    directory: &Utf8PathBuf,
    round: usize,
) -> Result<Utf8PathBuf, Failure> {
    let file = LaunchFile {
        version: LaunchFile::VERSION,
        launch_id: format!("bench-{round}").parse()?,
        role: "bench".parse()?,
        command,
        env: Environment([("PATH".to_owned(), SEARCH.join(":"))].into()),
        plan: plan.clone(),
        exit_record: directory.join("exit-status"),
        observed: directory.join("observed.json"),
        sandbox_process: Some(directory.join("sandbox-process.json")),
        connections: Some(directory.join("connections.jsonl")),
        limits: None,
    };
    let path = directory.join("launch.json");
    let mut options = fs::OpenOptions::new();
    let mut open = options.write(true).create_new(true).mode(0o600).open(&path)?;
    open.write_all(&serde_json::to_vec(&file)?)?;
    Ok(path)
}
