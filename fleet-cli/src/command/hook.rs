//! `_hook`: what an agent program runs at its events. It prints a decision or nothing at all, and never
//! fails: an agent is not stopped because its fleet is away.

use fleet_adapters::runner::hook::run_hook;

use crate::args;
use crate::ui::Printer;

/// Tells the runner what happened, or asks it; prints the decision where there is one.
pub fn run(printer: &Printer, args: &args::Hook) {
    if let Some(text) = run_hook(&args.socket, args.event, std::io::stdin()) {
        printer.raw(&text);
    }
}
