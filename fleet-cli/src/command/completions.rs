//! `completions`: a static script; role names come from the hidden `_roles`.

use clap_complete::{Shell, generate};

use crate::args::{self, PROGRAM, ShellName};
use crate::ui::Printer;

/// Verbs that take role names.
const ROLE_VERBS: &[&str] = &[
    "explain",
    "up",
    "down",
    "restart",
    "force-restart",
    "status",
    "peek",
    "logs",
    "net",
    "attach",
    "send",
];

/// The script for a shell.
pub fn script(shell: ShellName) -> String {
    let mut bytes = Vec::new();
    let mut command = visible();
    let kind = match shell {
        ShellName::Bash => Shell::Bash,
        ShellName::Zsh => Shell::Zsh,
        ShellName::Fish => Shell::Fish,
    };
    generate(kind, &mut command, PROGRAM, &mut bytes);
    let script = String::from_utf8_lossy(&bytes).into_owned();
    match shell {
        ShellName::Bash => script + &bash(),
        ShellName::Zsh => zsh(&script),
        ShellName::Fish => script + &fish(),
    }
}

/// The parser without its hidden commands.
fn visible() -> clap::Command {
    let full = args::command();
    clap::Command::new(PROGRAM)
        .version(env!("CARGO_PKG_VERSION"))
        .args(full.get_arguments().cloned())
        .subcommands(full.get_subcommands().filter(|sub| !sub.is_hide_set()).cloned())
}

/// Wraps the generated function: after a verb that takes roles, their names are offered as well.
fn bash() -> String {
    format!(
        r#"
_ours_fleet_with_roles() {{
    local word current="${{COMP_WORDS[COMP_CWORD]}}"
    _ours-fleet "$@"
    [[ "$current" == -* ]] && return
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$word" in
            {})
                COMPREPLY=($(compgen -W "$("${{COMP_WORDS[0]}}" _roles 2>/dev/null)" -- "$current"))
                return
                ;;
        esac
    done
}}
complete -F _ours_fleet_with_roles -o nosort -o bashdefault -o default {PROGRAM}
"#,
        ROLE_VERBS.join("|")
    )
}

/// Positional arguments called NAME complete to role names.
fn zsh(script: &str) -> String {
    let mut lines = String::with_capacity(script.len() + 200);
    for line in script.lines() {
        let role = line.contains("::name -- ")
            || line.contains(":name -- ")
            || line.contains("::names -- ");
        if role {
            lines.push_str(&line.replace(":_default'", ":_ours_fleet_roles'"));
        } else {
            lines.push_str(line);
        }
        lines.push('\n');
        if line.starts_with("autoload") {
            lines.push_str(
                "\n_ours_fleet_roles() {\n    local -a roles\n    roles=(${(f)\"$(ours-fleet _roles 2>/dev/null)\"})\n    compadd -a roles\n}\n",
            );
        }
    }
    lines
}

fn fish() -> String {
    format!(
        "\ncomplete -c {PROGRAM} -n \"__fish_seen_subcommand_from {}\" -f -a \"({PROGRAM} _roles 2>/dev/null)\"\n",
        ROLE_VERBS.join(" ")
    )
}

/// Prints the script.
pub fn run(printer: &Printer, args: &args::Completions) {
    printer.raw(&script(args.shell));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_with_roles_completes_them() {
        let command = args::command();
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let takes_roles = sub
                .get_positionals()
                .any(|arg| arg.get_value_names().is_some_and(|names| names[0] == "NAME"));
            assert_eq!(takes_roles, ROLE_VERBS.contains(&sub.get_name()), "{}", sub.get_name());
        }
        let zsh = script(ShellName::Zsh);
        assert!(zsh.matches(":_ours_fleet_roles'").count() >= ROLE_VERBS.len(), "{zsh}");
        for shell in [ShellName::Bash, ShellName::Fish] {
            assert!(script(shell).contains("_roles 2>/dev/null"));
        }
        assert!(!zsh.contains("_pane"), "hidden commands are not offered");
    }
}
