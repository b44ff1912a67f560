//! An isolation backend of one's own: here one that only lowers the priority of an agent.
//!
//! It shows the two rules a backend lives by. It promises no more than it does: every row that it
//! doesn't enforce says so. And its plan ends with the harness command, unchanged.

use async_trait::async_trait;
use fleet_core::isolation::{
    Backend, BackendName, EnforcementLevel, EnforcementRow, IsolationPolicy, Item, NetworkMode,
    Resources, SystemView,
};
use fleet_core::launch::{LaunchCommand, LaunchPlan, PlanWord};
use fleet_core::path::LexicalPath;
use fleet_core::port::{IsolationBackend, PlanError, ProbeEvidence, ProbeFailure};

/// Runs an agent with `nice`.
#[derive(Debug)]
pub(crate) struct Niced {
    /// What is added to the niceness.
    pub(crate) by: u8,
}

#[async_trait]
impl IsolationBackend for Niced {
    fn name(&self) -> BackendName {
        BackendName::None
    }

    fn enforces_network(&self, mode: NetworkMode) -> bool {
        mode == NetworkMode::Allow
    }

    async fn probe(&self, policy: &IsolationPolicy) -> Result<ProbeEvidence, ProbeFailure> {
        if !self.enforces_network(policy.network) {
            return Err(ProbeFailure::CannotEnforce {
                backend: self.name(),
                what: format!("`network: {}`", policy.network),
            });
        }
        // A real backend runs its program here, with the very flags of the policy.
        Ok(ProbeEvidence {
            version: "coreutils".to_owned(),
            program: "/usr/bin/nice".to_owned(),
            features: Vec::new(),
        })
    }

    fn plan(
        &self,
        policy: &IsolationPolicy,
        evidence: &ProbeEvidence,
        command: &LaunchCommand,
    ) -> Result<LaunchPlan, PlanError> {
        let head =
            [evidence.program.clone(), "-n".to_owned(), self.by.to_string(), "--".to_owned()];
        Ok(LaunchPlan {
            backend: self.name(),
            argv: head.iter().chain(&command.argv).map(PlanWord::text).collect(),
            descriptors: Vec::new(),
            checks: Vec::new(),
            network: None,
            prepare: Vec::new(),
            cleanup: Vec::new(),
            promise: self.promise(policy),
        })
    }

    fn promise(&self, policy: &IsolationPolicy) -> Vec<EnforcementRow> {
        [
            (Item::Filesystem, format!("{} mounts", policy.mounts.len())),
            (Item::Network, policy.network.to_string()),
            (Item::Processes, "hidden".to_owned()),
        ]
        .map(|(item, asked)| EnforcementRow {
            item,
            asked,
            level: EnforcementLevel::Missing,
            evidence: "`nice` confines nothing".to_owned(),
        })
        .to_vec()
    }
}

fn policy(network: NetworkMode) -> Result<IsolationPolicy, Box<dyn std::error::Error>> {
    Ok(IsolationPolicy {
        backend: Backend::None,
        network,
        reachable: Vec::new(),
        resources: Resources::default(),
        mounts: Vec::new(),
        tmpfs: Vec::new(),
        system: SystemView::Curated,
        nested_sandbox: false,
        cwd: LexicalPath::absolute("/srv/project")?,
        home: LexicalPath::absolute("/home/operator")?,
        ephemeral_dirs: Vec::new(),
        residual_risks: Vec::new(),
        blocklist_version: 1,
    })
}

/// The lines this program prints: a refusal, a plan, and what the plan is worth.
pub(crate) async fn run() -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let backend = Niced { by: 10 };
    let mut lines = Vec::new();

    if let Err(refusal) = backend.probe(&policy(NetworkMode::Deny)?).await {
        lines.push(format!("refused: {refusal}"));
    }

    let policy = policy(NetworkMode::Allow)?;
    let evidence = backend.probe(&policy).await?;
    let command = LaunchCommand {
        argv: vec!["agent".to_owned(), "--brief".to_owned()],
        cwd: "/srv/project".into(),
    };
    let plan = backend.plan(&policy, &evidence, &command)?;
    let words: Vec<String> = plan
        .argv
        .iter()
        .map(|word| match word {
            PlanWord::Text(text) => text.to_string(),
            PlanWord::Descriptor(index) => format!("<fd {index}>"),
            PlanWord::DescriptorPath(index) => format!("/proc/self/fd/<{index}>"),
            PlanWord::Scratch { before, after } => format!("{before}<own directory>{after}"),
            PlanWord::Tty => "<tty>".to_owned(),
        })
        .collect();
    lines.push(words.join(" "));
    for row in plan.promise {
        lines.push(format!("{}: {} ({})", row.item.as_str(), row.level.as_str(), row.evidence));
    }
    Ok(lines)
}

#[expect(clippy::print_stdout, reason = "a program for the terminal")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    for line in run().await? {
        println!("{line}");
    }
    Ok(())
}
