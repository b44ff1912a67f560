//! A git repository below the home of a test.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::TestEnvironment;

pub(crate) struct Repository {
    path: PathBuf,
    vars: Vec<(String, String)>,
}

impl Repository {
    /// An empty one at `repository`, with the tested binary first on `PATH`.
    pub(crate) fn new(env: &TestEnvironment) -> Self {
        let binary = Path::new(env!("CARGO_BIN_EXE_ours-fleet")).parent().expect("a directory");
        let path = std::env::var("PATH").expect("PATH");
        let home = env.home().to_str().expect("UTF-8").to_owned();
        let vars = [
            ("PATH", format!("{}:{path}", binary.display())),
            ("HOME", home),
            ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
            ("GIT_AUTHOR_NAME", "t".to_owned()),
            ("GIT_AUTHOR_EMAIL", "t@t.example".to_owned()),
            ("GIT_COMMITTER_NAME", "t".to_owned()),
            ("GIT_COMMITTER_EMAIL", "t@t.example".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value));
        let repository = Self { path: env.path("repository"), vars: vars.to_vec() };
        std::fs::create_dir(&repository.path).expect("a directory");
        repository.git(&["init", "-q", "-b", "main"]);
        repository
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.vars.push((name.to_owned(), value.to_owned()));
    }

    /// A program in the repository.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let vars = self.vars.iter().map(|(name, value)| (name, value));
        command.env_clear().envs(vars).current_dir(&self.path);
        command
    }

    /// Runs git; returns what it prints.
    #[track_caller]
    pub(crate) fn git(&self, args: &[&str]) -> String {
        let out = self.command("git").args(args).output().expect("git");
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).expect("UTF-8").trim().to_owned()
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        let path = self.path.join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        std::fs::write(path, content).expect("a file");
    }

    /// Commits everything, without hooks; returns the commit.
    #[track_caller]
    pub(crate) fn commit(&self, title: &str) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--no-verify", "-m", title]);
        self.git(&["rev-parse", "HEAD"])
    }
}
