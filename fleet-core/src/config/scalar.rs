//! Scalars and their types after the core schema of YAML 1.2. `yes`, `on` and dates are texts.

/// A scalar as written.
#[derive(Debug, Clone)]
pub(super) struct Scalar {
    /// Its text, escapes and folding done.
    pub(super) text: Box<str>,
    /// Whether it is plain; all others are texts.
    plain: bool,
    /// Whether nothing is written there at all.
    pub(super) nothing: bool,
    /// The first variable that was put in.
    pub(super) variable: Option<Box<str>>,
}

/// The type of a scalar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Core<'s> {
    Null,
    Bool(bool),
    /// A whole number that fits.
    Int(i64),
    /// Another number, `.inf` and `.nan` included.
    Float(f64),
    Text(&'s str),
}

impl Scalar {
    pub(super) fn new(text: Box<str>, plain: bool, nothing: bool) -> Self {
        Self { text, plain, nothing, variable: None }
    }

    /// A text in which variables were replaced.
    pub(super) fn substituted(text: String, variable: Option<&str>) -> Self {
        Self { text: text.into(), plain: false, nothing: false, variable: variable.map(Into::into) }
    }

    /// Its type.
    pub(super) fn core(&self) -> Core<'_> {
        if self.plain { plain(&self.text) } else { Core::Text(&self.text) }
    }
}

fn plain(text: &str) -> Core<'_> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Core::Null,
        "true" | "True" | "TRUE" => return Core::Bool(true),
        "false" | "False" | "FALSE" => return Core::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Core::Float(f64::NAN),
        _ => {}
    }
    number(text).unwrap_or(Core::Text(text))
}

fn number(text: &str) -> Option<Core<'_>> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        let infinite = if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY };
        return Some(Core::Float(infinite));
    }
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            let all = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
            let value =
                || i64::from_str_radix(digits, radix).map_or(Core::Float(f64::MAX), Core::Int);
            return all.then(value);
        }
    }
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if unsigned.is_empty() {
        return None;
    }
    if digits(unsigned) {
        if let Ok(value) = text.parse() {
            return Some(Core::Int(value));
        }
        return text.parse().ok().map(Core::Float);
    }
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mantissa_fits =
        digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty());
    let exponent_fits = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    if mantissa_fits && exponent_fits { text.parse().ok().map(Core::Float) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_follow_the_core_schema() {
        for (text, expected) in [
            ("", Core::Null),
            ("~", Core::Null),
            ("NULL", Core::Null),
            ("nUll", Core::Text("nUll")),
            ("True", Core::Bool(true)),
            ("yes", Core::Text("yes")),
            ("on", Core::Text("on")),
            ("0", Core::Int(0)),
            ("-12", Core::Int(-12)),
            ("+12", Core::Int(12)),
            ("007", Core::Int(7)),
            ("0x1F", Core::Int(31)),
            ("0o17", Core::Int(15)),
            ("0x", Core::Text("0x")),
            ("1_000", Core::Text("1_000")),
            ("1.5", Core::Float(1.5)),
            (".5", Core::Float(0.5)),
            ("1.", Core::Float(1.0)),
            ("1e3", Core::Float(1000.0)),
            ("-.inf", Core::Float(f64::NEG_INFINITY)),
            (".", Core::Text(".")),
            ("e5", Core::Text("e5")),
            ("1e", Core::Text("1e")),
            ("-", Core::Text("-")),
            ("1.2.3", Core::Text("1.2.3")),
            ("inf", Core::Text("inf")),
            ("2026-11-29", Core::Text("2026-11-29")),
        ] {
            assert_eq!(plain(text), expected, "{text:?}");
        }
        assert!(matches!(plain("99999999999999999999"), Core::Float(value) if value > 9e19));
        assert!(matches!(plain(".nan"), Core::Float(value) if value.is_nan()));
    }

    #[test]
    fn a_quoted_or_substituted_scalar_is_a_text() {
        assert_eq!(Scalar::new("5".into(), false, false).core(), Core::Text("5"));
        assert_eq!(Scalar::substituted("5".into(), Some("a")).core(), Core::Text("5"));
    }
}
