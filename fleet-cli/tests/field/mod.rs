//! Field reports: kinds of faults that people met with other tools, tried on ours.

mod consoles;
mod names;
mod sandbox;
mod secrets;
mod systemd;
mod text;
mod worktrees;
