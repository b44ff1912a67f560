use std::fmt;
use std::io;
use std::sync::Mutex;

use async_trait::async_trait;

use crate::port::{CommandSpec, Exec, ExecError, ExecOutput, Exit};
use crate::test_support::sync::lock;

/// What a scripted program does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It ends and leaves this.
    Output(ExecOutput),
    /// It runs until the limit.
    Timeout,
    /// It writes more than 10 MiB.
    OutputLimit,
    /// The system refuses.
    Io(io::ErrorKind),
}

impl Answer {
    /// It returns 0 and prints this.
    pub fn prints(stdout: impl Into<Vec<u8>>) -> Self {
        Self::ends(0, stdout, "")
    }

    /// It returns this code and complains.
    pub fn fails(code: i32, stderr: impl Into<Vec<u8>>) -> Self {
        Self::ends(code, "", stderr)
    }

    /// It returns this code and prints this.
    pub fn ends(code: i32, stdout: impl Into<Vec<u8>>, stderr: impl Into<Vec<u8>>) -> Self {
        let (stdout, stderr) = (stdout.into(), stderr.into());
        Self::Output(ExecOutput { exit: Exit::Code(code), stdout, stderr })
    }
}

type Rule = Box<dyn Fn(&CommandSpec) -> Option<Answer> + Send + Sync>;

/// Runs no program: answers by rules and remembers what was asked. Without a rule a program is
/// missing.
#[derive(Default)]
pub struct ScriptedExec {
    rules: Mutex<Vec<Rule>>,
    calls: Mutex<Vec<CommandSpec>>,
}

impl fmt::Debug for ScriptedExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedExec")
            .field("rules", &lock(&self.rules).len())
            .field("calls", &lock(&self.calls))
            .finish()
    }
}

impl ScriptedExec {
    /// Adds a rule. The last one added that gives an answer wins.
    pub fn on(&self, rule: impl Fn(&CommandSpec) -> Option<Answer> + Send + Sync + 'static) {
        lock(&self.rules).push(Box::new(rule));
    }

    /// A program that always does the same.
    pub fn program(&self, name: &str, answer: Answer) {
        let name = name.to_owned();
        self.on(move |spec| (spec.program == name).then(|| answer.clone()));
    }

    /// Every command that was run, in order.
    pub fn calls(&self) -> Vec<CommandSpec> {
        lock(&self.calls).clone()
    }
}

#[async_trait]
impl Exec for ScriptedExec {
    async fn run(&self, spec: &CommandSpec) -> Result<ExecOutput, ExecError> {
        lock(&self.calls).push(spec.clone());
        let program = spec.program.clone();
        let answer = lock(&self.rules).iter().rev().find_map(|rule| rule(spec));
        match answer {
            Some(Answer::Output(output)) => Ok(output),
            Some(Answer::Timeout) => Err(ExecError::Timeout { program, timeout: spec.timeout }),
            Some(Answer::OutputLimit) => {
                Err(ExecError::OutputLimit { program, limit: 10 * 1024 * 1024 })
            }
            Some(Answer::Io(kind)) => Err(ExecError::Io { program, source: kind.into() }),
            None => {
                let stderr = format!("{program}: not found\n").into_bytes();
                Ok(ExecOutput { exit: Exit::Code(127), stdout: Vec::new(), stderr })
            }
        }
    }
}
