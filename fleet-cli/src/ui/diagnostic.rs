use fleet_core::diagnostic::{Diagnostic, Severity};

use super::printer::Printer;
use crate::error::CliError;

/// A problem of a fleet file, on one line.
pub fn print_diagnostic(printer: &Printer, diagnostic: &Diagnostic) {
    match diagnostic.severity {
        Severity::Error => printer.error(diagnostic.to_string()),
        Severity::Warning => printer.warn(diagnostic.to_string()),
    }
}

/// An error with its causes and what to do about it. Problems of the fleet files speak for themselves.
pub fn print_error(printer: &Printer, error: &CliError) {
    let diagnostics = error.diagnostics();
    for diagnostic in diagnostics {
        print_diagnostic(printer, diagnostic);
    }
    let errors = diagnostics.iter().filter(|it| it.severity == Severity::Error).count();
    match errors {
        0 => printer.error(error.message()),
        1 => {}
        _ => printer.note(format!("{errors} errors; nothing was touched")),
    }
    for hint in &error.hints {
        printer.hint(hint);
    }
}
