use std::sync::Arc;

use async_trait::async_trait;
use camino::Utf8PathBuf;
use fleet_core::path::LexicalPath;
use fleet_core::port::{
    CommandSpec, Exec, ExecError, ExecOutput, Exit, FileKind, PathProbe, PathProbes,
};
use fleet_core::programs::{Distrust, ProgramTrust};

/// Runs programs that no agent of the fleet can have put there; others are not run.
#[derive(Debug)]
pub struct TrustedExec {
    inner: Arc<dyn Exec>,
    paths: Arc<dyn PathProbes>,
    trust: ProgramTrust,
    own: Utf8PathBuf,
}

impl TrustedExec {
    /// Over another one. `own` is fleet's program, which runs already.
    pub fn new(
        inner: Arc<dyn Exec>,
        paths: Arc<dyn PathProbes>,
        trust: ProgramTrust,
        own: Utf8PathBuf,
    ) -> Self {
        Self { inner, paths, trust, own }
    }

    /// The program by its path, where it was given by name and is found; else what was given.
    fn choose(&self, spec: &CommandSpec) -> Result<String, Distrust> {
        let probe = self.paths.fresh();
        let judge = |path: &str| match LexicalPath::absolute(path) {
            Ok(path) => self.trust.distrust(&path, &*probe),
            Err(_) => Some(Distrust::Unreadable),
        };
        if spec.program == self.own {
            return Ok(spec.program.clone());
        }
        if spec.program.contains('/') {
            return judge(&spec.program).map_or_else(|| Ok(spec.program.clone()), Err);
        }
        let search = spec.env.iter().rev().find(|(name, _)| name == "PATH");
        let mut refused = None;
        for directory in search.map_or("", |(_, value)| value).split(':') {
            let Ok(candidate) = LexicalPath::absolute(directory)
                .and_then(|directory| directory.child(&spec.program))
            else {
                continue;
            };
            if !runs(&candidate, &*probe) {
                continue;
            }
            match self.trust.distrust(&candidate, &*probe) {
                None => return Ok(candidate.as_str().to_owned()),
                Some(why) => refused = refused.or(Some(why)),
            }
        }
        // Not found: the one below says so, as a shell would.
        refused.map_or_else(|| Ok(spec.program.clone()), Err)
    }
}

/// Whether a look-up would end here: a file that somebody may execute.
fn runs(candidate: &LexicalPath, probe: &dyn PathProbe) -> bool {
    let object = probe.resolve(candidate).ok().and_then(|found| found.object);
    object.is_some_and(|object| object.kind == FileKind::File && object.mode & 0o111 != 0)
}

#[async_trait]
impl Exec for TrustedExec {
    async fn run(&self, spec: &CommandSpec) -> Result<ExecOutput, ExecError> {
        match self.choose(spec) {
            Ok(program) => self.inner.run(&CommandSpec { program, ..spec.clone() }).await,
            Err(why) => Ok(ExecOutput {
                exit: Exit::Code(126),
                stdout: Vec::new(),
                stderr: format!("{}: not run: {why}\n", spec.program).into_bytes(),
            }),
        }
    }
}
