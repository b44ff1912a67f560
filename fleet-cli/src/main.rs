//! The `ours-fleet` command.

fn main() {}
