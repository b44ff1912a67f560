//! The `ours-fleet` command. Everything is in the library, so that tests can call it.

use std::process::ExitCode;

fn main() -> ExitCode {
    fleet_cli::run_process().into()
}
