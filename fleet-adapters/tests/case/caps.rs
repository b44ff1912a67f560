//! Caps of a role on the way to its launch, and what is left of them.

use std::time::Duration;

use fleet_core::isolation::{EnforcementLevel, Item};
use fleet_core::limits::{Cap, GroupPrefix, Means};
use fleet_core::status::RoleState;

use super::harness::{End, Stage};

fn fleet(isolation: &str) -> String {
    format!(
        "roles: {{A: {{harness: command, harness_options: {{argv: [/opt/agent]}}, \
         isolation: {{backend: none, {isolation}}}}}}}"
    )
}

#[tokio::test]
async fn a_launch_gets_its_caps_and_what_it_leaves_is_swept() {
    let mut stage = Stage::new(&fleet("resources: {mem: 64M, pids: 40, cpu: 1}"));
    let runner = stage.start();
    let launch = stage.launched().await;
    let request = launch.limits.as_ref().expect("caps");
    assert_eq!(request.strict, None);
    // The machine of the test holds two of the three.
    let first = &request.attempts[0];
    assert_eq!((first.means, first.rlimits.as_slice()), (Means::Group, &[Cap::Cpu][..]));
    let level =
        |item: Item| launch.plan.promise.iter().find(|row| row.item == item).map(|row| row.level);
    assert_eq!(level(Item::Memory), Some(EnforcementLevel::Degraded), "no sandbox");
    assert_eq!(level(Item::Cpu), Some(EnforcementLevel::Missing));

    let prefix = GroupPrefix::new(&stage.role, stage.runtime.world.layout.root());
    assert!(prefix.is_of(request.group.as_str()), "{}", request.group);
    stage.limits.leave(&request.record, request.group.as_str());
    stage.limits.leave(&request.record, "ours-fleet-other-00000000-x1");
    // The launcher was killed: it says nothing, and has removed nothing.
    stage.ends(&launch, End::Silence).await;
    stage.launched().await;
    assert_eq!(stage.limits.left(), ["ours-fleet-other-00000000-x1"]);
    stage.stop();
    runner.await.expect("no panic").expect("an orderly stop");
}

#[tokio::test]
async fn without_caps_nothing_is_asked() {
    let mut stage = Stage::new(&fleet("resources: {}"));
    let runner = stage.start();
    let launch = stage.launched().await;
    assert_eq!(launch.limits, None);
    stage.ends(&launch, End::Code(0, Duration::from_secs(200))).await;
    stage.stop();
    runner.await.expect("no panic").expect("an orderly stop");
}

#[tokio::test]
async fn a_cap_that_must_hold_and_cannot_stops_the_start() {
    let mut stage = Stage::new(&fleet("resources: {cpu: 1}, on_unavailable: strict"));
    let runner = stage.start();
    let status = stage.until_status(|status| status.state == RoleState::HeldDown).await;
    let reason = status.detail.expect("a reason");
    assert!(reason.contains("the cap on cpu cannot be enforced here"), "{reason}");
    assert!(reason.contains("`on_unavailable: strict`"), "{reason}");
    assert!(stage.tmux.opened().is_empty(), "nothing was started");
    stage.stop();
    runner.await.expect("no panic").expect("an orderly stop");
    // The control: what this machine holds starts under the same rule.
    let mut stage = Stage::new(&fleet("resources: {pids: 40}, on_unavailable: strict"));
    let runner = stage.start();
    let launch = stage.launched().await;
    let strict = launch.limits.as_ref().and_then(|limits| limits.strict.as_deref());
    assert_eq!(strict, Some("`on_unavailable: strict`"));
    stage.stop();
    runner.await.expect("no panic").expect("an orderly stop");
}
