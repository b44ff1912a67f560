//! The small grammars of the isolation block: numbers of processors, sizes, secrets.

use crate::isolation::Cpu;

/// `^(\d+(\.\d+)?|\.\d+)$`, more than 0; what lies below a thousandth is dropped.
pub(super) fn parse_cpu(text: &str) -> Option<Cpu> {
    let (whole, fraction) = match text.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None if text.is_empty() => return None,
        None => (text, ""),
    };
    if !(whole.bytes().chain(fraction.bytes())).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let thousandths: u64 = format!("{fraction:0<3}")[..3].parse().ok()?;
    let millis = whole.checked_mul(1000)?.checked_add(thousandths)?;
    (1..=1_000_000_000).contains(&millis).then_some(Cpu { millis })
}

/// `^[1-9]\d*[KMGTPE]?$` in any case, in powers of 1024; what does not fit is the largest number.
pub(super) fn parse_memory(text: &str) -> Option<u64> {
    let last = text.bytes().last()?.to_ascii_uppercase();
    let (number, power) = match b"KMGTPE".iter().position(|&unit| unit == last) {
        Some(power) => (&text[..text.len() - 1], power + 1),
        None => (text, 0),
    };
    if number.starts_with('0') || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if number.is_empty() {
        return None;
    }
    let factor = (0..power).try_fold(1u64, |factor, _| factor.checked_mul(1024))?;
    Some(number.parse::<u64>().ok().and_then(|it| it.checked_mul(factor)).unwrap_or(u64::MAX))
}

/// Splits at the one unescaped colon and undoes the escapes `\:` and `\\`. `None`: a second
/// unescaped colon, another escape, or an escape at the end.
pub(super) fn split_secret(text: &str) -> Option<(String, Option<String>)> {
    let (mut first, mut second) = (String::new(), None::<String>);
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let character = match character {
            '\\' => characters.next().filter(|next| matches!(next, ':' | '\\'))?,
            ':' if second.is_some() => return None,
            ':' => {
                second = Some(String::new());
                continue;
            }
            other => other,
        };
        second.as_mut().unwrap_or(&mut first).push(character);
    }
    Some((first, second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_positive_decimals() {
        for (text, millis) in
            [("1", 1000), ("1.5", 1500), (".5", 500), ("0.001", 1), ("2.0009", 2000)]
        {
            assert_eq!(parse_cpu(text), Some(Cpu { millis }), "{text}");
        }
        for text in
            ["", "0", "0.0001", "-1", "+1", "1.", ".", "1e3", "lots", "1.5.5", "99999999999"]
        {
            assert_eq!(parse_cpu(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_are_digits_and_a_unit() {
        for (text, bytes) in [
            ("1", 1),
            ("64M", 64 << 20),
            ("2g", 2 << 30),
            ("1E", 1 << 60),
            ("99999E", u64::MAX),
            ("99999999999999999999999", u64::MAX),
        ] {
            assert_eq!(parse_memory(text), Some(bytes), "{text}");
        }
        for text in ["", "0", "01M", "M", "banana", "1.5G", "-1G", "1GB", "1 G", "0x10"] {
            assert_eq!(parse_memory(text), None, "{text}");
        }
    }

    #[test]
    fn secrets_split_at_one_colon() {
        let both = |a: &str, b: &str| Some((a.to_owned(), Some(b.to_owned())));
        assert_eq!(split_secret("/a:/b"), both("/a", "/b"));
        assert_eq!(split_secret("/a"), Some(("/a".to_owned(), None)));
        assert_eq!(split_secret("/a\\:x:/b\\\\"), both("/a:x", "/b\\"));
        assert_eq!(split_secret("/a:"), both("/a", ""));
        for text in ["/a:/b:/c", "/a\\", "/a\\n:/b"] {
            assert_eq!(split_secret(text), None, "{text}");
        }
    }
}
