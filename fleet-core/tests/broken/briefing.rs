//! Wrong briefings.

use crate::property::briefing::{Words, harmless, p42, real};

/// The real briefing of harmless words, with the persona put in as `paste` makes it.
fn pasted(words: &Words, paste: impl Fn(&str) -> String) -> String {
    let mark = "PERSONA";
    let text = real(&Words { persona: mark.to_owned(), curated: None, ..harmless(words) });
    text.replace(&format!("    {mark}"), &paste(&words.persona))
}

#[track_caller]
fn caught(result: Result<(), String>) {
    result.expect_err("the property does not see the mistake");
}

#[test]
fn p42_text_is_pasted_as_it_is() {
    caught(p42(|words| pasted(words, str::to_owned)));
}

#[test]
fn p42_only_newlines_end_a_line() {
    caught(p42(|words| pasted(words, |text| format!("    {}", text.replace('\n', "\n    ")))));
}

#[test]
fn p42_indented_too_little_to_be_code() {
    caught(p42(|words| {
        pasted(words, |text| {
            let lines: Vec<String> = text.lines().map(|line| format!("  {line}")).collect();
            lines.join("\n")
        })
    }));
}

#[test]
fn p42_only_headings_are_escaped() {
    caught(p42(|words| pasted(words, |text| text.replace('#', "\\#"))));
}

#[test]
fn p42_a_path_ends_its_code_span() {
    caught(p42(|words| real(&harmless(words)).replace("/srv/x", &words.cwd)));
}

#[test]
fn p42_a_section_is_left_out() {
    caught(p42(|words| real(words).replace("# House rules", "")));
}
