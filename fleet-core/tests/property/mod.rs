pub(crate) mod forbidden;
pub(crate) mod resolve;
