//! What `systemctl` answers is not believed alone. Beside a real manager: `fleet-cli/tests/field/systemd.rs`.

use std::sync::Arc;

use camino::Utf8PathBuf;
use fleet_adapters::supervisor::{SystemdSettings, SystemdSupervisor, user_manager};
use fleet_core::id::Timestamp;
use fleet_core::layout::{FleetLayout, Homes};
use fleet_core::port::{RunState, Service, Supervisor as _};
use fleet_core::test_support::fakes::{
    Answer, ManualClock, MemoryProcesses, MemoryStore, ScriptedExec,
};
use fleet_core::units::systemd::{UnitFacts, UnitNames};

struct Machine {
    exec: Arc<ScriptedExec>,
    supervisor: SystemdSupervisor,
}

/// A machine where nobody runs the role, and `systemctl` answers like this to each of its words.
fn machine(answers: &'static [(&str, i32, &str)]) -> Machine {
    let exec = Arc::new(ScriptedExec::default());
    exec.on(move |spec| {
        let (_, code, text) =
            answers.iter().find(|(word, ..)| spec.args.iter().any(|it| it == word))?;
        Some(if *code == 0 { Answer::prints(*text) } else { Answer::fails(*code, *text) })
    });
    let home = Utf8PathBuf::from("/no/such/home");
    let homes = Homes { fleet: home.clone(), os: home.clone(), passwd: None };
    let settings = SystemdSettings {
        facts: UnitFacts { binary: "/b".into(), home: home.clone(), path: Vec::new() },
        names: UnitNames::of(&homes),
        units: home.join("units"),
        runtime_dir: "/run/user/1".into(),
        path: "/usr/bin".to_owned(),
        user: "ada".to_owned(),
        layout: FleetLayout::new(&home),
    };
    let supervisor = SystemdSupervisor::new(
        exec.clone(),
        Arc::new(MemoryStore::default()),
        Arc::new(MemoryProcesses::default()),
        Arc::new(ManualClock::new(Timestamp::default())),
        settings,
    );
    Machine { exec, supervisor }
}

fn rev() -> Service {
    Service { role: "Rev".parse().expect("a name"), config: None }
}

const DEAD: &str = "ActiveState=failed\nSubState=failed\nMainPID=0\n";

#[tokio::test]
async fn fault18_fault20_a_start_that_systemctl_calls_good_is_proved_and_undone() {
    for answers in [
        &[("enable", 0, ""), ("show", 0, DEAD), ("disable", 0, "")][..],
        &[("enable", 1, "Job failed"), ("show", 0, DEAD), ("disable", 0, "")],
    ] {
        let machine = machine(answers);
        let error = machine.supervisor.start(&rev()).await.expect_err("nothing runs").to_string();
        assert!(error.contains("journalctl --user -u ours-fleet-agent@Rev.service"), "{error}");
        let last = machine.exec.calls().pop().expect("a call");
        assert_eq!(last.args[2..], ["disable", "--now", "ours-fleet-agent@Rev.service"]);
    }
}

#[tokio::test]
async fn what_waits_for_its_restart_is_neither_running_nor_stopped() {
    for (state, expected) in [
        (DEAD, RunState::Stopped),
        ("ActiveState=activating\nSubState=auto-restart\n", RunState::Unknown),
        ("ActiveState=active\nSubState=running\nMainPID=7\n", RunState::Unknown),
        ("", RunState::Unknown),
    ] {
        let answers: &'static [(&str, i32, &str)] = Box::leak(Box::new([("show", 0, state)]));
        assert_eq!(machine(answers).supervisor.liveness(&rev()).await.state, expected, "{state}");
    }
}

#[tokio::test]
async fn fault23_a_shell_without_a_session_is_told_what_helps() {
    let machine = machine(&[
        ("enable", 1, "Failed to connect to user scope bus via local transport"),
        ("disable", 1, "Failed to connect to user scope bus via local transport"),
    ]);
    let error = machine.supervisor.start(&rev()).await.expect_err("no manager").to_string();
    assert!(error.contains("loginctl enable-linger ada"), "{error}");
}

#[test]
fn a_manager_where_everybody_may_write_is_nobodys() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = camino::Utf8Path::from_path(directory.path()).expect("UTF-8");
    std::fs::create_dir(path.join("systemd")).expect("made");
    let _manager =
        std::os::unix::net::UnixListener::bind(path.join("systemd/private").as_std_path())
            .expect("it listens");
    let mode = |mode| {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))
            .expect("chmod");
    };
    mode(0o700);
    assert_eq!(user_manager(path), Ok(()), "the control");
    for open in [0o777, 0o770, 0o1777] {
        mode(open);
        assert!(user_manager(path).expect_err("not asked").contains("this user alone"));
    }
}
