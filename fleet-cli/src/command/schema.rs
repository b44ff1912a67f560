//! `schema`: the JSON Schema of a fleet file. Needs no fleet, no home and no machine.

use fleet_core::config::{SchemaOf, schema};
use fleet_core::harness::Harnesses;

use crate::args;
use crate::ui::Printer;

/// Prints it.
pub fn run(printer: &Printer, args: &args::Schema) {
    let of = if args.drop_in { SchemaOf::DropIn } else { SchemaOf::Base };
    printer.json(&schema(of, &Harnesses::built_in()));
}
