//! Dotted keys of TOML, as `harness_options.config` writes them.

/// More parts than any setting has.
const MOST_PARTS: usize = 16;
const LONGEST: usize = 4096;

/// The parts of a dotted key; those with dots or slashes stand in quotes. `None` for anything that is
/// no such key.
pub(super) fn parts(key: &str) -> Option<Vec<String>> {
    if key.len() > LONGEST || key.chars().any(char::is_control) {
        return None;
    }
    let mut parts = Vec::new();
    let mut rest = key;
    loop {
        let (part, after) = part(rest)?;
        parts.push(part);
        if parts.len() > MOST_PARTS {
            return None;
        }
        match after.strip_prefix('.') {
            Some(more) => rest = more,
            None if after.is_empty() => return Some(parts),
            None => return None,
        }
    }
}

/// The first part and what follows it.
fn part(text: &str) -> Option<(String, &str)> {
    if let Some(quoted) = text.strip_prefix('\'') {
        let (part, after) = quoted.split_once('\'')?;
        return Some((part.to_owned(), after));
    }
    if let Some(quoted) = text.strip_prefix('"') {
        let mut part = String::new();
        let mut chars = quoted.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => return Some((part, &quoted[at + 1..])),
                '\\' => match chars.next()?.1 {
                    c @ ('"' | '\\') => part.push(c),
                    _ => return None,
                },
                c => part.push(c),
            }
        }
        return None;
    }
    let end = text.find(|c: char| !is_bare(c)).unwrap_or(text.len());
    (end > 0).then(|| (text[..end].to_owned(), &text[end..]))
}

fn is_bare(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// The key of these parts, each quoted where it must be.
pub(super) fn join(parts: &[String]) -> String {
    let quoted = |part: &String| {
        if !part.is_empty() && part.chars().all(is_bare) {
            part.clone()
        } else {
            format!("\"{}\"", part.replace('\\', "\\\\").replace('"', "\\\""))
        }
    };
    parts.iter().map(quoted).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_split_as_toml_does() {
        for (key, expected) in [
            ("a", vec!["a"]),
            ("a.b-c.D_1", vec!["a", "b-c", "D_1"]),
            (r#"projects."/a.b/c".trust_level"#, vec!["projects", "/a.b/c", "trust_level"]),
            (r#"a."q\"\\""#, vec!["a", "q\"\\"]),
            ("a.'x.y'", vec!["a", "x.y"]),
            (r#"a."""#, vec!["a", ""]),
        ] {
            let parts = parts(key).unwrap_or_else(|| panic!("{key}"));
            assert_eq!(parts, expected, "{key}");
            assert_eq!(super::parts(&join(&parts)), Some(parts), "{key}");
            let text = format!("{key} = 1");
            let table: toml::Table = toml::from_str(&text).expect("TOML reads it too");
            assert_eq!(table.len(), 1);
        }
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let many = vec!["a"; MOST_PARTS + 1].join(".");
        let long = "a".repeat(LONGEST + 1);
        for key in [
            "", ".", "a.", ".a", "a..b", "a b", "a = 1\nb", "a\n", "\"a", "'a", "\"a\\n\"",
            "\"a\"b", "[a]", "a/b", "ä", "a.\u{7f}", &many, &long,
        ] {
            assert_eq!(parts(key), None, "{key:?}");
        }
    }
}
