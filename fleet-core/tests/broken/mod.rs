//! Properties given a wrong function: each must find the counter-example.

mod config;
mod isolation;
mod screens;
mod permissions_claude;
