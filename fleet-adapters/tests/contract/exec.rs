use fleet_adapters::ProcessExec;
use fleet_core::contract_tests;
use fleet_core::port::{CommandSpec, Exec};
use fleet_core::test_support::contract::exec::{Behaviour, ExecSubject};
use tempfile::TempDir;

use crate::support::{path_variable, set_mode, temp, utf8};

struct Real {
    dir: TempDir,
}

impl ExecSubject for Real {
    fn exec(&self) -> &dyn Exec {
        &ProcessExec
    }

    fn command(&self, behaviour: Behaviour) -> CommandSpec {
        let shell = |script: &str| CommandSpec::new("sh", ["-c", script]);
        let mut command = match behaviour {
            Behaviour::Print(code) => shell(&format!("echo out; echo err >&2; exit {code}")),
            Behaviour::EchoInput => CommandSpec::new("cat", Vec::<String>::new()),
            Behaviour::ShowEnvironment => CommandSpec::new("env", Vec::<String>::new()),
            Behaviour::KillItself => shell("kill -9 $$"),
            Behaviour::Hang => CommandSpec::new("sleep", ["600"]),
            Behaviour::Flood => shell("exec cat /dev/zero"),
            Behaviour::Missing => CommandSpec::new("ours-fleet-no-such-program", ["x"]),
            Behaviour::NotExecutable => {
                let file = utf8(&self.dir).join("plain-file");
                std::fs::write(&file, "#!/bin/sh\n").expect("it is written");
                set_mode(&file, 0o644);
                CommandSpec::new(file.as_str(), Vec::<String>::new())
            }
        };
        command.env = vec![("PATH".to_owned(), path_variable())];
        command
    }
}

fn real() -> Real {
    Real { dir: temp() }
}

contract_tests!(real => exec:
    returns_what_the_program_left,
    hands_over_the_input,
    inherits_no_environment,
    tells_signals_from_codes,
    missing_programs_have_codes,
    timeouts_are_errors,
    floods_are_errors,
);
