//! Properties given a wrong function: each must find the counter-example.

mod config;
mod isolation;
mod permissions_claude;
mod screens;
