//! In-memory stand-ins for the ports.
