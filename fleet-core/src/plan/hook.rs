//! The hook that a launch ships (01 §3.7).

use super::AssessRequest;
use crate::harness::hooks::{self, HookCommand, HookUse};
use crate::isolation::closure::{ClosureError, launch_closure};
use crate::layout::RoleTrees;
use crate::path::LexicalPath;
use crate::port::PathProbe;
use crate::world::World;

/// The hook of this launch. A path that no hook can hold means none, and the analysis says so.
pub(super) fn shipped_hook(request: &AssessRequest<'_>, trees: &RoleTrees) -> Option<HookCommand> {
    let ships = request.harness.hook_use().ships(request.outer);
    let command = || HookCommand::new(&request.world.binary, &trees.hook_socket()).ok();
    ships.then(command).flatten()
}

/// What a sandbox must show so that the hook can run in it.
pub(super) fn hook_files(
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
pub(super) fn hook_note(request: &AssessRequest<'_>, hook: Option<&HookCommand>) -> Option<String> {
    let asks = request.harness.hook_use() != HookUse::Never;
    let note = hooks::unattended_note(request.role.permissions.unattended, hook.is_some());
    note.filter(|_| asks).map(str::to_owned)
}
