use std::process::Command;

use camino::Utf8PathBuf;
use fleet_adapters::FileStore;
use fleet_core::port::{StateStore, StoreError};

use crate::support::{temp, utf8};

const SMALL_DISK: &str = "OURS_FLEET_TEST_SMALL_DISK";
const NAME: &str = "fault::store::f79_f84_a_full_disk_leaves_old_files_whole";

fn assert_full(error: &StoreError) {
    let StoreError::Io { source, .. } = error else { panic!("{error:?}") };
    assert_eq!(source.kind(), std::io::ErrorKind::StorageFull, "the original error is reported");
}

/// On a disk of 64 KiB: no write or append that finds it full damages what was there.
fn on_a_small_disk(disk: &Utf8PathBuf) {
    let (ledger, log) = (disk.join("ledger.json"), disk.join("events.jsonl"));
    FileStore.write(&ledger, b"old", 0o600).expect("there is room");
    FileStore.append_line(&log, b"{\"n\":1}").expect("there is room");
    let big = vec![b'x'; 200_000];
    assert_full(&FileStore.write(&ledger, &big, 0o600).expect_err("too big"));
    assert_full(&FileStore.publish(&ledger, &big, 0o600).expect_err("too big"));
    assert_full(&FileStore.append_line(&log, &big).expect_err("too big"));
    let names: Vec<String> = FileStore
        .list(disk)
        .expect("an answer")
        .expect("it exists")
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert_eq!(names, ["events.jsonl", "ledger.json"], "no temporary file is left");
    assert_eq!(FileStore.read(&ledger, 100).expect("an answer").as_deref(), Some(&b"old"[..]));
    FileStore.append_line(&log, b"{\"n\":2}").expect("there is room for this");
    let content = FileStore.read(&log, 100).expect("an answer").expect("it exists");
    assert_eq!(content, b"{\"n\":1}\n{\"n\":2}\n", "no record is fused with a part of another");
}

#[test]
fn f79_f84_a_full_disk_leaves_old_files_whole() {
    if let Ok(disk) = std::env::var(SMALL_DISK) {
        on_a_small_disk(&Utf8PathBuf::from(disk));
        return;
    }
    let dir = temp();
    // The disk exists in a mount namespace of its own and goes with it.
    let inside = "mount -t tmpfs -o size=64k small \"$1\" || exit 99; shift; exec \"$@\"";
    let namespaces: &[&str] =
        if rustix::process::geteuid().is_root() { &["-m"] } else { &["-U", "-r", "-m"] };
    let output = Command::new("unshare")
        .args(namespaces)
        .args(["sh", "-c", inside, "sh"])
        .arg(utf8(&dir))
        .arg(std::env::current_exe().expect("our own path"))
        .args(["--exact", NAME, "--nocapture"])
        .env(SMALL_DISK, utf8(&dir))
        .output();
    let output = match output {
        Ok(output) if output.status.success() => {
            let report = String::from_utf8_lossy(&output.stdout);
            assert!(report.contains("1 passed"), "it ran: {report}");
            return;
        }
        Ok(output) => output,
        Err(error) => skip!(format!("unshare cannot be run: {error}")),
    };
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(99) || words.contains("unshare failed") {
        skip!(format!("no mount namespace here: {words}"));
    }
    panic!("{}{words}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn a_directory_of_another_user_is_not_used() {
    use std::os::unix::fs::{PermissionsExt, chown};

    if !rustix::process::geteuid().is_root() {
        skip!("only root can make a directory of another user");
    }
    let dir = temp();
    let foreign = utf8(&dir).join("sockets");
    std::fs::create_dir(&foreign).expect("it is made");
    let closed = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&foreign, closed).expect("the mode is set");
    chown(&foreign, Some(65_534), None).expect("root may");
    let error = FileStore.ensure_dir(&foreign).expect_err("not ours");
    let reason = std::error::Error::source(&error).expect("a reason").to_string();
    assert!(reason.contains("belongs to another user"), "{reason}");
    let mode = foreign.metadata().expect("it exists").permissions().mode();
    assert_eq!(mode & 0o777, 0o755, "it was left alone");
    chown(&foreign, Some(0), None).expect("root may");
    FileStore.ensure_dir(&foreign).expect("now it is ours");
}
