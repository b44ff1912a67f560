//! The contract of [`ProcessTable`].
#![expect(
    clippy::missing_panics_doc,
    reason = "a contract suite panics where the contract is broken"
)]
#![expect(clippy::expect_used, reason = "a contract suite panics where the contract is broken")]

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use crate::port::{Descendant, ProcessIdentity, ProcessTable, Signal, Signalled};

/// What the suite needs besides the port.
pub trait ProcessSubject {
    /// The port under test.
    fn table(&self) -> &dyn ProcessTable;

    /// The pid of a new process that ends when asked to.
    fn spawn(&self) -> u32;

    /// The parent that `spawn` gives a process.
    fn parent(&self) -> ProcessIdentity;

    /// Ends a process made by `spawn`, not by the port.
    fn end(&self, pid: u32);
}

fn spawned(subject: &impl ProcessSubject) -> ProcessIdentity {
    let pid = subject.spawn();
    subject.table().identity(pid).expect("an answer").expect("it lives")
}

/// Identities that share something with a living process and are not it.
fn impostors(of: &ProcessIdentity) -> [ProcessIdentity; 3] {
    [
        ProcessIdentity { start_time: of.start_time + 1, ..of.clone() },
        ProcessIdentity { start_time: 0, ..of.clone() },
        ProcessIdentity { boot_id: "another boot".to_owned(), ..of.clone() },
    ]
}

/// The asking process is alive and keeps its identity.
pub async fn knows_the_asking_process(subject: &impl ProcessSubject) {
    let own = subject.table().own().expect("an answer");
    assert_eq!(subject.table().own().expect("an answer"), own);
    assert!(subject.table().is_alive(&own).expect("an answer"));
    assert_ne!(own.boot_id, "");
    // It has not ended, so waiting for it does not end either.
    let mut waiting = pin!(subject.table().wait_exit(&own));
    assert!(!poll_fn(|context| Poll::Ready(waiting.as_mut().poll(context).is_ready())).await);
}

/// A process is alive until it ends, and nobody afterwards.
pub async fn follows_a_process_to_its_end(subject: &impl ProcessSubject) {
    let process = spawned(subject);
    assert!(subject.table().is_alive(&process).expect("an answer"));
    subject.end(process.pid);
    subject.table().wait_exit(&process).await.expect("an answer");
    assert!(!subject.table().is_alive(&process).expect("an answer"));
    assert_eq!(subject.table().identity(process.pid).expect("an answer"), None);
    // And once more, for a process that is gone already.
    subject.table().wait_exit(&process).await.expect("an answer");
}

/// Both signals reach exactly the named process; a second one finds nobody.
pub async fn signals_end_a_process(subject: &impl ProcessSubject) {
    for signal in [Signal::Term, Signal::Kill] {
        let (process, other) = (spawned(subject), spawned(subject));
        let outcome = subject.table().signal(&process, signal).expect("an answer");
        assert_eq!(outcome, Signalled::Delivered);
        subject.table().wait_exit(&process).await.expect("an answer");
        let outcome = subject.table().signal(&process, signal).expect("an answer");
        assert_eq!(outcome, Signalled::Gone);
        assert!(subject.table().is_alive(&other).expect("an answer"));
        subject.end(other.pid);
    }
}

/// A process with the same pid that is not the named one is never signalled and never waited for.
pub async fn never_takes_one_process_for_another(subject: &impl ProcessSubject) {
    let process = spawned(subject);
    for impostor in impostors(&process) {
        let table = subject.table();
        assert!(!table.is_alive(&impostor).expect("an answer"), "{impostor:?}");
        let outcome = table.signal(&impostor, Signal::Kill).expect("an answer");
        assert_eq!(outcome, Signalled::Gone, "{impostor:?}");
        table.wait_exit(&impostor).await.expect("an answer");
    }
    assert!(subject.table().is_alive(&process).expect("an answer"));
    subject.end(process.pid);
}

/// What lives below a process is found, itself included, and nothing below one that is gone.
pub async fn finds_what_lives_below(subject: &impl ProcessSubject) {
    let (first, second) = (spawned(subject), spawned(subject));
    let below = |of: &ProcessIdentity| subject.table().descendants(of).expect("an answer");
    let has = |list: &[Descendant], who: &ProcessIdentity| {
        list.iter().filter(|found| found.process == *who && found.inner_pid > 0).count()
    };
    let all = below(&subject.parent());
    for process in [&first, &second, &subject.parent()] {
        assert_eq!(has(&all, process), 1, "{process:?}");
    }
    let alone = below(&first);
    assert_eq!((has(&alone, &first), alone.len()), (1, 1), "{alone:?}");
    for impostor in impostors(&first) {
        assert_eq!(below(&impostor), [], "{impostor:?}");
    }
    for process in [&first, &second] {
        subject.end(process.pid);
        subject.table().wait_exit(process).await.expect("an answer");
        assert_eq!(below(process), []);
    }
    assert_eq!(has(&below(&subject.parent()), &first), 0);
}

/// Waiting does not end before the process does.
pub async fn waits_for_the_end(subject: &impl ProcessSubject) {
    let process = spawned(subject);
    {
        let mut waiting = pin!(subject.table().wait_exit(&process));
        let first = poll_fn(|context| Poll::Ready(waiting.as_mut().poll(context).is_ready())).await;
        assert!(!first, "it still runs");
        subject.end(process.pid);
        waiting.await.expect("an answer");
    }
    assert!(!subject.table().is_alive(&process).expect("an answer"));
}
