//! One suite per port, run against the fake and the real adapter.
//!
//! A suite is a set of functions, each one clause of the contract. What the port itself cannot do, such
//! as making a process, the caller provides by a `…Subject`. They panic where the contract is broken.

pub mod clock;
pub mod exec;
pub mod isolation;
pub mod limits;
pub mod path_probe;
pub mod process_table;
pub mod store;
pub mod supervisor;
pub mod tmux;
pub mod watch;

/// Turns the functions of a suite into tests: `contract_tests!(make_subject => suite: first, second)`,
/// with `blocking` in front for a suite of plain functions. `make_subject` is called, without
/// arguments, for each test.
#[macro_export]
macro_rules! contract_tests {
    ($subject:ident => $suite:ident: $($case:ident),+ $(,)?) => {
        $(
            #[tokio::test]
            async fn $case() {
                $crate::test_support::contract::$suite::$case(&$subject()).await;
            }
        )+
    };
    (blocking $subject:ident => $suite:ident: $($case:ident),+ $(,)?) => {
        $(
            #[test]
            fn $case() {
                $crate::test_support::contract::$suite::$case(&$subject());
            }
        )+
    };
}
