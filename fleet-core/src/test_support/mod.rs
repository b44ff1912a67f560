//! Fakes, contract suites and generators for tests of this crate and of the adapters. No I/O either.

pub mod contract;
pub mod fakes;
pub mod scene;
pub mod strategies;
mod sync;
