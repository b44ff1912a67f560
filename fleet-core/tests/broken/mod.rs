//! Properties given a wrong function: each must find the counter-example.

mod config;
mod isolation;
mod order;
mod permissions_claude;
mod screens;
