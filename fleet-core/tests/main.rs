//! Tests of the core. The first module of a test's path is its tier.

#![expect(clippy::expect_used, reason = "a helper that cannot go on fails the test that called it")]

mod broken;
mod case;
mod contract;
mod property;
