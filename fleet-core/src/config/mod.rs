//! From text to a typed [`Fleet`] (01 §1): one spanned tree, variables, merge with provenance,
//! decoding. Every problem of a load is collected; nobody else parses YAML.

pub mod emit;
pub mod keys;
pub mod model;

mod decode;
mod duration;
mod isolation_block;
mod isolation_grammar;
mod load;
mod merge;
mod models;
mod options;
mod owner_channel;
mod provenance;
mod require;
mod role_env;
mod role_keys;
mod role_later;
mod scalar;
mod schedules;
mod schema;
mod tree;
mod unavailable;
mod validate;
mod vars;

pub use duration::DurationError;
pub use load::{ConfigSources, LoadOptions, Loaded, SourceText, YamlMode, load};
pub use model::{
    Duration, Fleet, FleetPolicy, Layer, Monitor, Oversee, Permissions, Provenance, Role, Session,
    Unavailable, Worklog,
};
pub use role_env::is_reserved_variable;
pub use schema::{SchemaOf, schema};
