//! Which backend, and what happens when none is usable (01 §2.10).
