use std::fmt::Debug;

/// A source of values that nobody can guess.
pub trait IdSource: Send + Sync + Debug {
    /// A random UUID (version 4) in lower-case text.
    fn uuid(&self) -> String;

    /// 32 random bytes as 64 lower-case hexadecimal digits.
    fn token(&self) -> String;
}
