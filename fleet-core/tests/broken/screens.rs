//! Wrong readers of a composer.

use fleet_core::harness::screen::Composer;

use crate::property::screens::{
    CLAUDE, CODEX, claude, codex, drafts_are_found, transcripts_are_not_composers,
};

/// Takes the last row with a prompt, wherever it stands.
fn any_prompt(screen: &str) -> Option<Composer> {
    let row = screen.lines().rev().find(|row| row.contains(['❯', '›']))?;
    let text = row.trim_start().trim_start_matches(['❯', '›']).trim();
    Some(Composer::message(text.to_owned()))
}

/// Takes only the first row of a draft.
fn first_row(find: fn(&str) -> Option<Composer>, screen: &str) -> Option<Composer> {
    let text = find(screen)?.text;
    Some(Composer::message(text.lines().next().unwrap_or_default().to_owned()))
}

#[test]
fn a_prompt_anywhere_is_noticed() {
    assert!(transcripts_are_not_composers(CLAUDE, any_prompt).is_err());
    assert!(transcripts_are_not_composers(CODEX, any_prompt).is_err());
}

#[test]
fn half_a_draft_is_noticed() {
    assert!(drafts_are_found(CLAUDE, |screen| first_row(claude, screen)).is_err());
    assert!(drafts_are_found(CODEX, |screen| first_row(codex, screen)).is_err());
}
