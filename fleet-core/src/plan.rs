//! What a launch of a role would be: one judgement, shared by `config`, `doctor` and the launch.

mod blockers;
mod denied_reads;
mod hook;
mod shared;

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use sha2::{Digest, Sha256};

use self::blockers::{blocker, cwd_blocker, pin_blocker, placed, program_blocker, source_blockers};
use self::denied_reads::denied_notes;
use self::hook::{hook_files, hook_note, shipped_hook};
use self::shared::{shared_notes, shared_or_blocked};
use crate::config::{Fleet, Role};
use crate::diagnostic::Diagnostic;
use crate::harness::hooks::HookCommand;
use crate::harness::shared::SharedItems;
use crate::harness::{Harness, HarnessFile, LaunchContext, LaunchDirs, StartMode};
use crate::id::SessionId;
use crate::isolation::closure::launch_closure;
use crate::isolation::forbidden::ForbiddenList;
use crate::isolation::handed::Handed;
use crate::isolation::network::NetworkLayout;
use crate::isolation::resolve::{ResolveContext, resolve, worktree_repository};
use crate::isolation::{Backend, IsolationPolicy, MountMode};
use crate::launch::LaunchCommand;
use crate::layout::RoleTrees;
use crate::path::LexicalPath;
use crate::permissions::{
    Conflict, Filesystem, Floor, Outer, Translation, TranslationRequest, conflicts, floor,
};
use crate::port::PathProbe;
use crate::world::World;

pub use self::blockers::{refusals, unavailable_line};
pub use self::denied_reads::{DeniedReads, DeniedReadsRequest, denied_reads};

/// What is judged.
#[derive(Debug, Clone, Copy)]
pub struct AssessRequest<'a> {
    /// The fleet, for where things were written.
    pub fleet: &'a Fleet,
    /// The role.
    pub role: &'a Role,
    /// Its harness.
    pub harness: &'a dyn Harness,
    /// The account.
    pub world: &'a World,
    /// What no role may reach.
    pub forbidden: &'a ForbiddenList,
    /// Fresh or resume.
    pub mode: StartMode,
    /// The conversation, as in [`LaunchContext::session`].
    pub session: Option<&'a SessionId>,
    /// The harness home to use.
    pub harness_home: &'a Utf8Path,
    /// The boundary that the launch will have.
    pub outer: Outer,
    /// Version of the installed harness, where it is known.
    pub version: Option<&'a str>,
    /// As in [`LaunchContext::operator_files`].
    pub operator_files: &'a BTreeMap<&'static str, String>,
}

/// The verdict on one role.
#[derive(Debug, Clone)]
pub struct Assessment {
    /// What the policy refuses. Any entry refuses the role everywhere.
    pub problems: Vec<Diagnostic>,
    /// What would stop a launch at this moment although the file is sound: a missing directory or
    /// program, an unbuilt key. One line each, naming what to do.
    pub blockers: Vec<String>,
    /// The resolved policy; `None` without an isolation block or with a problem.
    pub policy: Option<IsolationPolicy>,
    /// The harness command, its program resolved where it was found.
    pub command: LaunchCommand,
    /// What the harness adds to the environment.
    pub harness_env: BTreeMap<String, String>,
    /// Files to write before the start.
    pub files: Vec<HarnessFile>,
    /// What the role sees of the operator's harness home.
    pub shared: SharedItems,
    /// The file of `briefing_file`, judged; `None` without one, or if it is refused.
    pub briefing: Option<Handed>,
    /// The variable that names the harness's config home, which is [`LaunchDirs::harness_home`].
    pub home_variable: Option<&'static str>,
    /// What the launch record says of the harness.
    pub notes: Vec<String>,
    /// Whether the launch ships fleet's hook, which enforces `unattended: deny`.
    pub hooked: bool,
    /// The permissions in force, native overrides included.
    pub effective: Translation,
    /// Native options that differ from the declared permissions.
    pub conflicts: Vec<Conflict>,
    /// What works without a person; `None` where the harness has no permissions.
    pub floor: Option<Floor>,
    /// The directories of the launch.
    pub dirs: LaunchDirs,
}

impl Assessment {
    /// Everything that keeps the role from being started, one line each; empty if nothing does.
    pub fn refusals(&self) -> impl Iterator<Item = String> + '_ {
        self.problems.iter().map(ToString::to_string).chain(self.blockers.iter().cloned())
    }

    /// Whether the role asks for isolation.
    pub fn wants_isolation(role: &Role) -> bool {
        Self::boundary(role, 0).is_some()
    }

    /// What the isolation of a role is to its harness while it is in force; `None` if the role asks for
    /// none. As root no sandbox can be made in a sandbox, so the harness's own stays off.
    pub fn boundary(role: &Role, uid: u32) -> Option<Outer> {
        let block = role.isolation.as_ref().filter(|block| block.backend != Backend::None)?;
        Some(if block.nested_sandbox && uid != 0 { Outer::Nested } else { Outer::On })
    }
}

/// The working directory in force: the declared one, else STATE.
pub fn working_directory(role: &Role, trees: &RoleTrees) -> Utf8PathBuf {
    role.cwd.as_ref().map_or_else(|| trees.state.clone(), |cwd| cwd.as_path().to_owned())
}

/// Those directories that are reached through links, with the path that they lead to.
fn aliases<'a>(
    dirs: impl IntoIterator<Item = &'a Utf8PathBuf>,
    probe: &dyn PathProbe,
) -> BTreeMap<Utf8PathBuf, Utf8PathBuf> {
    let real = |dir: &'a Utf8PathBuf| {
        let path = LexicalPath::absolute(dir.as_str()).ok()?;
        let target = probe.resolve(&path).ok()?.path;
        (target != path).then(|| (dir.clone(), target.as_path().to_owned()))
    };
    dirs.into_iter().filter_map(real).collect()
}

/// The file that a role's briefing takes in, judged.
fn judged_briefing(
    request: &AssessRequest<'_>,
    policy: Option<&IsolationPolicy>,
    probe: &dyn PathProbe,
) -> Result<Option<Handed>, Box<Diagnostic>> {
    let judge = |file| Handed::judge(file, "briefing_file", policy, request.forbidden, probe);
    request.role.briefing_file.as_ref().map(judge).transpose()
}

/// Judges one role.
pub fn assess(request: &AssessRequest<'_>, probe: &dyn PathProbe) -> Assessment {
    let AssessRequest { fleet, role, harness, world, .. } = *request;
    let trees = world.layout.role(&role.name);
    let dirs = launch_dirs(request, &trees, probe);
    let hook = shipped_hook(request, &trees);
    let denied = denied(request, &trees, &dirs, probe);
    let launch = harness.launch(&LaunchContext {
        role,
        dirs: &dirs,
        mode: request.mode,
        session: request.session,
        outer: request.outer,
        root: world.uid == 0,
        version: request.version,
        operator_files: request.operator_files,
        own_env: &world.env,
        denied_reads: &denied.paths,
        hook: hook.as_ref(),
    });
    let options = role.harness_options.expose();
    let asked = TranslationRequest {
        permissions: role.permissions,
        options,
        outer: request.outer,
        dirs: &dirs,
        version: request.version,
        root: world.uid == 0,
        operator_files: request.operator_files,
        denied_reads: &denied.paths,
    };
    let translated = harness.translate(&asked);
    let effective = harness.effective(&asked);
    let mut blockers = refusals(fleet, role);
    let shared = shared_or_blocked(request, &launch, probe, &mut blockers);
    let mut command = LaunchCommand { argv: launch.argv, cwd: dirs.cwd.clone() };
    blockers.extend(cwd_blocker(fleet, role, probe));
    if let Translation::Supported(effective) = &effective {
        let refused =
            |reason: &String| blocker(fleet, role, "permissions", reason, None).to_string();
        blockers.extend(effective.refusals.iter().map(refused));
    }

    blockers.extend(pin_blocker(fleet, role, harness, &launch.env));

    let closure_files = closure(request, &mut command, hook.as_ref(), &mut blockers, probe);
    let (mut policy, mut problems) = match &role.isolation {
        Some(block) if block.backend != Backend::None => {
            let context = ResolveContext {
                trees: &trees,
                harness_home: request.harness_home,
                cwd: role.cwd.as_ref(),
                cwd_mode: cwd_mode(role),
                homes: &world.homes,
                forbidden: request.forbidden,
                write_dirs: &role.write_dirs,
                launch_closure: &closure_files,
                shared: &shared,
                model_endpoints: &launch.endpoints,
                uid: world.uid,
            };
            match resolve(block, &context, probe) {
                Ok(policy) => (Some(policy), Vec::new()),
                Err(problems) => (None, placed(fleet, role, problems)),
            }
        }
        Some(_) | None => (None, Vec::new()),
    };
    let briefing = judged_briefing(request, policy.as_ref(), probe).unwrap_or_else(|problem| {
        problems.extend(placed(fleet, role, vec![*problem]));
        policy = None;
        None
    });
    blockers.extend(policy.iter().flat_map(|policy| source_blockers(fleet, role, policy)));
    let mut harness_env = launch.env;
    if let Some(policy) = &policy {
        let layout = NetworkLayout::of(&policy.reachable);
        harness_env.extend(layout.environment().map(|(name, value)| (name.to_owned(), value)));
    }
    if role.harness.as_str() != harness.id().as_str() {
        blockers.push(format!("harness `{}` is not available in this build", role.harness));
    }
    let overrides = harness.native_overrides(options);
    let notes = launch.notes.into_iter().chain(hook_note(request, hook.as_ref()));
    let notes = notes.chain(shared_notes(&shared, policy.is_some()));
    let notes = notes.chain(denied_notes(&denied, &dirs, role.permissions.filesystem)).collect();
    Assessment {
        problems,
        blockers,
        policy,
        command,
        harness_env,
        files: launch.files,
        shared,
        briefing,
        home_variable: harness.home().map(|spec| spec.variable),
        notes,
        hooked: hook.is_some(),
        conflicts: conflicts(role.permissions_declared, &overrides, &translated),
        floor: floor(&effective, role.permissions.unattended),
        effective,
        dirs,
    }
}

/// The directories of a launch.
fn launch_dirs(
    request: &AssessRequest<'_>,
    trees: &RoleTrees,
    probe: &dyn PathProbe,
) -> LaunchDirs {
    let cwd = working_directory(request.role, trees);
    LaunchDirs {
        state: trees.state.clone(),
        git: LexicalPath::absolute(cwd.as_str())
            .map(|cwd| worktree_repository(&cwd, probe))
            .unwrap_or_default(),
        aliases: aliases([&trees.state, &trees.handout, &cwd], probe),
        cwd,
        harness_home: request.harness_home.to_owned(),
        handout: trees.handout.clone(),
        briefing: trees.briefing(),
    }
}

fn cwd_mode(role: &Role) -> MountMode {
    match role.permissions.filesystem {
        Filesystem::ReadOnly => MountMode::ReadOnly,
        Filesystem::Workspace | Filesystem::Unrestricted => MountMode::ReadWrite,
    }
}

/// What the harness itself may have to keep from the role's tools: nothing where the isolation does.
fn denied(
    request: &AssessRequest<'_>,
    trees: &RoleTrees,
    dirs: &LaunchDirs,
    probe: &dyn PathProbe,
) -> DeniedReads {
    let AssessRequest { fleet, role, harness, world, forbidden, .. } = *request;
    if request.outer.is_on() || harness.home().is_none() {
        return DeniedReads::default();
    }
    let operator = harness.home().and_then(|spec| {
        crate::harness::shared::operator_home(spec, world, role).ok().map(|home| (home, spec))
    });
    denied_reads(
        &DeniedReadsRequest {
            forbidden,
            trees,
            dirs,
            roles: &fleet.roles.keys().collect::<Vec<_>>(),
            operator: operator.as_ref().map(|(home, spec)| (home, *spec)),
        },
        probe,
    )
}

/// The files that the program and the hook need to run; puts the program's own path into the command.
fn closure(
    request: &AssessRequest<'_>,
    command: &mut LaunchCommand,
    hook: Option<&HookCommand>,
    blockers: &mut Vec<String>,
    probe: &dyn PathProbe,
) -> Vec<LexicalPath> {
    let AssessRequest { fleet, role, world, .. } = *request;
    let cwd = LexicalPath::absolute(command.cwd.as_str()).unwrap_or_else(|_| LexicalPath::root());
    let mut files = Vec::new();
    if let Some(program) = command.argv.first_mut() {
        match launch_closure(program, &world.path_dirs, &cwd, probe) {
            Ok(closure) => {
                closure.argv0.as_str().clone_into(program);
                files = closure.files;
            }
            Err(error) => blockers.push(program_blocker(fleet, role, &error)),
        }
    }
    match hook_files(hook, world, &cwd, probe) {
        Ok(more) => files.extend(more),
        Err(error) => blockers.push(format!("the hook of `{}`: {error}", role.name)),
    }
    files
}

/// Hash over everything of a role that a running launch was made from: another value means that a
/// restart would change something.
pub fn fingerprint(role: &Role) -> String {
    // `Debug` of every part but the hidden values, then the hidden values themselves: the hash hides
    // them again.
    let mut hash = Sha256::new();
    let mut plain = role.clone();
    plain.unavailable.clear();
    plain.source_file = Utf8PathBuf::new();
    hash.update(format!("{plain:?}"));
    for (name, value) in &role.env {
        hash.update(format!("{name}={}\0", value.expose()));
    }
    hash.update(serde_json::Value::Object(role.harness_options.expose().clone()).to_string());
    hash.finalize().iter().take(8).fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// The path of a role's tmux server: in its control directory where the socket address is short
/// enough, else in the runtime directory under a name made from the fleet home.
pub fn tmux_socket(trees: &RoleTrees, runtime_dir: &Utf8Path) -> Utf8PathBuf {
    /// tmux was seen to work with 102 bytes and to fail with 109.
    const LONGEST: usize = 100;
    let socket = trees.tmux_socket();
    if socket.as_str().len() <= LONGEST {
        return socket;
    }
    let digest = Sha256::digest(trees.control.as_str());
    let name =
        digest.iter().take(8).fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    runtime_dir.join(format!("ours-fleet-{name}")).join("tmux.sock")
}
