mod config;
mod isolation;
