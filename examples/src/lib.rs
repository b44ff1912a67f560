//! Examples of embedding `fleet-core`. Each file beside `src/` is a program of its own:
//!
//! | Program | Shows |
//! |---|---|
//! | `embed_validate` | load a fleet file from text and print every problem |
//! | `custom_harness` | add an agent program of your own |
//! | `custom_backend` | put something else than a built-in sandbox around an agent |
//! | `custom_supervisor` | keep runners alive with something else than systemd |
//! | `stranger/` | a crate of its own: judge the fleet file of a real machine, in 30 lines |
//! | `dry_run` | resolve what a role may touch, against a file system that does not exist |
//!
//! Fleet files to start from are in `claude-code/`, `codex/`, `mixed/` and `other-agents/`; those of the
//! first look in `quickstart/`.
//!
//! Run one with `cargo run -p fleet-examples --example dry_run`. Tests in `tests/` run all of them
//! and load every fleet file of this directory.
