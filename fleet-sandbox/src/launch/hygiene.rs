//! What must not reach the command: descriptors and core dumps. And where its program is.

use fleet_core::launch::Environment;
use rustix::fs::Access;
use rustix::process::{Resource, Rlimit, setrlimit};

/// Marks every descriptor from 3 on, so that none survives the next exec.
pub(super) fn close_on_exec() -> std::io::Result<()> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        if let Some(number) = entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok())
        {
            numbers.push(number);
        }
    }
    for number in numbers.into_iter().filter(|number| *number > 2) {
        crate::sys::close_on_exec(number);
    }
    Ok(())
}

/// A core dump would hold the environment, and its file name is not ours to choose.
pub(super) fn no_core_dumps() -> std::io::Result<()> {
    Ok(setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?)
}

/// The first executable of that name in the `PATH` of the built environment; the bare name, which
/// then fails to start, if there is none.
pub(super) fn find_program(name: &str, env: &Environment) -> String {
    let path = env.0.get("PATH").map_or("/usr/bin:/bin", String::as_str);
    path.split(':')
        .filter(|directory| directory.starts_with('/'))
        .map(|directory| format!("{}/{name}", directory.trim_end_matches('/')))
        .find(|candidate| {
            rustix::fs::stat(candidate.as_str())
                .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file())
                && rustix::fs::access(candidate.as_str(), Access::EXEC_OK).is_ok()
        })
        .unwrap_or_else(|| name.to_owned())
}
