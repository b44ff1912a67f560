//! Values that must not be shown.

use std::fmt;

/// What stands in place of a hidden value.
pub const MARKER: &str = "<redacted>";

/// A value that prints as [`MARKER`] and has to be taken out on purpose.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Redacted<T>(T);

impl<T> Redacted<T> {
    /// Hides a value.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// The value itself.
    ///
    /// # Security
    /// The result must not reach argv, a log, a plan, an error text or a world-readable file.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Redacted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MARKER)
    }
}

/// Whether a key names something whose value must be hidden wherever it stands (01 §1.18).
pub fn is_secret_key(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    ["secret", "token", "password", "authorization", "apikey", "api_key", "api-key"]
        .iter()
        .any(|part| key.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_values_do_not_print() {
        let hidden = Redacted::new("s3cr3t".to_owned());
        assert_eq!(format!("{hidden:?}"), MARKER);
        assert_eq!(hidden.expose(), "s3cr3t");
    }

    #[test]
    fn secret_keys_are_recognised_in_any_case() {
        for key in
            ["API_TOKEN", "my-Secret", "Authorization", "OPENAI_API_KEY", "api-key", "PASSWORD"]
        {
            assert!(is_secret_key(key), "{key}");
        }
        for key in ["model", "argv", "keyboard"] {
            assert!(!is_secret_key(key), "{key}");
        }
    }
}
