//! What service managers are told of runners: names and texts of units. Pure.

pub mod systemd;
