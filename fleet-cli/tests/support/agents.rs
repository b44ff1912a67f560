//! A fleet of real agents: a throw-away home, the scripted provider, the programs on `PATH`.

use std::fmt::Write as _;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::{Provider, TestEnvironment, harnesses, wait_for};
use crate::scripted_provider::record::Entry;

/// An agent program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agent {
    Claude,
    Codex,
}

impl Agent {
    /// The harness in a fleet file.
    pub(crate) fn harness(self) -> &'static str {
        match self {
            Self::Claude => "claude-code",
            Self::Codex => "codex",
        }
    }

    /// The real program, at the version that tests are written for.
    pub(crate) fn program(self) -> Option<PathBuf> {
        match self {
            Self::Claude => harnesses::claude(),
            Self::Codex => harnesses::codex(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }

    /// How an agent of this kind reaches the provider, as the `env` of a role.
    fn env(self, provider: &Provider) -> String {
        match self {
            Self::Claude => format!(
                "{{ ANTHROPIC_BASE_URL: '{}', ANTHROPIC_AUTH_TOKEN: scripted }}",
                provider.url
            ),
            Self::Codex => "{ SCRIPTED_KEY: scripted }".to_owned(),
        }
    }
}

/// Skips the test unless the program of the agent is installed.
macro_rules! needs_agent {
    ($agent:expr) => {
        if $agent.program().is_none() {
            skip!("an agent program is absent: run scripts/harnesses.sh");
        }
    };
}

pub(crate) use needs_agent;

/// One role of a fleet of real agents.
#[derive(Debug, Clone)]
pub(crate) struct AgentRole {
    pub(crate) name: &'static str,
    pub(crate) agent: Agent,
    /// The working directory below the home.
    pub(crate) cwd: &'static str,
    /// What the agent does first.
    pub(crate) script: Value,
    pub(crate) approval: &'static str,
    pub(crate) filesystem: &'static str,
    pub(crate) unattended: &'static str,
    /// Whether it runs in our sandbox.
    pub(crate) isolated: bool,
    /// Further lines, indented by four.
    pub(crate) more: String,
}

impl AgentRole {
    /// A role that may do what it needs unattended.
    pub(crate) fn new(name: &'static str, agent: Agent, isolated: bool, script: Value) -> Self {
        Self {
            name,
            agent,
            cwd: "work",
            script,
            approval: "allow",
            filesystem: "workspace",
            unattended: "deny",
            isolated,
            more: String::new(),
        }
    }
}

/// A home, a provider and the agent programs.
#[derive(Debug)]
pub(crate) struct AgentFleet {
    pub(crate) env: TestEnvironment,
    pub(crate) provider: Provider,
}

impl AgentFleet {
    /// A fleet that is not up yet.
    pub(crate) fn new(roles: &[AgentRole]) -> Self {
        // Codex makes no sandbox of its own where its home is below the temporary directory.
        let mut env = TestEnvironment::new_in("/var/tmp");
        let provider = Provider::start_following();
        for agent in [Agent::Claude, Agent::Codex] {
            if let Some(program) = agent.program() {
                std::fs::create_dir_all(env.path("bin")).expect("a directory");
                symlink(program, env.path("bin").join(agent.name())).expect("a link");
            }
        }
        let path = std::env::var("PATH").expect("PATH");
        env.set("PATH", &format!("{}:{path}", env.path("bin").display()));
        env.write(".codex/config.toml", &codex_config(&provider));
        let mut yaml = String::from("start_stagger_ms: 0\nroles:\n");
        for role in roles {
            std::fs::create_dir_all(env.path(role.cwd)).expect("a directory");
            let home = env.home().display().to_string();
            let script = role.script.to_string().replace("HOME/", &format!("{home}/"));
            let AgentRole { name, agent, approval, filesystem, unattended, more, .. } = role;
            write!(
                yaml,
                "  {name}:\n    harness: {}\n    cwd: {home}/{}\n    env: {}\n    \
                 permissions: {{ approval: {approval}, filesystem: {filesystem}, \
                 unattended: {unattended} }}\n    \
                 mission: |\n      @@{script}\n",
                agent.harness(),
                role.cwd,
                agent.env(&provider),
            )
            .expect("text");
            if role.isolated {
                yaml.push_str("    isolation: { network: allow, on_unavailable: strict }\n");
            }
            yaml.push_str(more);
        }
        env.write("fleet.yaml", &yaml);
        Self { env, provider }
    }

    /// Brings the fleet up; every role must run.
    #[track_caller]
    pub(crate) fn up(&self) {
        self.env.run(["up"]).expect(0);
    }

    /// `agent.readiness` of a role.
    pub(crate) fn readiness(&self, role: &str) -> String {
        let status = self.env.status(role);
        status["status"]["agent"]["readiness"].as_str().unwrap_or("absent").to_owned()
    }

    /// Waits until a role is in a state; shows its screen if it never is.
    #[track_caller]
    pub(crate) fn wait_readiness(&self, role: &str, wanted: &str) {
        let mut seen = String::new();
        let limit = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while std::time::Instant::now() < limit {
            seen = self.readiness(role);
            if seen == wanted {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        let peek = self.env.run(["peek", role]);
        panic!("{role} is {seen}, never {wanted}:\n{}\n{}", peek.all(), self.env.status(role));
    }

    /// Waits until the model was asked for this step (a text of the script): a whole script may lie before
    /// it, on a machine that does much else.
    #[track_caller]
    pub(crate) fn wait_step(&self, text: &str) -> Entry {
        let limit = std::time::Instant::now() + std::time::Duration::from_mins(1);
        while std::time::Instant::now() < limit {
            let asked = |it: &Entry| !it.side && it.step.to_string().contains(text);
            if let Some(entry) = self.provider.log().into_iter().find(asked) {
                return entry;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let steps: Vec<String> =
            self.provider.log().iter().map(|it| format!("{} {:?}", it.step, it.told)).collect();
        let screens = self.env.run(["peek", "A"]).all();
        panic!("the step {text:?} was never asked for, but\n{}\n{screens}", steps.join("\n"));
    }

    /// What tools told the model after a step that holds this text.
    #[track_caller]
    pub(crate) fn told_after(&self, text: &str) -> String {
        let log = self.provider.log();
        let at = log
            .iter()
            .position(|entry| !entry.side && entry.step.to_string().contains(text))
            .unwrap_or_else(|| panic!("the step {text:?} was never asked for"));
        let after = log[at + 1..].iter().filter(|entry| !entry.side);
        let told: Vec<String> = after
            .flat_map(|entry| entry.told.iter().map(|result| result.text.clone()))
            .take(1)
            .collect();
        told.join("\n")
    }

    /// Makes a directory below the home a git repository with one commit.
    #[track_caller]
    pub(crate) fn git_init(&self, directory: &str) {
        self.git(directory, &["init", "-q", "-b", "main"]);
        self.env.write(&format!("{directory}/README"), "a project\n");
        self.git(directory, &["add", "-A"]);
        self.git(directory, &["commit", "-q", "-m", "first"]);
    }

    /// Runs git as the operator; its output.
    #[track_caller]
    pub(crate) fn git(&self, directory: &str, args: &[&str]) -> String {
        std::fs::create_dir_all(self.env.path(directory)).expect("a directory");
        let output = Command::new("git")
            .args(["-c", "user.name=Operator", "-c", "user.email=operator@example.org"])
            .args(args)
            .current_dir(self.env.path(directory))
            .env("HOME", self.env.home())
            .output()
            .expect("git runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The pid of the agent program itself, on the host.
    #[track_caller]
    pub(crate) fn agent_pid(&self, role: &AgentRole) -> u32 {
        wait_for("the agent's process", || self.find_agent(role))
    }

    fn find_agent(&self, role: &AgentRole) -> Option<u32> {
        let program = role.agent.program()?;
        let name = program.file_name()?.to_owned();
        let state = format!("/agents/{}", role.name);
        self.env.processes().into_iter().find(|pid| {
            let exe = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let environ = String::from_utf8_lossy(&environ).into_owned();
            let home = format!("/harness/{}/", role.name);
            exe.file_name() == Some(&name) && (environ.contains(&home) || environ.contains(&state))
        })
    }
}

/// The operator's own configuration: where models come from.
fn codex_config(provider: &Provider) -> String {
    format!(
        "model = \"scripted-1\"\nmodel_provider = \"scripted\"\n\n[model_providers.scripted]\n\
         name = \"scripted\"\nbase_url = \"{}/v1\"\nwire_api = \"responses\"\n\
         env_key = \"SCRIPTED_KEY\"\nrequest_max_retries = 4\nstream_max_retries = 4\n",
        provider.url
    )
}

/// A step that runs a shell command.
pub(crate) fn run(command: &str) -> Value {
    json!({ "run": command })
}

/// The step that ends a turn.
pub(crate) fn say(text: &str) -> Value {
    json!({ "say": text })
}
