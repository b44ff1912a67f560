//! Wall time and peak memory of a command, run several times.

use std::process::{Command, Stdio};
use std::time::Instant;

use wait4::Wait4;

use crate::{Failure, summary};

/// Runs the command once to warm the caches, then `times` times. After each run the shell text
/// `after` is run, outside of the measurement. A command that fails is an error: it measures nothing.
pub(crate) fn command(
    times: usize,
    after: Option<&str>,
    command: &[&str],
) -> Result<Vec<String>, Failure> {
    let (program, arguments) = command.split_first().ok_or("no command")?;
    let mut wall = Vec::with_capacity(times);
    let mut memory = Vec::with_capacity(times);
    for round in 0..=times {
        let start = Instant::now();
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()?;
        let used = child.wait4()?;
        let elapsed = start.elapsed();
        if !used.status.success() {
            return Err(format!("`{}` ended with {}", command.join(" "), used.status).into());
        }
        if let Some(after) = after {
            let status = Command::new("sh").args(["-c", after]).stdout(Stdio::null()).status()?;
            if !status.success() {
                return Err(format!("`{after}` ended with {status}").into());
            }
        }
        if round > 0 {
            wall.push(elapsed.as_secs_f64() * 1000.0);
            #[expect(clippy::cast_precision_loss, reason = "a size in bytes, shown in MiB")]
            memory.push(used.rusage.maxrss as f64 / (1024.0 * 1024.0));
        }
    }
    Ok([summary::line("wall", wall), summary::line("rss", memory)].into_iter().flatten().collect())
}
