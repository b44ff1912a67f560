//! The contract of [`Exec`].
#![expect(
    clippy::missing_panics_doc,
    reason = "a contract suite panics where the contract is broken"
)]
#![expect(clippy::expect_used, reason = "a contract suite panics where the contract is broken")]

use std::time::Duration;

use crate::port::{CommandSpec, Exec, ExecError, Exit};

/// What a program of the suite does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// Prints `out` and `err`, each with a newline, to the respective output and returns this code.
    Print(u8),
    /// Prints its input.
    EchoInput,
    /// Prints its environment, one variable a line.
    ShowEnvironment,
    /// Kills itself by signal 9.
    KillItself,
    /// Never ends.
    Hang,
    /// Prints more than 10 MiB.
    Flood,
    /// Does not exist.
    Missing,
    /// Exists and may not be executed.
    NotExecutable,
}

/// What the suite needs besides the port.
pub trait ExecSubject {
    /// The port under test.
    fn exec(&self) -> &dyn Exec;

    /// A command that behaves so.
    fn command(&self, behaviour: Behaviour) -> CommandSpec;
}

/// Both outputs and the code come back, and a code other than 0 is no error.
pub async fn returns_what_the_program_left(subject: &impl ExecSubject) {
    for code in [0, 1, 42] {
        let output = subject.exec().run(&subject.command(Behaviour::Print(code))).await;
        let output = output.expect("no error");
        assert_eq!(output.exit, Exit::Code(i32::from(code)));
        assert_eq!(output.stdout, b"out\n");
        assert_eq!(output.stderr, b"err\n");
        assert_eq!(output.success(), code == 0);
    }
}

/// The input arrives byte for byte.
pub async fn hands_over_the_input(subject: &impl ExecSubject) {
    let mut command = subject.command(Behaviour::EchoInput);
    for input in [Vec::new(), b"a\0\xff\n;".to_vec(), vec![b'x'; 300_000]] {
        command.stdin = Some(input.clone());
        let output = subject.exec().run(&command).await.expect("no error");
        assert!(output.stdout == input, "{} of {} bytes", output.stdout.len(), input.len());
    }
}

/// The environment is exactly the one asked for.
pub async fn inherits_no_environment(subject: &impl ExecSubject) {
    let mut command = subject.command(Behaviour::ShowEnvironment);
    command.env.push(("ONLY".to_owned(), "this one".to_owned()));
    let output = subject.exec().run(&command).await.expect("no error");
    let mut expected: Vec<String> =
        command.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    expected.sort();
    let text = output.stdout_text();
    let mut found: Vec<&str> = text.lines().collect();
    found.sort_unstable();
    assert_eq!(found, expected);
}

/// A death by signal is told apart from a code.
pub async fn tells_signals_from_codes(subject: &impl ExecSubject) {
    let output = subject.exec().run(&subject.command(Behaviour::KillItself)).await;
    assert_eq!(output.expect("no error").exit, Exit::Signal(9));
}

/// A program that is missing or may not be executed gives the codes of a shell.
pub async fn missing_programs_have_codes(subject: &impl ExecSubject) {
    for (behaviour, code) in [(Behaviour::Missing, 127), (Behaviour::NotExecutable, 126)] {
        let output = subject.exec().run(&subject.command(behaviour)).await.expect("no error");
        assert_eq!(output.exit, Exit::Code(code), "{behaviour:?}");
        assert!(!output.stderr.is_empty(), "{behaviour:?} says why");
    }
}

/// The limit on time is an error of its own.
pub async fn timeouts_are_errors(subject: &impl ExecSubject) {
    let mut command = subject.command(Behaviour::Hang);
    command.timeout = Duration::from_millis(100);
    match subject.exec().run(&command).await {
        Err(ExecError::Timeout { program, timeout }) => {
            assert_eq!((program, timeout), (command.program, command.timeout));
        }
        other => panic!("{other:?}"),
    }
}

/// The limit on output is an error of its own.
pub async fn floods_are_errors(subject: &impl ExecSubject) {
    match subject.exec().run(&subject.command(Behaviour::Flood)).await {
        Err(ExecError::OutputLimit { limit, .. }) => assert_eq!(limit, 10 * 1024 * 1024),
        other => panic!("{:?}", other.map(|output| output.stdout.len())),
    }
}
