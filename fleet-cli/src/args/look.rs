use clap::Args;
use fleet_core::id::RoleName;

/// List the running roles.
#[derive(Debug, Args)]
#[command(after_help = "\
Reads what the runners published; starts no program and asks no console.

Examples:
  ours-fleet ls
  ours-fleet ls --all
  ours-fleet ls --json | jq -r '.roles[].name'")]
pub struct Ls {
    /// List every configured role, not only those that run
    #[arg(short = 'a', long)]
    pub all: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Show the state of the fleet or of one role.
#[derive(Debug, Args)]
#[command(after_help = "\
Without a name: a table of all roles. With one: state and since when, supervisor, console, what is \
enforced as observed, why a role is held down and how to release it, how the last run ended.

Examples:
  ours-fleet status
  ours-fleet status Reviewer
  ours-fleet status Reviewer --json | jq .state")]
pub struct Status {
    /// The role
    #[arg(value_name = "NAME")]
    pub name: Option<RoleName>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Print the last lines of a console.
#[derive(Debug, Args)]
#[command(after_help = "\
Lines of the console begin with `|`; any other line is of ours-fleet itself.

Examples:
  ours-fleet peek Reviewer
  ours-fleet peek Reviewer 200")]
pub struct Peek {
    /// The role
    #[arg(value_name = "NAME")]
    pub name: RoleName,
    /// How many lines
    #[arg(value_name = "LINES", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub lines: u32,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Connect this terminal to a console.
#[derive(Debug, Args)]
#[command(after_help = "\
You see and type what the agent's program sees. Leave with Ctrl-b d: the role goes on running. \
Ctrl-c goes to the agent's program.

Examples:
  ours-fleet attach Reviewer")]
pub struct Attach {
    /// The role
    #[arg(value_name = "NAME")]
    pub name: RoleName,
}

/// Show the connections of a role.
#[derive(Debug, Args)]
#[command(after_help = "\
One line for each connection that the role's sandbox asked for under `network: broker` or \
`allowlist`: what was asked for, what became of it, and how many bytes went each way when it ended. Under `deny` nothing can be asked for, under `allow` nothing is recorded.

Examples:
  ours-fleet net Reviewer
  ours-fleet net Reviewer --json")]
pub struct Net {
    /// The role
    #[arg(value_name = "NAME")]
    pub name: RoleName,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Show a role's log.
#[derive(Debug, Args)]
#[command(after_help = "\
The log of the role's runner: starts, exits, decisions and their reasons. What the agent itself \
printed is in its console (`peek`, `attach`).

Examples:
  ours-fleet logs Reviewer
  ours-fleet logs Reviewer -f")]
pub struct Logs {
    /// The role
    #[arg(value_name = "NAME")]
    pub name: RoleName,
    /// Go on printing as lines arrive
    #[arg(short = 'f', long)]
    pub follow: bool,
    /// Print one JSON document, with --follow one a line
    #[arg(long)]
    pub json: bool,
}

/// Say what a role can reach, and why.
#[derive(Debug, Args)]
#[command(after_help = "\
Can this role reach it, why or why not, through which rule, and which line of which file says so. \
Without a subject: everything that the role can reach, each with its line. Starts no agent and changes \
nothing; values of variables, options and secrets are never shown.

A path begins with `/`, `~`, `./` or `../` (from where you stand); anything else is a host, perhaps \
with a port. A name after `tool` is one of the agent's tools (Bash, Edit, apply_patch, \
mcp__SERVER__TOOL) or a capability of the unattended floor (read-state, workspace-edit, …).

What the sandbox lets through is still bound by the permissions of the files themselves.

The exit code says whether there is an answer, not what it is: 0 with an answer, 1 if the role does \
not exist or the file is wrong, 64 if the subject cannot be read. Scripts read `verdict` of --json.

Examples:
  ours-fleet explain Reviewer
  ours-fleet explain Reviewer ~/.ssh/id_ed25519
  ours-fleet explain Reviewer ./src
  ours-fleet explain Reviewer api.example.com:443
  ours-fleet explain Reviewer env AWS_PROFILE
  ours-fleet explain Reviewer tool Bash
  ours-fleet explain Reviewer /srv/data --json | jq -r .verdict")]
pub struct Explain {
    /// The role
    #[arg(value_name = "NAME")]
    pub name: RoleName,
    /// A path, `HOST[:PORT]`, `env` and a name, or `tool` and a name
    #[arg(value_name = "SUBJECT", num_args = 0..=2)]
    pub subject: Vec<String>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}
