//! Properties of 01 §6. A body takes the function under test, so that `broken/` can hand it a wrong one.

pub(crate) mod config;
mod explain;
pub(crate) mod fleets;
pub(crate) mod forbidden;
mod json_edit;
mod network;
pub(crate) mod order;
pub(crate) mod permissions_claude;
mod permissions_codex;
mod require;
pub(crate) mod resolve;
mod schema;
pub(crate) mod screens;
mod text;

use fleet_core::diagnostic::Diagnostic;
use fleet_core::isolation::IsolationPolicy;
use fleet_core::test_support::scene::Scene;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

/// What a resolution of a scene says.
pub(crate) type Verdict = Result<IsolationPolicy, Vec<Diagnostic>>;

/// The function under test; `broken/` gives wrong ones to the same properties.
pub(crate) type Resolver = fn(&Scene) -> Verdict;

/// Runs a property and returns the smallest counter-example as text. The seed is fixed, and
/// `PROPTEST_CASES` raises the number of cases.
pub(crate) fn check<S: Strategy>(
    strategy: &S,
    property: impl Fn(S::Value) -> Result<(), TestCaseError>,
) -> Result<(), String>
where
    S::Value: std::fmt::Debug,
{
    let config =
        Config { failure_persistence: None, max_global_rejects: 100_000, ..Config::default() };
    let cases = config.cases.max(500);
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config { cases, ..config }, rng);
    runner.run(strategy, property).map_err(|error| match error {
        TestError::Fail(reason, _) => reason.to_string(),
        TestError::Abort(reason) => panic!("the generator gives too little: {reason}"),
    })
}

/// Fails the test with the counter-example.
pub(crate) fn holds(result: Result<(), String>) {
    if let Err(counter_example) = result {
        panic!("counter-example: {counter_example}");
    }
}
