//! What was typed, as data. No I/O, no defaults from the environment, no look at the machine.

mod act;
mod check;
mod hidden;
mod look;
mod setup;

use std::ffi::OsString;
use std::fmt::Write as _;

use camino::Utf8PathBuf;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

pub use act::{Down, ForceRestart, Restart, Send, Up, WaitStage};
pub use check::{Check, CheckFormat};
pub use hidden::{Hook, Listen, Pane, Roles, Run};
pub use look::{Attach, Explain, Logs, Ls, Net, Peek, Status};
pub use setup::{Completions, Config, Doctor, Init, Man, Schema, ShellName, Version, YamlModeArg};

use crate::exit::ExitStatus;

/// The name of the program.
pub const PROGRAM: &str = "ours-fleet";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = PROGRAM,
    version,
    about = "Run a fleet of long-lived AI coding agents on your own machine from one fleet.yaml",
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
    /// The verb.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
pub struct Global {
    /// Use FILE in place of ~/fleet.yaml (~/fleet.d/*.yaml is still merged)
    #[arg(short = 'c', long = "configuration", value_name = "FILE", global = true)]
    pub configuration: Option<Utf8PathBuf>,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Prepare this machine: state directory and supervisor
    Init(Init),
    /// Show what the fleet file means, before anything is started
    Config(Config),
    /// Judge the fleet files for CI, by their text alone
    Check(Check),
    /// Say what a role can reach, why, and which line says so
    Explain(Explain),
    /// Check this machine and the fleet; a remedy for each problem
    Doctor(Doctor),
    /// Start what is configured and not running
    Up(Up),
    /// Stop roles, and keep them stopped until the next `up`
    Down(Down),
    /// Stop and start roles; their conversations go on
    Restart(Restart),
    /// Stop and start roles with fresh conversations
    ForceRestart(ForceRestart),
    /// List the running roles
    Ls(Ls),
    /// Show the state of the fleet, or everything about one role
    Status(Status),
    /// Print the last lines of a role's console
    Peek(Peek),
    /// Show a role's log
    Logs(Logs),
    /// Show the connections of a role
    Net(Net),
    /// Connect this terminal to a role's console
    Attach(Attach),
    /// Type a text or press a key in a role's console
    Send(Send),
    /// Print version, build and what this build can do
    Version(Version),
    /// Print the JSON Schema of fleet.yaml, for editors
    Schema(Schema),
    /// Print a completion script for a shell
    Completions(Completions),
    /// Print a page for `man`
    Man(Man),
    /// The runner of one role
    #[command(name = "_run", hide = true)]
    Run(Run),
    /// The launcher in a role's console
    #[command(name = "_pane", hide = true)]
    Pane(Pane),
    /// The part of the launcher that enters a sandbox's network
    #[command(name = "_listen", hide = true)]
    Listen(Listen),
    /// The hook of an agent program
    #[command(name = "_hook", hide = true)]
    Hook(Hook),
    /// Role names, for completion
    #[command(name = "_roles", hide = true)]
    Roles(Roles),
}

/// The verbs in the order in which a newcomer needs them.
pub const GROUPS: &[(&str, &[&str])] = &[
    ("Begin", &["init", "config", "check", "explain", "doctor"]),
    ("Run", &["up", "down", "restart", "force-restart"]),
    ("Look", &["ls", "status", "peek", "logs", "net"]),
    ("Talk", &["attach", "send"]),
    ("About this program", &["version", "schema", "completions", "man"]),
];

const FIRST_STEPS: &str = "\
First steps:
  1. write ~/fleet.yaml:
       roles:
         Hello:
           harness: command
           harness_options:
             argv: [sh, -c, 'cat \"$OURS_FLEET_BRIEFING\"; exec sh']
           isolation: { network: deny }
  2. ours-fleet config         what it means
  3. ours-fleet up             start it
  4. ours-fleet attach Hello   its console; leave with Ctrl-b d";

/// The parser, with grouped commands in its help.
pub fn command() -> clap::Command {
    let command = Cli::command();
    let mut groups = String::new();
    for (heading, verbs) in GROUPS {
        groups.push_str(heading);
        groups.push_str(":\n");
        for verb in *verbs {
            let about = command
                .find_subcommand(verb)
                .and_then(clap::Command::get_about)
                .map(ToString::to_string)
                .unwrap_or_default();
            let _ = writeln!(groups, "  {verb:<14} {about}");
        }
        groups.push('\n');
    }
    command
        .help_template(format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}{{after-help}}"
        ))
        .after_help(format!(
            "{FIRST_STEPS}\n\nExit codes:\n{}\n\n`ours-fleet COMMAND --help` explains one command with examples.",
            ExitStatus::help()
        ))
}

/// Parses a command line.
///
/// # Errors
/// clap's own error: a problem with the command line, or a request for help or the version.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut command = command();
    let matches = command.try_get_matches_from_mut(args)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Cli, clap::Error> {
        parse(std::iter::once(PROGRAM).chain(words.iter().copied()).map(OsString::from))
    }

    #[test]
    fn the_parser_is_consistent_and_every_verb_is_in_one_group() {
        command().debug_assert();
        let mut grouped: Vec<&str> =
            GROUPS.iter().flat_map(|(_, verbs)| verbs.iter().copied()).collect();
        grouped.sort_unstable();
        let command = command();
        let mut verbs: Vec<&str> = command
            .get_subcommands()
            .filter(|sub| !sub.is_hide_set())
            .map(clap::Command::get_name)
            .collect();
        verbs.sort_unstable();
        assert_eq!(grouped, verbs);
    }

    #[test]
    fn every_verb_is_reserved_as_a_role_name() {
        for sub in command().get_subcommands().filter(|sub| !sub.is_hide_set()) {
            assert!(
                sub.get_name().parse::<fleet_core::id::RoleName>().is_err(),
                "{}",
                sub.get_name()
            );
        }
    }

    #[test]
    fn configuration_is_taken_before_and_after_the_verb() {
        for words in [
            &["-c", "x.yaml", "up"][..],
            &["up", "-c", "x.yaml"],
            &["up", "A", "--configuration=x.yaml"],
        ] {
            let cli = parsed(words).expect("valid");
            assert_eq!(
                cli.global.configuration.as_deref().map(camino::Utf8Path::as_str),
                Some("x.yaml")
            );
        }
    }

    #[test]
    fn bad_role_names_are_refused_by_the_parser() {
        for verb in ["up", "down", "status", "peek", "attach", "send", "logs", "restart"] {
            for name in ["../x", "a.b", "a:b", "=x", "$1", "", " a", "up"] {
                assert!(parsed(&[verb, name]).is_err(), "{verb} {name:?}");
            }
        }
    }

    #[test]
    fn text_that_looks_like_an_option_needs_a_separator() {
        assert!(parsed(&["send", "A", "-n foo"]).is_err());
        let Command::Send(send) =
            parsed(&["send", "A", "--", "-n foo", "--"]).expect("valid").command
        else {
            panic!("not send")
        };
        assert_eq!(send.text, ["-n foo", "--"]);
    }
}
