//! Faults that the product must never have (02 §10).

mod deliver;
mod store;
