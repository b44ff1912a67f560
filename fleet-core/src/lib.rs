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
//!
//! A program that embeds this crate needs little of it: [`load`] makes a [`Fleet`] of text, a
//! [`Judge`] says what each [`Role`] may do and why not more, and [`Harnesses::register`] adds an
//! agent program without a change of this crate.
//!
//! ```
//! use fleet_core::{ConfigSources, Harnesses, LoadOptions, World, load};
//!
//! let world = World::of_account("op", 1000, "/home/op")?;
//! let harnesses = Harnesses::built_in();
//! let text = "roles: { writer: { harness: command, harness_options: { argv: [cat] }, mision: x } }";
//! let sources = ConfigSources::base_only("/home/op/fleet.yaml", text);
//! let loaded = load(&sources, &LoadOptions::new(&world.home()?, &harnesses));
//! assert!(loaded.fleet.is_none());
//! assert!(loaded.diagnostics[0].to_string().starts_with("/home/op/fleet.yaml:1:"));
//! assert!(loaded.diagnostics[0].to_string().contains("mission"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod attest;
pub mod briefing;
pub mod config;
pub mod delivery;
pub mod diagnostic;
pub mod environment;
pub mod error_chain;
pub mod harness;
pub mod id;
pub mod isolation;
mod judge;
pub mod launch;
pub mod layout;
pub mod lifecycle;
pub mod limits;
pub mod path;
pub mod permissions;
pub mod plan;
pub mod policy;
pub mod port;
pub mod programs;
pub mod redact;
pub mod run_marker;
pub mod status;
pub mod units;
pub mod world;

#[cfg(feature = "test-support")]
pub mod test_support;

pub use config::{ConfigSources, Fleet, LoadOptions, Loaded, Role, SourceText, YamlMode, load};
pub use diagnostic::{Diagnostic, Severity};
pub use harness::{Harness, Harnesses};
pub use isolation::{IsolationPolicy, Mount, MountMode};
pub use judge::Judge;
pub use layout::{FleetLayout, Homes};
pub use path::LexicalPath;
pub use plan::{AssessRequest, Assessment, assess};
pub use port::{IsolationBackend, PathProbe, Supervisor};
pub use world::World;
