//! What a whole fleet may ask for, and how two answers compare: the rules of `policy:`, the order of
//! policies, and the judgements that `check` and `explain` print.

pub mod check;
pub mod explain;
pub mod order;
pub mod require;

mod reach;
