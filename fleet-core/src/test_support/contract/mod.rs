//! One suite per port, run against the fake and the real adapter.

pub mod path_probe;
