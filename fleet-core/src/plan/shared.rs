//! What a role sees of the operator's harness home (01 §2.5).

use super::AssessRequest;
use super::blockers::blocker;
use crate::config::{Fleet, Role};
use crate::harness::shared::{self, SharedItems, SharedRequest};
use crate::harness::{FilePlace, Harness, HarnessLaunch};
use crate::path::LexicalPath;
use crate::port::PathProbe;

pub(super) fn shared_or_blocked(
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
pub(super) fn shared_notes(shared: &SharedItems, isolated: bool) -> Vec<String> {
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
