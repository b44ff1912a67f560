//! What the documentation points at works.

mod fleet_files;
mod programs;
mod stranger;
