//! Faults that users of such tools hit (02 §10), tried through the program.

mod console;
mod container;
mod control;
mod supervision;
