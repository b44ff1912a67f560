//! What a process costs that waits.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use crate::{Failure, summary};

/// Proportional memory and threads now, processor time over `seconds`, scaled to a minute.
pub(crate) fn process(pid: u32, seconds: u64) -> Result<Vec<String>, Failure> {
    let before = processor_time(pid)?;
    let start = Instant::now();
    thread::sleep(Duration::from_secs(seconds));
    let used = processor_time(pid)?.saturating_sub(before);
    let per_minute = used.as_secs_f64() * 1000.0 * 60.0 / start.elapsed().as_secs_f64();
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let lines = [
        summary::line("pss", vec![field(&rollup, "Pss:")? / 1024.0]),
        summary::line("threads", vec![field(&status, "Threads:")?]),
        summary::line("cpu", vec![per_minute]),
    ];
    Ok(lines.into_iter().flatten().collect())
}

fn field(text: &str, name: &str) -> Result<f64, Failure> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let word = line.and_then(|rest| rest.split_whitespace().next());
    Ok(word.ok_or_else(|| format!("no `{name}` in /proc"))?.parse()?)
}

/// Time on a processor of all threads, in nanoseconds from the scheduler: clock ticks are too coarse.
fn processor_time(pid: u32) -> Result<Duration, Failure> {
    let mut total = Duration::ZERO;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = fs::read_to_string(task?.path().join("schedstat"))?;
        let nanoseconds = text.split_whitespace().next().ok_or("an empty schedstat")?;
        total += Duration::from_nanos(nanoseconds.parse()?);
    }
    Ok(total)
}
