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

/// An error with its causes and what to do about it.
pub fn print_error(printer: &Printer, error: &CliError) {
    for diagnostic in error.diagnostics() {
        print_diagnostic(printer, diagnostic);
    }
    printer.error(error.message());
    for hint in &error.hints {
        printer.hint(hint);
    }
}
