//! The program as people meet it: every test runs the binary under a throwaway home, with real tmux
//! and a real sandbox. The first module of a test's path is its tier.

#![expect(
    clippy::disallowed_methods,
    reason = "tests run the binary and look at what it left on disk"
)]
#![expect(clippy::expect_used, reason = "a helper that cannot go on fails the test that called it")]

#[macro_use]
#[path = "../../fleet-core/tests/support/skip.rs"]
mod skip;

#[expect(dead_code, reason = "nothing here is tried in memory only")]
#[path = "../../fleet-core/tests/support/cases.rs"]
mod cases;

#[expect(dead_code, reason = "the program uses what its tests do not")]
#[path = "programs/scripted_provider/provider.rs"]
mod scripted_provider;

mod broken;
mod case;
mod docs;
mod e2e;
mod escape;
mod fault;
mod field;
mod property;
mod support;
