//! The contract of [`Supervisor`].
#![expect(
    clippy::missing_panics_doc,
    reason = "a contract suite panics where the contract is broken"
)]
#![expect(clippy::expect_used, reason = "a contract suite panics where the contract is broken")]

use crate::port::{RunState, Service, Supervisor};

/// What the suite needs besides the port.
pub trait SupervisorSubject {
    /// The port under test.
    fn supervisor(&self) -> &dyn Supervisor;

    /// A role whose runner can be started. The same name gives the same role.
    fn service(&self, role: &str) -> Service;
}

async fn pid(subject: &impl SupervisorSubject, service: &Service) -> u32 {
    let liveness = subject.supervisor().liveness(service).await;
    assert_eq!(liveness.state, RunState::Running, "{}", liveness.detail);
    liveness.pid.expect("a running runner has a pid")
}

async fn assert_stopped(subject: &impl SupervisorSubject, service: &Service) {
    let liveness = subject.supervisor().liveness(service).await;
    assert_eq!(liveness.state, RunState::Stopped, "{}", liveness.detail);
    assert_eq!(liveness.pid, None);
}

/// A role that was never started is stopped, and stopping it is no error.
pub async fn begins_stopped(subject: &impl SupervisorSubject) {
    let service = subject.service("Rev");
    assert_stopped(subject, &service).await;
    subject.supervisor().stop(&service).await.expect("nothing to do");
    assert_stopped(subject, &service).await;
}

/// On `Ok` of start the runner runs; on `Ok` of stop it is gone; then it can start again.
pub async fn starts_and_stops(subject: &impl SupervisorSubject) {
    let service = subject.service("Rev");
    let mut pids = Vec::new();
    for _ in 0..2 {
        subject.supervisor().start(&service).await.expect("it starts");
        pids.push(pid(subject, &service).await);
        subject.supervisor().stop(&service).await.expect("it stops");
        assert_stopped(subject, &service).await;
        subject.supervisor().stop(&service).await.expect("it is stopped already");
    }
    assert_ne!(pids.first(), pids.last());
}

/// Starting what runs changes nothing.
pub async fn starting_twice_changes_nothing(subject: &impl SupervisorSubject) {
    let service = subject.service("Rev");
    subject.supervisor().start(&service).await.expect("it starts");
    let first = pid(subject, &service).await;
    subject.supervisor().start(&service).await.expect("it runs already");
    assert_eq!(pid(subject, &service).await, first);
    subject.supervisor().stop(&service).await.expect("it stops");
}

/// One role's stop leaves the runner of a role whose name begins the same alone.
pub async fn roles_are_apart(subject: &impl SupervisorSubject) {
    let (short, long) = (subject.service("Rev"), subject.service("Reviewer"));
    for service in [&short, &long] {
        subject.supervisor().start(service).await.expect("it starts");
    }
    let before = pid(subject, &long).await;
    subject.supervisor().stop(&short).await.expect("it stops");
    assert_stopped(subject, &short).await;
    subject.supervisor().stop(&short).await.expect("it is stopped already");
    assert_eq!(pid(subject, &long).await, before);
    subject.supervisor().stop(&long).await.expect("it stops");
}
