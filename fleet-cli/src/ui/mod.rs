//! All output. Commands hand values to a [`Printer`]; nothing else writes to a stream.

mod diagnostic;
mod json;
mod printer;
mod table;

pub use diagnostic::{print_diagnostic, print_error};
pub use json::{SCHEMA_VERSION, document};
pub use printer::{Io, Printer, Tone, printable};
pub use table::Table;
