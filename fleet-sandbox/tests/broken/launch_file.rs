//! Wrong readers of a launch file.

use camino::Utf8Path;
use fleet_core::launch::LaunchFile;
use fleet_sandbox::launch::{Refusal, take};

use crate::property::launch_file::{p46, p46_owner};
use crate::support::{Host, skip};

fn refused(path: &Utf8Path) -> Refusal {
    Refusal::File { path: path.to_owned(), why: "it cannot be read".to_owned() }
}

/// Reads whatever is there.
fn trusts_every_file(path: &Utf8Path) -> Result<LaunchFile, Refusal> {
    let bytes = std::fs::read(path).map_err(|_| refused(path))?;
    let file = serde_json::from_slice(&bytes).map_err(|_| refused(path))?;
    std::fs::remove_file(path).map_err(|_| refused(path))?;
    Ok(file)
}

/// Looks at the rights of others only.
fn forgets_the_group(path: &Utf8Path) -> Result<LaunchFile, Refusal> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(path).map_err(|_| refused(path))?.permissions().mode();
    if mode & 0o007 != 0 { Err(refused(path)) } else { trusts_every_file(path) }
}

/// Leaves the file where it is.
fn does_not_consume(path: &Utf8Path) -> Result<LaunchFile, Refusal> {
    let bytes = std::fs::read(path).map_err(|_| refused(path))?;
    let file = take(path)?;
    std::fs::write(path, bytes).map_err(|_| refused(path))?;
    Ok(file)
}

/// Removes what it refuses.
fn removes_what_it_refuses(path: &Utf8Path) -> Result<LaunchFile, Refusal> {
    take(path).inspect_err(|_| drop(std::fs::remove_file(path)))
}

/// Takes the command for one line of text.
fn splits_words(path: &Utf8Path) -> Result<LaunchFile, Refusal> {
    let mut file = take(path)?;
    let line = file.command.argv.join(" ");
    file.command.argv = line.split_whitespace().map(str::to_owned).collect();
    Ok(file)
}

#[test]
fn p46_finds_every_mistake() {
    for (name, wrong) in [
        ("trusts every file", trusts_every_file as crate::property::launch_file::Take),
        ("forgets the group", forgets_the_group),
        ("does not consume", does_not_consume),
        ("removes what it refuses", removes_what_it_refuses),
        ("splits words", splits_words),
    ] {
        assert!(p46(wrong).is_err(), "{name}");
    }
}

#[test]
fn p46_finds_a_reader_that_trusts_every_owner_as_root() {
    if !Host::is_root() {
        skip!("only root can give a file away");
    }
    assert!(p46_owner(trusts_every_file).is_err());
}
