use clap::{Args, ValueEnum};

use super::setup::YamlModeArg;

/// How a verdict is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    /// Lines for people
    Human,
    /// One JSON document
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Workflow commands of GitHub Actions, shown at the lines concerned
    Github,
}

/// Judge the fleet files for CI.
#[derive(Debug, Args)]
#[command(after_help = "\
Loads, resolves and judges every role by the text of the fleet files alone, so that the verdict is \
the same on any machine: `~` is a nominal home, no other file is looked at, and what only a machine \
can tell (a missing program or directory) is not asked; `config` and `doctor` do that. Read are FILE \
and fleet.d/*.yaml beside it.

With --against it also fails when a role, or a rule of the fleet, is wider than in OLD: a path, a \
mode, a host, a secret, a permission, a cap, a variable. OLD is a fleet file (with the fleet.d beside \
it) or a git revision of FILE. Roles that OLD does not have are listed, not judged by it.

Exit code 1 if anything is refused or wider; warnings alone are 0.

Examples:
  ours-fleet check
  ours-fleet check -c fleet.yaml --against origin/main
  ours-fleet check -c fleet.yaml --against HEAD --format github
  ours-fleet check --format json | jq '.findings[] | select(.level == \"error\")'")]
pub struct Check {
    /// Fail on what is wider than in OLD: a fleet file or a git revision
    #[arg(long, value_name = "OLD")]
    pub against: Option<String>,
    /// How the verdict is printed
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "human")]
    pub format: CheckFormat,
    /// How strictly YAML is read
    #[arg(long, value_enum, value_name = "MODE", default_value = "compat")]
    pub yaml_mode: YamlModeArg,
}
