//! `man`: a manual page, made from the parser. Needs no fleet, no home and no machine.

use clap_mangen::Man;

use crate::args::{self, PROGRAM};
use crate::error::CliError;
use crate::ui::Printer;

/// Prints the page of the program, or of one command.
///
/// # Errors
/// There is no such command.
pub fn run(printer: &Printer, args: &args::Man) -> Result<(), CliError> {
    let page = page(args.command.as_deref()).ok_or_else(|| {
        let names: Vec<&str> = args::GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let asked = args.command.as_deref().unwrap_or_default();
        CliError::usage(format!("there is no command `{asked}`: one of {}", names.join(", ")))
    })?;
    printer.raw(&page);
    Ok(())
}

/// A page in roff, of a command that help shows.
fn page(command: Option<&str>) -> Option<String> {
    let mut whole = args::command();
    // Options of the whole program become those of each command.
    whole.build();
    let subject = match command {
        None => whole,
        Some(name) => {
            let found = whole.find_subcommand(name).filter(|found| !found.is_hide_set())?;
            found.clone().name(format!("{PROGRAM}-{name}")).bin_name(format!("{PROGRAM} {name}"))
        }
    };
    let mut text = Vec::new();
    let version = format!("{PROGRAM} {}", env!("CARGO_PKG_VERSION"));
    Man::new(subject).source(version).render(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_its_options_and_examples() {
        let whole = page(None).expect("a page");
        for (_, names) in args::GROUPS {
            for name in *names {
                let escaped = name.replace('-', "\\-");
                assert!(
                    whole.contains(&format!("ours\\-fleet\\-{escaped}(1)")),
                    "{name}:\n{whole}"
                );
                let own = page(Some(name)).expect("a page");
                assert!(own.contains(&format!("ours\\-fleet\\-{escaped}")), "{name}:\n{own}");
                assert!(
                    own.contains("\\-\\-configuration") && !own.contains("\\fB\\-\\-version"),
                    "{own}"
                );
                assert!(own.contains(".SH OPTIONS") && own.contains("Examples:"), "{name}:\n{own}");
            }
        }
        assert!(whole.contains("Exit codes:"), "{whole}");
        assert_eq!(page(Some("_pane")), None);
        assert_eq!(page(Some("nothing")), None);
    }
}
