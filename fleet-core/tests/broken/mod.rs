//! Properties given a wrong function: each must find the counter-example.

mod briefing;
mod config;
mod denied_reads;
mod environment;
mod isolation;
mod order;
mod permissions_claude;
mod screens;
