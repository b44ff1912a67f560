//! Tests of the core. The first module of a test's path is its tier.

mod broken;
mod case;
mod contract;
mod property;
