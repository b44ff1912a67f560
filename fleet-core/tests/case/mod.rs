mod closure;
mod config;
mod config_isolation;
mod config_later;
mod config_role;
mod isolation;
mod select;
mod weakness;
