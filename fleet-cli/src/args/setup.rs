use clap::{Args, ValueEnum};
use fleet_core::config::YamlMode;

/// Prepare this machine.
#[derive(Debug, Args)]
#[command(after_help = "\
Creates the state directory (~/.ours-fleet, or below $OURS_FLEET_HOME) and says which supervisor \
keeps the runners alive: with a systemd user manager its units, else fleet's own detached runners \
(OURS_FLEET_SUPERVISOR chooses: auto, systemd, none). For systemd it writes the template of the units \
into ~/.config/systemd/user and asks that they start with the machine (linger). Safe to repeat, and to \
be repeated after ours-fleet was installed at another place.

Examples:
  ours-fleet init
  OURS_FLEET_SUPERVISOR=none ours-fleet init")]
pub struct Init {
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// How strictly YAML is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum YamlModeArg {
    /// Anchors, aliases, tags and further documents are warnings
    Compat,
    /// They are errors
    Strict,
}

impl From<YamlModeArg> for YamlMode {
    fn from(mode: YamlModeArg) -> Self {
        match mode {
            YamlModeArg::Compat => Self::Compat,
            YamlModeArg::Strict => Self::Strict,
        }
    }
}

/// Show what the fleet file means.
#[derive(Debug, Args)]
#[command(after_help = "\
Loads, checks and resolves the fleet without touching anything: what each role runs, where it works, \
what its sandbox shows and what is promised to be enforced. Values of `env`, secrets and tokens are \
never printed. Exit code 1 if the file is wrong or grants what is forbidden; what `up` would \
refuse for another reason is marked `refused`.

Examples:
  ours-fleet config
  ours-fleet config -c ./fleet.yaml --yaml-mode strict
  ours-fleet config --json | jq '.roles[] | {name, cwd}'")]
pub struct Config {
    /// How strictly YAML is read
    #[arg(long, value_enum, value_name = "MODE", default_value = "compat")]
    pub yaml_mode: YamlModeArg,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Check this machine and the fleet.
#[derive(Debug, Args)]
#[command(after_help = "\
One line a check: pass, warn or fail. Each line that is not a pass says what is wrong and what to do. \
The sandbox is tried for real with the very flags of each role. Exit code 1 if a check failed.

Examples:
  ours-fleet doctor
  ours-fleet doctor --json | jq '.checks[] | select(.level != \"pass\")'")]
pub struct Doctor {
    /// Of the harnesses, check only this one
    #[arg(long, value_name = "ID")]
    pub harness: Option<String>,
    /// How strictly YAML is read
    #[arg(long, value_enum, value_name = "MODE", default_value = "compat")]
    pub yaml_mode: YamlModeArg,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Print version and build.
#[derive(Debug, Args)]
#[command(after_help = "\
`ours-fleet --version` prints the bare version only.

Examples:
  ours-fleet version
  ours-fleet version --json | jq -r .buildId")]
pub struct Version {
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Print the JSON Schema of fleet.yaml.
#[derive(Debug, Args)]
#[command(after_help = "\
For editors: completion, explanations and red lines while you type. Made from the tables that the \
loader itself reads; what needs more than one key or a look at the machine is judged by `config`. \
Write it where your editor finds it and name it in the first line of the fleet file:

  # yaml-language-server: $schema=./fleet.schema.json

Examples:
  ours-fleet schema > fleet.schema.json
  ours-fleet schema --drop-in > fleet.d.schema.json")]
pub struct Schema {
    /// Of a file of fleet.d, which holds roles only
    #[arg(long)]
    pub drop_in: bool,
}

/// A shell that completion is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ShellName {
    /// GNU Bash
    Bash,
    /// Z shell
    Zsh,
    /// fish
    Fish,
}

/// Print a completion script.
#[derive(Debug, Args)]
#[command(after_help = "\
Write it where your shell looks for completions, or source it in your shell's start file. It asks \
ours-fleet for the role names, so they are always those of the fleet file.

Examples:
  ours-fleet completions bash > ~/.ours-fleet.bash
  ours-fleet completions zsh  > ~/.zfunc/_ours-fleet
  ours-fleet completions fish > ~/.config/fish/completions/ours-fleet.fish")]
pub struct Completions {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: ShellName,
}

/// Print a page for `man`.
#[derive(Debug, Args)]
#[command(after_help = "\
The text of `--help` in the format of manual pages, section 1: of the whole program, or of one command. \
A packager writes them to share/man/man1.

Examples:
  ours-fleet man | man -l -
  ours-fleet man up > ours-fleet-up.1")]
pub struct Man {
    /// The command
    #[arg(value_name = "COMMAND")]
    pub command: Option<String>,
}
