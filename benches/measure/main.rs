//! Measures whole processes for the figures in the README.
//!
//! ```text
//! measure generate DIR ROLES MOUNTS              write a fleet and the directories it names
//! measure run TIMES [--after SHELL] -- COMMAND…  wall time and peak memory of a command
//! measure idle PID SECONDS                       memory, threads, processor time of a process
//! measure criterion DIR                          the result of one benchmark
//! measure sandbox TIMES BINARY DIR BINDS         our launcher against raw bwrap, same binds
//! measure relay TIMES BINARY DIR                 a network served by our launcher against none between
//! measure client ADDRESS FILE                    what the line above runs inside
//! ```
//!
//! Each result is a line of tab-separated words: name, median, minimum, maximum, number of values.
//! Times are in milliseconds, sizes in MiB, results of benchmarks and of single requests in
//! microseconds; ratios have no unit.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for scripts/figures.sh")]

mod criterion;
mod idle;
mod relay;
mod run;
mod sandbox;
mod summary;

use std::path::Path;
use std::process::ExitCode;

/// What went wrong, as one line.
type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match measure(&words) {
        Ok(lines) => {
            for line in lines {
                println!("{line}");
            }
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("measure: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn measure(words: &[&str]) -> Result<Vec<String>, Failure> {
    match words {
        ["generate", directory, roles, mounts] => {
            fleet_benches::write_fleet(Path::new(directory), roles.parse()?, mounts.parse()?)?;
            Ok(Vec::new())
        }
        ["run", times, "--after", after, "--", command @ ..] => {
            run::command(times.parse()?, Some(after), command)
        }
        ["run", times, "--", command @ ..] => run::command(times.parse()?, None, command),
        ["idle", pid, seconds] => idle::process(pid.parse()?, seconds.parse()?),
        ["criterion", directory] => criterion::result(Path::new(directory)),
        ["sandbox", times, binary, directory, mounts] => {
            sandbox::compare(times.parse()?, binary, Path::new(directory), mounts.parse()?)
        }
        ["relay", times, binary, directory] => {
            relay::compare(times.parse()?, binary, Path::new(directory))
        }
        ["client", address, file] => relay::client(address.parse()?, Path::new(file)),
        _ => {
            Err("usage: generate | run | idle | criterion | sandbox | relay; see the head of its \
                  source"
                .into())
        }
    }
}
