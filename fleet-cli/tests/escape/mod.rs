//! What a sandboxed program tries against the fleet that runs it.

mod covers;
mod hook;
mod modes;
mod planted;
mod survivor;
