//! One file a verb. A command gets an [`App`](crate::app::App) and gives back how it ended.

pub mod attach;
pub mod check;
pub mod completions;
pub mod config;
pub mod control;
pub mod doctor;
pub mod down;
pub mod explain;
pub mod hook;
pub mod init;
pub mod logs;
pub mod ls;
pub mod man;
pub mod net;
pub mod outcome;
pub mod peek;
pub mod restart;
pub mod roles;
pub mod run;
pub mod schema;
pub mod send;
pub mod status;
pub mod target;
pub mod up;
pub mod version;
