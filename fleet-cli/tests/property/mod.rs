//! Properties of what the program prints (01 §6).

pub(crate) mod plan;
