use fleet_core::contract_tests;
use fleet_core::port::{CommandSpec, Exec, ExecOutput, Exit};
use fleet_core::test_support::contract::exec::{Behaviour, ExecSubject};
use fleet_core::test_support::fakes::{Answer, ScriptedExec};

struct Scripted {
    exec: ScriptedExec,
}

impl ExecSubject for Scripted {
    fn exec(&self) -> &dyn Exec {
        &self.exec
    }

    fn command(&self, behaviour: Behaviour) -> CommandSpec {
        CommandSpec::new(format!("{behaviour:?}"), Vec::<String>::new())
    }
}

fn scripted() -> Scripted {
    let exec = ScriptedExec::default();
    for code in [0, 1, 42] {
        exec.program(&format!("Print({code})"), Answer::ends(code, "out\n", "err\n"));
    }
    exec.on(|spec| match spec.program.as_str() {
        "EchoInput" => Some(Answer::prints(spec.stdin.clone().unwrap_or_default())),
        "ShowEnvironment" => {
            let lines = spec.env.iter().map(|(name, value)| format!("{name}={value}\n"));
            Some(Answer::prints(lines.collect::<String>()))
        }
        _ => None,
    });
    let killed = ExecOutput { exit: Exit::Signal(9), stdout: Vec::new(), stderr: Vec::new() };
    exec.program("KillItself", Answer::Output(killed));
    exec.program("Hang", Answer::Timeout);
    exec.program("Flood", Answer::OutputLimit);
    exec.program("NotExecutable", Answer::fails(126, "may not be executed"));
    Scripted { exec }
}

contract_tests!(scripted => exec:
    returns_what_the_program_left,
    hands_over_the_input,
    inherits_no_environment,
    tells_signals_from_codes,
    missing_programs_have_codes,
    timeouts_are_errors,
    floods_are_errors,
);

#[tokio::test]
async fn calls_are_remembered_and_the_last_rule_wins() {
    let exec = ScriptedExec::default();
    exec.program("tool", Answer::prints("old"));
    exec.program("tool", Answer::prints("new"));
    let spec = CommandSpec::new("tool", ["--flag"]);
    assert_eq!(exec.run(&spec).await.expect("an answer").stdout_text(), "new");
    assert_eq!(exec.calls(), [spec]);
}
