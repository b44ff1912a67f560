//! Tests of the crate on real kernels, trees and sandboxes, by tier.
#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "tests make their own trees and look at them without the probe under test; helpers \
              of tests end them"
)]

#[path = "../../fleet-core/tests/support/cases.rs"]
mod cases;

mod broken {
    mod launch_file;
}
mod contract {
    mod isolation;
    mod limits;
    mod path_probe;
}
mod escape {
    mod attest;
    mod chains;
    mod files;
    mod identity;
    mod kills;
    mod lifetime;
    mod limits;
    mod matrix;
    mod network;
    mod podman;
    mod system_calls;
    mod terminal;
}
mod field {
    mod litter;
    mod secrets;
    mod trial;
}
mod golden {
    pub(crate) mod argv;
    mod landlock;
    pub(crate) mod podman;
}
mod integration {
    mod attest;
    mod git;
    mod landlock;
    mod launcher;
    mod limits;
    mod listing;
    pub(crate) mod podman;
    mod relay;
    mod scope;
    mod stop;
}
mod property {
    pub(crate) mod launch_file;
    mod paths;
    mod plan;
    mod podman;
}
mod shim {
    mod flags;
}
mod support;
