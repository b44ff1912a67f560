//! What a role reaches, read from the resolved role alone: no path is looked at, so the answer is the
//! same on every machine.

mod options;

use std::collections::BTreeMap;

use super::order::{Dimension, Endpoint, Grant, Reach, Value};
use super::require::Require;
use crate::config::{FleetPolicy, Role};
use crate::harness::{Harness, LaunchContext, LaunchDirs, StartMode};
use crate::isolation::network::HostRule;
use crate::isolation::resolve::protected_paths;
use crate::isolation::select::{Fallback, fallback};
use crate::isolation::{
    Backend, BackendName, IsolationBlock, MountMode, NetworkMode, Resources, SystemView,
};
use crate::launch::Environment;
use crate::path::LexicalPath;
use crate::permissions::{
    Approval, Filesystem, Outer, Supported, Translation, TranslationRequest, Unattended,
};
use crate::redact::Redacted;

/// The account that no machine has: what a role reaches must not depend on who asks.
const NOMINAL_UID: u32 = 1000;

/// What a program does that has no permissions of its own.
const UNBOUNDED: &str = "whatever the program does";

impl Reach {
    /// What `role` reaches. `dirs` are the directories that its native settings name, the same for
    /// both sides of a comparison.
    ///
    /// The native settings are those without an isolation around the harness, also for an isolated
    /// role: inside one the harness's own bound is off, and a role that gains its isolation must not
    /// look wider for it.
    pub fn of(role: &Role, harness: &dyn Harness, dirs: &LaunchDirs) -> Self {
        let mut draft = Draft {
            reach: Self::of_role(role.name.as_str()),
            role,
            block: isolated(role),
            model_endpoints: model_endpoints(role, harness, dirs),
        };
        let options = role.harness_options.expose();
        let files = BTreeMap::new();
        let effective = harness.effective(&TranslationRequest {
            permissions: role.permissions,
            options,
            outer: Outer::Off,
            dirs,
            denied_reads: &[],
            version: None,
            root: false,
            operator_files: &files,
        });
        let overrides = harness.native_overrides(options);
        draft.isolation();
        let in_force = draft.permissions(&effective, &overrides);
        draft.paths(in_force);
        draft.environment(harness.model_variable());
        let ordered = matches!(effective, Translation::Supported(_));
        options::add(&mut draft.reach, options, ordered);
        draft.word(Dimension::Program, role.harness.as_str(), "harness");
        draft.reach
    }

    /// What the rules of a fleet hold back.
    pub fn of_policy(policy: &FleetPolicy) -> Self {
        let mut reach = Self::default();
        reach.guards(Dimension::ForbidPaths, "policy", true);
        for (index, path) in policy.forbid_paths.iter().enumerate() {
            let value = Value::Path { path: path.clone(), mode: MountMode::ReadWrite };
            let key = format!("policy.forbid_paths[{index}]");
            let grant = Grant { subject: path.to_string(), value, key, written: true };
            reach.add(Dimension::ForbidPaths, grant);
        }
        reach.guards(Dimension::Require, "policy", true);
        for (rule, subject, value) in required(&policy.require) {
            let key = format!("policy.require.{rule}");
            reach.add(Dimension::Require, Grant { subject, value, key, written: true });
        }
        reach
    }
}

/// What must be met, each with its key: a stricter value holds back more than a laxer one.
fn required(require: &Require) -> Vec<(&'static str, String, Value)> {
    let mut guards = Vec::new();
    if let Some(least) = require.isolation {
        let value = level(least as u64 + 1, least.as_str());
        guards.push(("isolation", "isolation".to_owned(), value));
    }
    if let Some(modes) = &require.network {
        let closed = NetworkMode::WORDS.iter().filter_map(|word| NetworkMode::from_word(word));
        for mode in closed.filter(|mode| !modes.contains(mode)) {
            guards.push(("network", format!("no network `{mode}`"), Value::Word));
        }
    }
    if let Some(widest) = require.approval {
        let rank = match widest {
            Approval::Ask => 3,
            Approval::Auto => 2,
            Approval::Allow => 1,
        };
        let word = format!("at most {}", widest.as_str());
        guards.push(("approval", "approval".to_owned(), level(rank, word)));
    }
    for cap in &require.resources {
        guards.push(("resources", format!("a cap on {}", cap.as_str()), Value::Word));
    }
    guards
}

/// What `network: broker` lets through for the harness: it follows what the role's environment and
/// options say of the model's server.
fn model_endpoints(role: &Role, harness: &dyn Harness, dirs: &LaunchDirs) -> Vec<HostRule> {
    let launch = harness.launch(&LaunchContext {
        role,
        dirs,
        mode: StartMode::Fresh,
        session: None,
        outer: Outer::On,
        root: false,
        version: None,
        operator_files: &BTreeMap::new(),
        own_env: &Environment::default(),
        denied_reads: &[],
        hook: None,
    });
    launch.endpoints
}

/// The block of a role that is isolated.
fn isolated(role: &Role) -> Option<&IsolationBlock> {
    role.isolation.as_ref().filter(|block| block.backend != Backend::None)
}

/// Places on a chain: rank and word.
fn level(rank: u64, word: impl Into<String>) -> Value {
    Value::Level { rank, word: word.into() }
}

struct Draft<'a> {
    reach: Reach,
    role: &'a Role,
    block: Option<&'a IsolationBlock>,
    model_endpoints: Vec<HostRule>,
}

impl Draft<'_> {
    fn add(&mut self, dimension: Dimension, subject: &str, value: Value, key: &str, written: bool) {
        let (subject, key) = (subject.to_owned(), key.to_owned());
        self.reach.add(dimension, Grant { subject, value, key, written });
    }

    fn word(&mut self, dimension: Dimension, subject: &str, key: &str) {
        self.add(dimension, subject, Value::Word, key, true);
    }

    /// The dimensions of the isolation block. Without isolation all of them are as wide as can be.
    fn isolation(&mut self) {
        const BLOCK: &str = "isolation";
        let Some(block) = self.block else {
            self.add(Dimension::Isolation, BLOCK, level(1, "none"), BLOCK, true);
            for word in BackendName::WORDS {
                self.add(Dimension::Backend, word, Value::Word, BLOCK, false);
            }
            self.chain(Dimension::OnUnavailable, level(1, "starts un-isolated"), false);
            self.chain(Dimension::System, level(1, "all of it"), false);
            self.chain(Dimension::NestedSandbox, level(1, "true"), false);
            self.reach.guards(Dimension::Protect, BLOCK, false);
            self.resources(self.role.isolation.as_ref().map(|it| it.resources), false);
            let any = Value::Endpoint(Endpoint::Any);
            self.add(Dimension::Network, &Endpoint::Any.to_string(), any, BLOCK, false);
            return;
        };
        self.add(Dimension::Isolation, BLOCK, level(0, "isolated"), BLOCK, true);
        let backends: &[BackendName] = match block.backend {
            Backend::Auto => &[BackendName::Bubblewrap, BackendName::Landlock],
            Backend::Bubblewrap => &[BackendName::Bubblewrap],
            Backend::Podman => &[BackendName::Podman],
            Backend::Landlock => &[BackendName::Landlock],
            Backend::None => &[],
        };
        for name in backends {
            self.word(Dimension::Backend, name.as_str(), "isolation.backend");
        }
        let starts = match fallback(block, self.role.permissions, NOMINAL_UID, None, &[]) {
            Fallback::Refuse { .. } => level(0, "refuses to start"),
            Fallback::Unisolated { .. } => level(1, "starts un-isolated"),
        };
        self.chain(Dimension::OnUnavailable, starts, true);
        let system = u64::from(block.system == SystemView::Full);
        self.chain(Dimension::System, level(system, block.system.as_str()), true);
        let nested = level(u64::from(block.nested_sandbox), block.nested_sandbox.to_string());
        self.chain(Dimension::NestedSandbox, nested, true);
        if let Some(image) = &block.image {
            self.word(Dimension::Image, image, "isolation.image");
        }
        self.protect(block);
        self.resources(Some(block.resources), true);
        self.network(block);
        for (index, entry) in block.secrets.iter().enumerate() {
            let value = Value::Path { path: entry.from.clone(), mode: MountMode::ReadOnly };
            let key = format!("isolation.secrets[{index}]");
            // Where a secret lies is not said.
            self.add(Dimension::Secrets, entry.to.as_str(), value, &key, true);
        }
    }

    /// A dimension with one subject, itself.
    fn chain(&mut self, dimension: Dimension, value: Value, written: bool) {
        let word = dimension.row().word;
        let key = if written { format!("isolation.{word}") } else { "isolation".to_owned() };
        self.add(dimension, word, value, &key, written);
    }

    fn protect(&mut self, block: &IsolationBlock) {
        self.reach.guards(Dimension::Protect, "isolation.protect", true);
        for (path, _) in protected_paths(block) {
            // Below the cwd: all that matters is how the paths lie to each other.
            let Ok(place) = LexicalPath::absolute(&format!("/{path}")) else { continue };
            let value = Value::Path { path: place, mode: MountMode::ReadOnly };
            self.add(Dimension::Protect, path, value, "isolation.protect", true);
        }
    }

    fn network(&mut self, block: &IsolationBlock) {
        const KEY: &str = "isolation.network";
        let open = match block.network() {
            NetworkMode::Deny => return,
            NetworkMode::Allow => vec![Endpoint::Any],
            NetworkMode::Broker => {
                self.model_endpoints.iter().cloned().map(Endpoint::Rule).collect()
            }
            NetworkMode::Allowlist => Vec::new(),
        };
        for endpoint in open {
            let subject = endpoint.to_string();
            self.add(Dimension::Network, &subject, Value::Endpoint(endpoint), KEY, true);
        }
        for (index, rule) in block.allow_hosts.iter().enumerate() {
            let endpoint = Endpoint::Rule(rule.clone());
            let subject = endpoint.to_string();
            let key = format!("isolation.allow_hosts[{index}]");
            self.add(Dimension::Network, &subject, Value::Endpoint(endpoint), &key, true);
        }
    }

    fn resources(&mut self, resources: Option<Resources>, written: bool) {
        let resources = resources.unwrap_or_default();
        let caps = [
            ("cpu", resources.cpu.map(|cpu| (cpu.millis, format!("{} m", cpu.millis)))),
            ("mem", resources.memory.map(|memory| (memory.0, bytes(memory.0)))),
            ("pids", resources.pids.map(|pids| (u64::from(pids), pids.to_string()))),
        ];
        for (name, cap) in caps {
            let (rank, word) = cap.unwrap_or((u64::MAX, "no cap".to_owned()));
            let key = format!("isolation.resources.{name}");
            let key = if written { key.as_str() } else { "isolation" };
            self.add(Dimension::Resources, name, level(rank, word), key, written);
        }
    }

    /// The neutral words, and what is in force. Returns the bound in force.
    fn permissions(
        &mut self,
        effective: &Translation,
        overrides: &BTreeMap<String, String>,
    ) -> Filesystem {
        let permissions = self.role.permissions;
        let approval = |it: Approval| level(it as u64, it.as_str());
        let filesystem = |it: Filesystem| level(it as u64, it.as_str());
        let unattended = level(
            u64::from(permissions.unattended == Unattended::Wait),
            permissions.unattended.as_str(),
        );
        for (dimension, value) in [
            (Dimension::Approval, approval(permissions.approval)),
            (Dimension::Filesystem, filesystem(permissions.filesystem)),
            (Dimension::Unattended, unattended),
        ] {
            let word = dimension.row().word;
            self.add(dimension, word, value, &format!("permissions.{word}"), true);
        }
        let supported = match effective {
            Translation::Supported(supported) => supported,
            Translation::Unsupported { .. } => {
                for dimension in [Dimension::ApprovalInForce, Dimension::FilesystemInForce] {
                    let value = level(u64::MAX, UNBOUNDED);
                    self.add(dimension, dimension.row().word, value, "harness", true);
                }
                return Filesystem::Unrestricted;
            }
        };
        let (bound, option) = bound(permissions.filesystem, overrides);
        self.in_force(supported, bound, option, overrides.keys().next());
        bound
    }

    /// `bounding` and `overriding` are the options that say so, where one does.
    fn in_force(
        &mut self,
        supported: &Supported,
        bound: Filesystem,
        bounding: Option<&str>,
        overriding: Option<&String>,
    ) {
        let mode = supported.mode;
        let key = |option: Option<&str>| {
            option.map_or_else(|| "permissions".to_owned(), |it| format!("harness_options.{it}"))
        };
        let overriding = overriding.map(String::as_str);
        for (dimension, value, option) in [
            (Dimension::ApprovalInForce, level(mode as u64, mode.as_str()), overriding),
            (Dimension::FilesystemInForce, level(bound as u64, bound.as_str()), bounding),
        ] {
            self.add(dimension, dimension.row().word, value, &key(option), option.is_some());
        }
        for capability in &supported.granted {
            let word = capability.as_str();
            self.add(Dimension::Capabilities, word, Value::Word, &key(overriding), false);
        }
    }

    /// Host paths that the role names. Its own trees are not among them: every role has those.
    fn paths(&mut self, in_force: Filesystem) {
        let mut paths: Vec<(LexicalPath, MountMode, String, bool)> = Vec::new();
        let filesystem = match self.block {
            Some(_) => self.role.permissions.filesystem,
            None => in_force,
        };
        let cwd_mode = match filesystem {
            Filesystem::ReadOnly => MountMode::ReadOnly,
            Filesystem::Workspace | Filesystem::Unrestricted => MountMode::ReadWrite,
        };
        if let Some(cwd) = &self.role.cwd {
            paths.push((cwd.clone(), cwd_mode, "cwd".to_owned(), true));
        }
        for (index, path) in options::add_dirs(self.role.harness_options.expose()) {
            let key = format!("harness_options.add_dirs[{index}]");
            paths.push((path, MountMode::ReadWrite, key, true));
        }
        if let Some(block) = self.block {
            for (list, name, mode) in [
                (&block.fs_read, "read", MountMode::ReadOnly),
                (&block.fs_write, "write", MountMode::ReadWrite),
            ] {
                for (index, entry) in list.iter().enumerate() {
                    let key = format!("isolation.fs.{name}[{index}]");
                    paths.push((entry.path.clone(), mode, key, true));
                }
            }
        } else {
            // Without isolation everything can be read, whatever the harness says.
            let unbounded = in_force == Filesystem::Unrestricted;
            let mode = if unbounded { MountMode::ReadWrite } else { MountMode::ReadOnly };
            paths.push((LexicalPath::root(), mode, "isolation".to_owned(), false));
        }
        for (path, mode, key, written) in paths {
            let subject = path.to_string();
            self.add(Dimension::Paths, &subject, Value::Path { path, mode }, &key, written);
        }
    }

    /// The variable that names the model grants nothing.
    fn environment(&mut self, model: Option<&str>) {
        for (index, name) in self.role.env_pass.iter().enumerate() {
            self.word(Dimension::EnvPass, name, &format!("env_pass[{index}]"));
        }
        for name in self.role.env.keys().filter(|name| model != Some(name.as_str())) {
            self.word(Dimension::Env, name, &format!("env.{name}"));
        }
        if self.role.unavailable.iter().any(|it| it.path == "managed_cli") {
            // The only workflow there is; a build that has them will know which are written.
            self.word(Dimension::ManagedCli, "task-workflow", "managed_cli");
        }
    }
}

/// Native values that say what may be written, whichever harness has them.
const BOUNDS: &[(&str, &str, Filesystem)] = &[
    ("permission_mode", "bypassPermissions", Filesystem::Unrestricted),
    ("sandbox", "read-only", Filesystem::ReadOnly),
    ("sandbox", "workspace-write", Filesystem::Workspace),
    ("sandbox", "danger-full-access", Filesystem::Unrestricted),
];

/// The bound in force, and the option that says so.
fn bound(
    neutral: Filesystem,
    overrides: &BTreeMap<String, String>,
) -> (Filesystem, Option<&'static str>) {
    let written = BOUNDS
        .iter()
        .find(|(key, value, _)| overrides.get(*key).is_some_and(|written| written == value));
    written.map_or((neutral, None), |(key, _, bound)| (*bound, Some(*key)))
}

/// The largest unit that divides it.
fn bytes(number: u64) -> String {
    let units = ["", "K", "M", "G", "T", "P", "E"];
    let mut unit = 0;
    let mut number = number;
    while number > 0 && number.is_multiple_of(1024) && unit + 1 < units.len() {
        number /= 1024;
        unit += 1;
    }
    format!("{number}{}", units[unit])
}

/// Something that can only be the same or other.
fn exact(shown: impl Into<String>, value: impl Into<String>) -> Value {
    Value::Exact { shown: shown.into(), value: Redacted::new(value.into()) }
}
