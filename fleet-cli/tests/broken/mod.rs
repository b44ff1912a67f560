//! Properties given a wrong function: each must find the counter-example.

mod plan;
