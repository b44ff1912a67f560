//! `fleet-core` decides what an AI coding agent of a fleet may do, how it starts and what happens
//! next.
//!
//! Everything here is pure: values come in, values go out. No file, process, environment, clock,
//! network or random source is touched; the world is asked through the [`port`] traits, and what
//! should be done is returned as data. Adapters for the real machine live in `fleet-adapters` and
//! `fleet-sandbox`, the command line in `fleet-cli`.
//!
//! The walk of a fleet file: [`config`] turns text into a typed [`config::Fleet`], [`isolation`]
//! resolves what each role may touch, a [`harness`] says how its program starts, [`launch`] is the
//! result as data, and [`lifecycle`] decides what follows each exit.

#![forbid(unsafe_code)]

pub mod briefing;
pub mod config;
pub mod delivery;
pub mod diagnostic;
pub mod environment;
pub mod error_chain;
pub mod harness;
pub mod id;
pub mod isolation;
pub mod launch;
pub mod layout;
pub mod lifecycle;
pub mod path;
pub mod permissions;
pub mod plan;
pub mod policy;
pub mod port;
pub mod redact;
pub mod run_marker;
pub mod status;
pub mod world;

#[cfg(feature = "test-support")]
pub mod test_support;
