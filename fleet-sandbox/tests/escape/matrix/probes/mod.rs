//! The rows, by what they attack.

mod files;
mod network;
mod system;

use super::probe::Probe;
use super::stage::Stage;

pub(super) fn all() -> impl Iterator<Item = &'static Probe> {
    files::ALL.iter().chain(system::ALL).chain(network::ALL)
}

fn got(answer: &str, _: &Stage) -> bool {
    answer.starts_with("ok")
}

fn canary(answer: &str, _: &Stage) -> bool {
    answer.contains("canary")
}

/// The call itself was looked at by the kernel: no filter answered for it.
fn unfiltered(answer: &str, _: &Stage) -> bool {
    !answer.starts_with("error 1 ") && !answer.starts_with("error 38 ")
}
