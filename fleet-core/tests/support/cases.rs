//! How many cases a property is tried with: one switch for the tests of every crate.
//!
//! `FLEET_PROPTEST=thorough` is the long run of `scripts/thorough.sh`; `FLEET_PROPTEST_SEED=N` draws
//! other cases than the usual ones.

/// Cases where everything is in memory.
pub(crate) fn in_memory() -> u32 {
    if is_thorough() { 100_000 } else { 1000 }
}

/// Cases that write real files.
pub(crate) fn real_files() -> u32 {
    if is_thorough() { 1000 } else { 100 }
}

fn is_thorough() -> bool {
    match std::env::var("FLEET_PROPTEST") {
        Err(_) => false,
        Ok(word) if word == "thorough" => true,
        Ok(word) => panic!("FLEET_PROPTEST: `{word}` is not known; write `thorough`, or nothing"),
    }
}

/// The settings for so many cases.
pub(crate) fn config(cases: u32) -> proptest::test_runner::Config {
    // Always the same cases, unless others are asked for.
    let seed = std::env::var("FLEET_PROPTEST_SEED").map_or(1, |number| {
        number.parse().unwrap_or_else(|_| panic!("FLEET_PROPTEST_SEED: `{number}` is no number"))
    });
    proptest::test_runner::Config {
        cases,
        rng_seed: proptest::test_runner::RngSeed::Fixed(seed),
        failure_persistence: None,
        max_global_rejects: cases.max(100_000),
        ..Default::default()
    }
}

/// Tries a property and gives the smallest counter-example as text.
///
/// # Panics
/// If the generator throws away too much.
pub(crate) fn run<S: proptest::strategy::Strategy>(
    cases: u32,
    strategy: &S,
    property: impl Fn(S::Value) -> Result<(), proptest::test_runner::TestCaseError>,
) -> Result<(), String>
where
    S::Value: std::fmt::Debug,
{
    use proptest::test_runner::{TestError, TestRunner};
    let mut runner = TestRunner::new(config(cases));
    runner.run(strategy, property).map_err(|error| match error {
        TestError::Fail(reason, value) => format!("{reason}\nminimal input: {value:?}"),
        TestError::Abort(reason) => panic!("the generator gives too little: {reason}"),
    })
}

/// Fails the test with the counter-example.
pub(crate) fn holds(result: Result<(), String>) {
    if let Err(counter_example) = result {
        panic!("counter-example: {counter_example}");
    }
}
