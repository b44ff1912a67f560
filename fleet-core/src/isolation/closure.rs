//! The files needed to run the program of a harness (01 §2.7): the program and its interpreters.
//!
//! Packages of scripting languages are not followed yet: a program that needs files beside itself
//! gets them by `isolation.fs.read`.

use super::resolve::is_program_directory;
use crate::path::{LexicalPath, LexicalPathError};
use crate::port::{FileKind, PathProbe, PathProbeError};

/// What the kernel reads of a `#!` line.
const SHEBANG_LIMIT: usize = 256;
/// Interpreters of interpreters that are followed.
const DEPTH: usize = 4;

/// A program found, and what it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closure {
    /// The program, links followed.
    pub argv0: LexicalPath,
    /// Files to mount, links followed, without those that every sandbox shows anyway.
    pub files: Vec<LexicalPath>,
}

/// Why a program cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClosureError {
    /// No such program.
    #[error("`{program}` was not found{}", if *.on_path { " on PATH" } else { "" })]
    NotFound {
        /// As written.
        program: String,
        /// Whether it was looked for by name.
        on_path: bool,
    },
    /// A relative path.
    #[error(
        "`{program}` is relative: write a name found on PATH, or the absolute path `{absolute}`"
    )]
    Relative {
        /// As written.
        program: String,
        /// What it would be below the working directory.
        absolute: String,
    },
    /// A path that is not plain.
    #[error("`{program}` is no usable program path: {reason}")]
    BadPath {
        /// As written.
        program: String,
        /// What is wrong.
        reason: LexicalPathError,
    },
    /// A directory, a socket and so on.
    #[error("`{program}` is not a regular file")]
    NotAFile {
        /// The path.
        program: String,
    },
    /// A file without an execute bit.
    #[error("`{program}` is not executable")]
    NotExecutable {
        /// The path.
        program: String,
    },
    /// Its interpreter is the problem.
    #[error("the interpreter of `{script}` cannot be used: {reason}")]
    Interpreter {
        /// The script.
        script: String,
        /// Why.
        reason: Box<ClosureError>,
    },
    /// Interpreters nested too deeply.
    #[error("`{program}` needs more than {DEPTH} interpreters in a row")]
    TooDeep {
        /// The program asked for.
        program: String,
    },
    /// A file could not be looked at.
    #[error(transparent)]
    Probe(#[from] PathProbeError),
}

/// Finds `program`, absolute or by name in `path_dirs` in order, and every interpreter it needs.
/// A relative path with a `/` is refused: what it means would depend on where the launcher stands.
pub fn launch_closure(
    program: &str,
    path_dirs: &[LexicalPath],
    cwd: &LexicalPath,
    probe: &dyn PathProbe,
) -> Result<Closure, ClosureError> {
    let argv0 = find(program, path_dirs, cwd, probe)?;
    let mut files = Vec::new();
    let mut next = argv0.clone();
    for _ in 0..=DEPTH {
        if !is_program_directory(&next) && !files.contains(&next) {
            files.push(next.clone());
        }
        let Some(interpreters) = shebang(&probe.head(&next, SHEBANG_LIMIT)?) else {
            return Ok(Closure { argv0, files });
        };
        let script = next.to_string();
        let mut last = None;
        for interpreter in interpreters {
            let found = find(&interpreter, path_dirs, cwd, probe).map_err(|reason| {
                ClosureError::Interpreter { script: script.clone(), reason: Box::new(reason) }
            })?;
            if !is_program_directory(&found) && !files.contains(&found) {
                files.push(found.clone());
            }
            last = Some(found);
        }
        let Some(last) = last else { return Ok(Closure { argv0, files }) };
        next = last;
    }
    Err(ClosureError::TooDeep { program: program.to_owned() })
}

fn find(
    program: &str,
    path_dirs: &[LexicalPath],
    cwd: &LexicalPath,
    probe: &dyn PathProbe,
) -> Result<LexicalPath, ClosureError> {
    let named = || program.to_owned();
    if program.starts_with('/') {
        let path = LexicalPath::absolute(program)
            .map_err(|reason| ClosureError::BadPath { program: named(), reason })?;
        return executable(&path, probe)?
            .ok_or(ClosureError::NotFound { program: named(), on_path: false });
    }
    if program.contains('/') {
        let below = program.trim_start_matches("./");
        let absolute = format!("{}/{below}", cwd.as_str().trim_end_matches('/'));
        return Err(ClosureError::Relative { program: named(), absolute });
    }
    let mut first_problem = None;
    for directory in path_dirs {
        let path = directory
            .child(program)
            .map_err(|reason| ClosureError::BadPath { program: named(), reason })?;
        // As a shell: what cannot be run is passed over, and named only if nothing else is found.
        match executable(&path, probe) {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => {}
            Err(error) => first_problem = first_problem.or(Some(error)),
        }
    }
    Err(match first_problem {
        Some(ClosureError::Probe(_)) | None => {
            ClosureError::NotFound { program: named(), on_path: true }
        }
        Some(problem) => problem,
    })
}

fn executable(
    path: &LexicalPath,
    probe: &dyn PathProbe,
) -> Result<Option<LexicalPath>, ClosureError> {
    let resolved = probe.resolve(path)?;
    let Some(object) = resolved.object else { return Ok(None) };
    if object.kind != FileKind::File {
        return Err(ClosureError::NotAFile { program: path.to_string() });
    }
    if object.mode & 0o111 == 0 {
        return Err(ClosureError::NotExecutable { program: path.to_string() });
    }
    Ok(Some(resolved.path))
}

/// The programs that a `#!` line starts: the interpreter, and the one that `env` looks up. `None` if
/// the file is no script.
fn shebang(head: &[u8]) -> Option<Vec<String>> {
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_ascii_whitespace();
    let interpreter = words.next()?.to_owned();
    let is_env = interpreter.rsplit('/').next() == Some("env");
    let looked_up = words.find(|word| !word.starts_with('-') && !word.contains('='));
    let mut programs = vec![interpreter];
    if is_env {
        programs.extend(looked_up.map(str::to_owned));
    }
    Some(programs)
}
