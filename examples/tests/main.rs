//! Runs every example and loads every fleet file of this directory.

#![expect(clippy::expect_used, reason = "a test may stop at the first surprise")]

#[path = "../custom_backend.rs"]
#[expect(dead_code, reason = "its main is not called here")]
mod custom_backend;
#[path = "../custom_harness.rs"]
#[expect(dead_code, reason = "its main is not called here")]
mod custom_harness;
#[path = "../custom_supervisor.rs"]
#[expect(dead_code, reason = "its main is not called here")]
mod custom_supervisor;
#[path = "../dry_run.rs"]
#[expect(dead_code, reason = "its main is not called here")]
mod dry_run;
#[path = "../embed_validate.rs"]
#[expect(dead_code, reason = "its main is not called here")]
mod embed_validate;

mod docs;
