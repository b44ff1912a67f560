//! Tests of the adapters on the real machine. The first module of a test's path is its tier.
#![expect(clippy::disallowed_methods, reason = "tests prepare files and processes of their own")]
#![expect(clippy::expect_used, reason = "a test may fail where it stands")]

#[macro_use]
mod support;

mod case;
mod contract;
mod fault;
mod integration;
mod property;
