//! What must be mounted to run a program that lives outside the system directories (01 §2.7).

use crate::path::LexicalPath;
use crate::port::PathProbe;

/// A program and the files it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closure {
    /// The program, links followed.
    pub argv0: LexicalPath,
    /// Files to mount, those under the system directories left out.
    pub files: Vec<LexicalPath>,
}

/// Why a program cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("launch closures are not built yet")]
pub struct ClosureError;

/// The launch closure of a program.
pub fn launch_closure(
    _program: &str,
    _path_dirs: &[LexicalPath],
    _probe: &dyn PathProbe,
) -> Result<Closure, ClosureError> {
    Err(ClosureError)
}
