use std::ffi::OsStr;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use async_trait::async_trait;
use fleet_core::port::{CommandSpec, Exec, ExecError, ExecOutput, Exit};
use rustix::fs::Access;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};

/// What standard output and error of one program may hold together.
pub const OUTPUT_LIMIT: usize = 10 * 1024 * 1024;

/// How long the pipes are read after the program's own end. What it wrote itself lies in them already;
/// only a background child keeps them open longer.
const DRAIN: Duration = Duration::from_millis(50);

/// Room for one read.
const READ_SIZE: usize = 16 * 1024;

/// Runs real programs.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessExec;

/// A child that takes its whole process group along when dropped.
struct Group {
    child: Child,
}

impl Group {
    /// Kills every process of the group. Does nothing once the child is reaped: from then on the
    /// number may belong to somebody else.
    fn kill(&self) {
        let pid = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // Fails only if the group is gone, which is what is wanted.
            let _gone = kill_process_group(pid, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Before the child itself is dropped and perhaps reaped.
        self.kill();
    }
}

/// Both outputs, read side by side up to a common limit.
#[derive(Default)]
struct Output {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

/// Why reading stopped early.
enum ReadError {
    Limit,
    Io(io::Error),
}

impl Output {
    /// Reads until both ends are closed. Keeps what was read when dropped.
    async fn fill(
        &mut self,
        out: &mut Option<impl AsyncRead + Unpin>,
        err: &mut Option<impl AsyncRead + Unpin>,
    ) -> Result<(), ReadError> {
        while out.is_some() || err.is_some() {
            tokio::select! {
                read = read_some(out, &mut self.stdout) => if read.map_err(ReadError::Io)? == 0 {
                    *out = None;
                },
                read = read_some(err, &mut self.stderr) => if read.map_err(ReadError::Io)? == 0 {
                    *err = None;
                },
            }
            if self.stdout.len() + self.stderr.len() > OUTPUT_LIMIT {
                return Err(ReadError::Limit);
            }
        }
        Ok(())
    }
}

/// One read, or a wait for ever if the pipe is closed already. Loses nothing when dropped.
async fn read_some(
    pipe: &mut Option<impl AsyncRead + Unpin>,
    into: &mut Vec<u8>,
) -> io::Result<usize> {
    match pipe {
        Some(pipe) => {
            into.reserve(READ_SIZE);
            pipe.read_buf(into).await
        }
        None => std::future::pending().await,
    }
}

/// Hands over the input and closes the pipe. A program that does not read it is no error.
async fn feed(pipe: Option<ChildStdin>, bytes: &[u8]) -> io::Result<()> {
    let Some(mut pipe) = pipe else { return Ok(()) };
    match pipe.write_all(bytes).await {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Where a program was found.
enum Lookup {
    Found(PathBuf),
    Missing,
    NotExecutable,
    /// In a directory that may not be entered.
    Hidden,
}

/// Finds the program as a shell would, in the `PATH` of the child's own environment.
fn look_up(spec: &CommandSpec, cwd: &Path) -> Lookup {
    let judge = |candidate: PathBuf| match candidate.metadata() {
        Ok(facts) if facts.is_file() && rustix::fs::access(&candidate, Access::EXEC_OK).is_ok() => {
            Lookup::Found(candidate)
        }
        Ok(_) => Lookup::NotExecutable,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Lookup::Hidden,
        Err(_) => Lookup::Missing,
    };
    if spec.program.contains('/') {
        return judge(cwd.join(&spec.program));
    }
    let search = spec.env.iter().rev().find(|(name, _)| name == "PATH");
    let mut result = Lookup::Missing;
    // An empty or relative entry would mean the working directory, which others may write.
    let directories = search.map_or("", |(_, value)| value).split(':');
    for directory in directories.filter(|directory| directory.starts_with('/')) {
        if spec.program.is_empty() {
            break;
        }
        match judge(Path::new(directory).join(&spec.program)) {
            found @ Lookup::Found(_) => return found,
            Lookup::NotExecutable => result = Lookup::NotExecutable,
            // A directory of another user on the path, where nothing is to be found for us.
            Lookup::Missing | Lookup::Hidden => {}
        }
    }
    result
}

/// The answer for a program that did not start, as a shell gives it.
fn unstarted(spec: &CommandSpec, code: i32, why: &str) -> ExecOutput {
    let stderr = format!("{}: {why}\n", spec.program).into_bytes();
    ExecOutput { exit: Exit::Code(code), stdout: Vec::new(), stderr }
}

fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Code(-1),
    }
}

impl ProcessExec {
    fn spawn(spec: &CommandSpec, program: &Path, cwd: &Path) -> io::Result<Group> {
        #[expect(clippy::disallowed_methods, reason = "this is where programs are run")]
        let mut command = Command::new(program);
        command
            .args(spec.args.iter().map(OsStr::new))
            .env_clear()
            .envs(spec.env.iter().map(|(name, value)| (name, value)))
            .current_dir(cwd)
            .stdin(if spec.stdin.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        command.spawn().map(|child| Group { child })
    }

    /// Reads, feeds and waits until the program itself has ended, then takes what is left in the pipes.
    async fn attend(group: &mut Group, input: &[u8]) -> Result<ExecOutput, ReadError> {
        let (mut out, mut err) = (group.child.stdout.take(), group.child.stderr.take());
        let feeding = feed(group.child.stdin.take(), input);
        tokio::pin!(feeding);
        let mut output = Output::default();
        let (mut fed, mut read) = (false, false);
        let status = loop {
            tokio::select! {
                // The end of the program first: the rest is optional from then on.
                biased;
                status = group.child.wait() => break status.map_err(ReadError::Io)?,
                result = &mut feeding, if !fed => {
                    result.map_err(ReadError::Io)?;
                    fed = true;
                }
                result = output.fill(&mut out, &mut err), if !read => {
                    result?;
                    read = true;
                }
            }
        };
        if !read {
            match tokio::time::timeout(DRAIN, output.fill(&mut out, &mut err)).await {
                // A background child holds the pipes; its output is not part of the answer.
                Ok(Ok(())) | Err(_) => {}
                Ok(Err(error)) => return Err(error),
            }
        }
        Ok(ExecOutput { exit: exit_of(status), stdout: output.stdout, stderr: output.stderr })
    }
}

#[async_trait]
impl Exec for ProcessExec {
    async fn run(&self, spec: &CommandSpec) -> Result<ExecOutput, ExecError> {
        let io_error = |source| ExecError::Io { program: spec.program.clone(), source };
        let cwd = spec.cwd.as_ref().map_or(Path::new("/"), |cwd| cwd.as_std_path());
        // Looked at before the program, since both failures would give the same error number.
        if let Err(source) = rustix::fs::access(cwd, Access::EXEC_OK) {
            let source = io::Error::from(source);
            let text = format!("working directory {}: {source}", cwd.display());
            return Err(io_error(io::Error::new(source.kind(), text)));
        }
        let program = match look_up(spec, cwd) {
            Lookup::Found(program) => program,
            Lookup::Missing => return Ok(unstarted(spec, 127, "not found")),
            Lookup::NotExecutable | Lookup::Hidden => {
                return Ok(unstarted(spec, 126, "may not be executed"));
            }
        };
        let mut group = match Self::spawn(spec, &program, cwd) {
            Ok(group) => group,
            Err(error) => {
                return match error.raw_os_error().map(Errno::from_raw_os_error) {
                    Some(Errno::NOENT) => Ok(unstarted(spec, 127, "its interpreter was not found")),
                    Some(Errno::ACCESS | Errno::NOEXEC | Errno::PERM) => {
                        Ok(unstarted(spec, 126, "may not be executed"))
                    }
                    _ => Err(io_error(error)),
                };
            }
        };
        let input = spec.stdin.as_deref().unwrap_or_default();
        let attended = tokio::time::timeout(spec.timeout, Self::attend(&mut group, input)).await;
        let failure = match attended {
            Ok(Ok(output)) => return Ok(output),
            Ok(Err(ReadError::Limit)) => {
                ExecError::OutputLimit { program: spec.program.clone(), limit: OUTPUT_LIMIT }
            }
            Ok(Err(ReadError::Io(error))) => io_error(error),
            Err(_) => ExecError::Timeout { program: spec.program.clone(), timeout: spec.timeout },
        };
        group.kill();
        // Killed processes end at once; waiting leaves no zombie behind.
        let _reaped = tokio::time::timeout(Duration::from_secs(1), group.child.wait()).await;
        Err(failure)
    }
}
