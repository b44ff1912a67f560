//! The real Claude Code and Codex at work under Landlock and in a container, as `agents` shows them in the
//! sandbox of bubblewrap: that test has the control, an agent that reads all of it.

use rstest::rstest;
use serde_json::json;

use super::agents::{leaks, with_looks, write_canaries};
use crate::support::agents::{Agent, AgentFleet, AgentRole, needs_agent, run, say};
use crate::support::{has_program, needs};

/// A backend, with the narrowest network in which an agent has its provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Backend {
    /// No host can be told from another, so `network: allow`; and what is read-only in the working
    /// directory is not kept so, which a strict role refuses.
    Landlock,
    Podman,
}

impl Backend {
    fn isolation(self) -> &'static str {
        match self {
            Self::Landlock => "{ backend: landlock, network: allow, on_unavailable: warn }",
            Self::Podman => "{ backend: podman, network: broker, on_unavailable: strict }",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Landlock => "landlock",
            Self::Podman => "podman",
        }
    }
}

#[rstest]
#[case::landlock_as_user(Backend::Landlock)]
#[case::podman(Backend::Podman)]
fn an_agent_works_unattended_and_confined_by(
    #[case] backend: Backend,
    #[values(Agent::Claude, Agent::Codex)] agent: Agent,
) {
    needs!("tmux", "git", "socat");
    needs_agent!(agent);
    let programs = ["podman", "runc", "catatonit", "newuidmap"];
    if backend == Backend::Podman && !programs.iter().all(|name| has_program(name)) {
        skip!("podman or what it needs is not installed");
    }
    let script = json!([
        run("echo began >> HOME/.ours-fleet/agents/A/WORKLOG.md"),
        { "read": "HOME/work/notes" },
        { "edit": { "path": "HOME/work/answer.sh", "old": "echo 41", "new": "echo 42" } },
        run("sh HOME/work/test.sh"),
        run("git add answer.sh test.sh && git -c user.name=A -c user.email=a@example.org commit -q -m by-the-agent && git log -1 --format=%s"),
        run("echo elsewhere > HOME/elsewhere/file || echo ref''used"),
        say("all done"),
    ]);
    let mut role = AgentRole::new("A", agent, false, with_looks(script));
    role.more = format!("    isolation: {}\n", backend.isolation());
    let fleet = AgentFleet::new(std::slice::from_ref(&role));
    fleet.git_init("work");
    fleet.env.write("work/notes", "word-of-the-notes\n");
    fleet.env.write("work/answer.sh", "echo 41\n");
    fleet.env.write("work/test.sh", "test \"$(sh answer.sh)\" = 42 && echo test-passed\n");
    fleet.env.write("elsewhere/file", "as it was\n");
    write_canaries(&fleet);
    fleet.env.run(["init"]).expect(0);

    fleet.up();
    fleet.wait_step("all done");
    fleet.wait_readiness("A", "idle");

    let log = fleet.env.state_file("A", "WORKLOG.md").expect("a worklog");
    assert_eq!(String::from_utf8_lossy(&log), "began\n");
    for (step, said) in [
        ("work/notes", "word-of-the-notes"),
        ("test.sh", "test-passed"),
        ("by-the-agent", "by-the-agent"),
        ("elsewhere/file", "refused"),
    ] {
        let told = fleet.told_after(step);
        assert!(told.contains(said), "{step}: {told}");
    }
    assert_eq!(fleet.git("work", &["log", "-1", "--format=%s %an"]), "by-the-agent A\n");
    assert_eq!(fleet.env.read("elsewhere/file").expect("there"), b"as it was\n");
    assert_eq!(leaks(&fleet), Vec::<String>::new());
    let status = fleet.env.status("A");
    assert_eq!(status["status"]["isolation"]["backend"], backend.name(), "{status}");
    let rows = status["enforcement"].as_array().expect("rows");
    let short = |level: &str| rows.iter().filter(|row| row["level"] == level).count();
    if backend == Backend::Podman {
        assert_eq!(short("enforced"), rows.len(), "{status}");
    } else {
        assert!(short("degraded") > 0 && short("enforced") > 0, "{status}");
    }

    fleet.env.run(["down"]).expect(0);
    fleet.env.expect_no_process();
}
