//! What a launch of a role would be: one judgement, shared by `config`, `doctor` and the launch.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use sha2::{Digest, Sha256};

use crate::config::{Fleet, Role, Unavailable};
use crate::diagnostic::{Code, Diagnostic};
use crate::harness::hooks::{self, HookCommand, HookUse};
use crate::harness::shared::{self, SharedItems, SharedRequest};
use crate::harness::{
    FilePlace, Harness, HarnessFile, HarnessLaunch, LaunchContext, LaunchDirs, StartMode,
};
use crate::id::SessionId;
use crate::isolation::closure::{ClosureError, launch_closure};
use crate::isolation::forbidden::ForbiddenList;
use crate::isolation::resolve::{ResolveContext, resolve, worktree_repository};
use crate::isolation::{Backend, IsolationPolicy, MountMode, MountOrigin};
use crate::launch::LaunchCommand;
use crate::layout::RoleTrees;
use crate::path::LexicalPath;
use crate::permissions::{
    Conflict, Filesystem, Floor, Outer, Translation, TranslationRequest, conflicts, floor,
};
use crate::port::{FileKind, PathProbe};
use crate::redact::Redacted;
use crate::world::World;

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
    /// Whether the role asks for isolation.
    pub fn wants_isolation(role: &Role) -> bool {
        role.isolation.as_ref().is_some_and(|block| block.backend != Backend::None)
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

/// Judges one role.
pub fn assess(request: &AssessRequest<'_>, probe: &dyn PathProbe) -> Assessment {
    let AssessRequest { fleet, role, harness, world, .. } = *request;
    let trees = world.layout.role(&role.name);
    let cwd = working_directory(role, &trees);
    let dirs = LaunchDirs {
        state: trees.state.clone(),
        git: LexicalPath::absolute(cwd.as_str())
            .map(|cwd| worktree_repository(&cwd, probe))
            .unwrap_or_default(),
        aliases: aliases([&trees.state, &trees.handout, &cwd], probe),
        cwd,
        harness_home: request.harness_home.to_owned(),
        handout: trees.handout.clone(),
        briefing: trees.briefing(),
    };
    let hook = shipped_hook(request, &trees);
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

    let mut closure_files = Vec::new();
    let cwd = LexicalPath::absolute(dirs.cwd.as_str()).unwrap_or_else(|_| LexicalPath::root());
    if let Some(program) = command.argv.first() {
        match launch_closure(program, &world.path_dirs, &cwd, probe) {
            Ok(closure) => {
                closure.argv0.as_str().clone_into(&mut command.argv[0]);
                closure_files = closure.files;
            }
            Err(error) => blockers.push(program_blocker(fleet, role, &error)),
        }
    }

    match hook_files(hook.as_ref(), world, &cwd, probe) {
        Ok(files) => closure_files.extend(files),
        Err(error) => blockers.push(format!("the hook of `{}`: {error}", role.name)),
    }

    let (policy, problems) = match &role.isolation {
        Some(block) if block.backend != Backend::None => {
            let context = ResolveContext {
                trees: &trees,
                harness_home: request.harness_home,
                cwd: role.cwd.as_ref(),
                cwd_mode: match role.permissions.filesystem {
                    Filesystem::ReadOnly => MountMode::ReadOnly,
                    Filesystem::Workspace | Filesystem::Unrestricted => MountMode::ReadWrite,
                },
                homes: &world.homes,
                forbidden: request.forbidden,
                launch_closure: &closure_files,
                shared: &shared,
                uid: world.uid,
            };
            match resolve(block, &context, probe) {
                Ok(policy) => match briefing_problem(role, &policy, probe) {
                    Some(problem) => (None, placed(fleet, role, vec![problem])),
                    None => (Some(policy), Vec::new()),
                },
                Err(problems) => (None, placed(fleet, role, problems)),
            }
        }
        Some(_) | None => (None, Vec::new()),
    };
    blockers.extend(policy.iter().flat_map(|policy| source_blockers(fleet, role, policy)));
    if role.harness.as_str() != harness.id().as_str() {
        blockers.push(format!("harness `{}` is not available in this build", role.harness));
    }
    let overrides = harness.native_overrides(options);
    let notes = launch.notes.into_iter().chain(hook_note(request, hook.as_ref()));
    let notes = notes.chain(shared_notes(&shared, policy.is_some())).collect();
    Assessment {
        problems,
        blockers,
        policy,
        command,
        harness_env: launch.env,
        files: launch.files,
        shared,
        home_variable: harness.home().map(|spec| spec.variable),
        notes,
        hooked: hook.is_some(),
        conflicts: conflicts(role.permissions_declared, &overrides, &translated),
        floor: floor(&effective, role.permissions.unattended),
        effective,
        dirs,
    }
}

fn shared_or_blocked(
    request: &AssessRequest<'_>,
    launch: &HarnessLaunch,
    probe: &dyn PathProbe,
    blockers: &mut Vec<String>,
) -> SharedItems {
    let AssessRequest { fleet, role, harness, .. } = *request;
    blockers.extend(shared_home_blocker(fleet, role, harness));
    shared_items(request, launch, probe).unwrap_or_else(|reason| {
        blockers.push(blocker(fleet, role, "harness", &reason, None).to_string());
        SharedItems::default()
    })
}

fn shared_items(
    request: &AssessRequest<'_>,
    launch: &HarnessLaunch,
    probe: &dyn PathProbe,
) -> Result<SharedItems, String> {
    let Some(spec) = request.harness.home() else { return Ok(SharedItems::default()) };
    let home = launch.files.iter().filter(|file| file.place == FilePlace::Home);
    let written: Vec<&str> = home.map(|file| file.name.as_str()).collect();
    let home = &request.world.homes.os;
    let account =
        LexicalPath::absolute(home.as_str()).map_err(|error| format!("HOME `{home}`: {error}"))?;
    let operator = shared::operator_home(spec, request.world, request.role)?;
    let request = SharedRequest {
        spec,
        operator: &operator,
        account: &account,
        uid: request.world.uid,
        forbidden: request.forbidden,
        replaced: &launch.replaced,
        written: &written,
    };
    shared::find(&request, probe)
}

/// What the launch record says of the shared items.
fn shared_notes(shared: &SharedItems, isolated: bool) -> Vec<String> {
    let absent = shared.absent.iter();
    let mut notes: Vec<String> =
        absent.map(|item| format!("not shared: {}: {}", item.name, item.reason)).collect();
    let logins = shared.items.iter().filter(|item| item.login && isolated);
    notes.extend(logins.map(|item| {
        format!(
            "the login `{}` is read-only in the sandbox: a token renewed there is lost",
            item.name
        )
    }));
    notes
}

/// A harness home of the operator's own for a role is a promise that this build does not keep.
fn shared_home_blocker(fleet: &Fleet, role: &Role, harness: &dyn Harness) -> Option<String> {
    harness.home()?;
    role.harness_options.expose().get("config_home")?;
    let message = "`config_home` is not built yet: every role has a harness home of its own";
    let hint = Some("leave it out");
    Some(blocker(fleet, role, "harness_options.config_home", message, hint).to_string())
}

/// The hook of this launch. A path that no hook can hold means none, and the analysis says so.
fn shipped_hook(request: &AssessRequest<'_>, trees: &RoleTrees) -> Option<HookCommand> {
    let ships = request.harness.hook_use().ships(request.outer);
    let command = || HookCommand::new(&request.world.binary, &trees.hook_socket()).ok();
    ships.then(command).flatten()
}

/// What a sandbox must show so that the hook can run in it.
fn hook_files(
    hook: Option<&HookCommand>,
    world: &World,
    cwd: &LexicalPath,
    probe: &dyn PathProbe,
) -> Result<Vec<LexicalPath>, ClosureError> {
    let Some(hook) = hook else { return Ok(Vec::new()) };
    launch_closure(hook.binary().as_str(), &world.path_dirs, cwd, probe)
        .map(|closure| closure.files)
}

/// What the analysis says of questions that nobody is there to answer.
fn hook_note(request: &AssessRequest<'_>, hook: Option<&HookCommand>) -> Option<String> {
    let asks = request.harness.hook_use() != HookUse::Never;
    let note = hooks::unattended_note(request.role.permissions.unattended, hook.is_some());
    note.filter(|_| asks).map(str::to_owned)
}

/// One line for each key of a role that this build cannot serve and that refuses the role.
pub fn refusals(fleet: &Fleet, role: &Role) -> Vec<String> {
    let line = |key: &Unavailable| {
        let line = blocker(fleet, role, &key.path, &key.reason, Some(&key.instead));
        match &key.place {
            Some(place) => line.at(place.clone()),
            None => line,
        }
        .to_string()
    };
    role.unavailable.iter().filter(|key| key.refuses).map(line).collect()
}

/// One line about a key that this build cannot serve: place, key, reason, what to write instead.
pub fn unavailable_line(key: &Unavailable) -> String {
    let place = key.place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
    format!("{place}`{}` {}: {}", key.path, key.reason, key.instead)
}

/// Gives each problem of a role its place in the file that says so.
fn placed(fleet: &Fleet, role: &Role, problems: Vec<Diagnostic>) -> Vec<Diagnostic> {
    problems
        .into_iter()
        .map(|problem| {
            let path = format!("roles.{}.{}", role.name, problem.path);
            let problem = problem.role(role.name.as_str());
            match fleet.provenance.lookup(&path) {
                Some((_, place)) => problem.at(place.clone()),
                None => problem,
            }
        })
        .collect()
}

/// A briefing file is read with the rights of the fleet user and handed to the agent. Where the agent
/// may write it can put a link in place of a directory, so from there on no link may lead away.
fn briefing_problem(
    role: &Role,
    policy: &IsolationPolicy,
    probe: &dyn PathProbe,
) -> Option<Diagnostic> {
    let file = role.briefing_file.as_ref()?;
    // What cannot be looked at cannot be read either; `briefing_files` says so.
    let target = probe.resolve(file).ok()?.path;
    let writable = policy.mounts.iter().filter(|mount| mount.mode == MountMode::ReadWrite);
    let escaped = |mount: &&crate::isolation::Mount| {
        let inside = |path: &LexicalPath| path.is_within(&mount.source);
        let mut above = std::iter::successors(Some(file.clone()), LexicalPath::parent);
        !inside(&target)
            && above.any(|path| probe.resolve(&path).is_ok_and(|seen| inside(&seen.path)))
    };
    let mount = writable.into_iter().find(escaped)?;
    let message = format!(
        "`{file}` leads to `{target}` by a link in `{}`, where the role may write: its agent could \
         have it read any file",
        mount.source
    );
    let hint = "remove the link, or keep the file outside of what the role may write";
    Some(Diagnostic::error(Code::FileTrust, message).path("briefing_file").hint(hint))
}

/// The last gate of 01 §4.4: the environment that the program will get names the model of the role.
fn pin_blocker(
    fleet: &Fleet,
    role: &Role,
    harness: &dyn Harness,
    added: &BTreeMap<String, String>,
) -> Option<String> {
    let (model, variable) = (role.model.as_ref()?, harness.model_variable()?);
    // As the environment is composed: the role's own over what the harness adds.
    let pin = role.env.get(variable).map(Redacted::expose).or_else(|| added.get(variable));
    (pin != Some(model)).then(|| {
        let message = format!("`{variable}` does not name the model of the role");
        let hint = format!("write `model` and leave `env.{variable}` out");
        blocker(fleet, role, "model", &message, Some(&hint)).to_string()
    })
}

/// A problem of a role that its file does not show; its place is that of the key, else of the role.
fn blocker(
    fleet: &Fleet,
    role: &Role,
    path: &str,
    message: &str,
    hint: Option<&str>,
) -> Diagnostic {
    let mut line = Diagnostic::error(Code::Io, message).role(role.name.as_str()).path(path);
    line.hint = hint.map(ToOwned::to_owned);
    let written = fleet.provenance.lookup(&format!("roles.{}.{path}", role.name));
    match written.or_else(|| fleet.provenance.lookup(&format!("roles.{}", role.name))) {
        Some((_, place)) => line.at(place),
        None => line,
    }
}

fn cwd_blocker(fleet: &Fleet, role: &Role, probe: &dyn PathProbe) -> Option<String> {
    const CREATE: &str = "create it, or change `cwd`";
    let cwd = role.cwd.as_ref()?;
    let (message, hint) = match probe.resolve(cwd) {
        Ok(resolved) => match resolved.object {
            Some(object) if object.kind == FileKind::Directory => return None,
            Some(_) => (format!("`{cwd}` is not a directory"), Some("name a directory")),
            None => (format!("`{cwd}` does not exist"), Some(CREATE)),
        },
        Err(error) => (error.to_string(), None),
    };
    Some(blocker(fleet, role, "cwd", &message, hint).to_string())
}

fn program_blocker(fleet: &Fleet, role: &Role, error: &ClosureError) -> String {
    let hint = matches!(error, ClosureError::NotFound { .. })
        .then_some("install it, or write the absolute path of another program");
    blocker(fleet, role, "harness_options.argv[0]", &error.to_string(), hint).to_string()
}

/// Sources that the file names and that are not there: the mounts are hard, so the launch would fail.
/// Where a secret lies is not said.
fn source_blockers(fleet: &Fleet, role: &Role, policy: &IsolationPolicy) -> Vec<String> {
    policy
        .missing_sources()
        .filter_map(|mount| {
            let message = match mount.origin {
                MountOrigin::FsRead { .. } | MountOrigin::FsWrite { .. } => {
                    format!("`{}` does not exist", mount.source)
                }
                MountOrigin::Secret { .. } => "the file does not exist".to_owned(),
                _ => return None,
            };
            let hint = Some("create it, or leave it out");
            Some(blocker(fleet, role, &mount.origin.key(), &message, hint).to_string())
        })
        .collect()
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
