//! Properties of 01 §6. A body takes the function under test, so that `broken/` can hand it a wrong one.

pub(crate) mod briefing;
pub(crate) mod config;
pub(crate) mod denied_reads;
pub(crate) mod environment;
mod explain;
pub(crate) mod fleets;
pub(crate) mod forbidden;
mod generators;
mod json_edit;
mod launches;
mod models;
mod network;
pub(crate) mod order;
pub(crate) mod permissions_claude;
mod permissions_codex;
mod require;
pub(crate) mod resolve;
mod schema;
pub(crate) mod screens;

use crate::cases;
pub(crate) use crate::cases::holds;
use fleet_core::diagnostic::Diagnostic;
use fleet_core::isolation::IsolationPolicy;
use fleet_core::test_support::scene::Scene;
use proptest::prelude::*;

/// What a resolution of a scene says.
pub(crate) type Verdict = Result<IsolationPolicy, Vec<Diagnostic>>;

/// The function under test; `broken/` gives wrong ones to the same properties.
pub(crate) type Resolver = fn(&Scene) -> Verdict;

/// Runs a property over values in memory and returns the smallest counter-example as text.
pub(crate) fn check<S: Strategy>(
    strategy: &S,
    property: impl Fn(S::Value) -> Result<(), TestCaseError>,
) -> Result<(), String>
where
    S::Value: std::fmt::Debug,
{
    cases::run(cases::in_memory(), strategy, property)
}
