//! Tests of the core through its public API. The first module of a test's path is its tier.

#![expect(clippy::disallowed_methods, reason = "a test reads the folder of the tests")]
#![expect(clippy::expect_used, reason = "a helper of a test may end it")]

#[expect(dead_code, reason = "nothing here writes real files")]
#[path = "support/cases.rs"]
mod cases;
#[path = "support/codex.rs"]
mod codex;
#[path = "support/fleet.rs"]
mod fleet;

#[path = "support/explain.rs"]
mod explain;
#[path = "support/schema.rs"]
mod schema;

#[path = "support/claude.rs"]
mod claude;

mod broken;
mod case;
mod contract;
mod docs;
mod field;
mod golden;
mod property;
