//! From text to a typed [`Fleet`] (01 §1): one spanned tree, variables, merge with provenance,
//! decoding. Every problem of a load is collected; nobody else parses YAML.

pub mod emit;
pub mod model;

mod decode;
mod isolation_block;
mod keys;
mod load;
mod merge;
mod tree;
mod validate;
mod vars;

pub use load::{ConfigSources, LoadOptions, Loaded, SourceText, YamlMode, load};
pub use model::{
    Duration, Fleet, FleetPolicy, Layer, Monitor, Oversee, Permissions, Provenance, Role, Session,
    Unavailable, Worklog,
};
