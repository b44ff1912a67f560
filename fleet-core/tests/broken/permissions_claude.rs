use fleet_core::harness::Harness as _;
use fleet_core::harness::claude_code::ClaudeCodeHarness;
use fleet_core::permissions::{
    Approval, Filesystem, Outer, Supported, Translation, TranslationRequest,
};

use crate::claude::supported;
use crate::property::permissions_claude::{Translate, p30, p31, p32};

fn changed(request: &TranslationRequest<'_>, change: impl FnOnce(&mut Supported)) -> Translation {
    let mut said = supported(ClaudeCodeHarness::default().translate(request));
    change(&mut said);
    Translation::Supported(said)
}

/// Takes the mode that never asks for a role that is only meant to work silently.
fn never_asks(request: &TranslationRequest<'_>) -> Translation {
    changed(request, |said| {
        if request.permissions.approval == Approval::Auto {
            said.native.insert("permission_mode".to_owned(), "bypassPermissions".to_owned());
        }
    })
}

/// Leaves commands open where the program has no sandbox to put them into.
fn leaves_commands_open(request: &TranslationRequest<'_>) -> Translation {
    let on = TranslationRequest { outer: Outer::On, ..*request };
    changed(request, |said| {
        if request.outer == Outer::OffUnsandboxed {
            *said = supported(ClaudeCodeHarness::default().translate(&on));
        }
    })
}

/// Leaves the working directory of a reading role open to file tools.
fn forgets_the_deny_rule(request: &TranslationRequest<'_>) -> Translation {
    changed(request, |said| {
        said.native.insert("permissions.deny".to_owned(), "[]".to_owned());
    })
}

/// Names a directory with a pattern in it.
fn allows_a_pattern(request: &TranslationRequest<'_>) -> Translation {
    changed(request, |said| {
        if request.permissions.approval == Approval::Allow
            && request.permissions.filesystem == Filesystem::Workspace
        {
            said.native
                .insert("permissions.allow".to_owned(), r#"["Edit(//srv/*/**)"]"#.to_owned());
        }
    })
}

fn grants_less(request: &TranslationRequest<'_>) -> Translation {
    changed(request, |said| {
        if request.permissions.filesystem == Filesystem::Unrestricted {
            said.granted.clear();
        }
    })
}

fn hides_warnings(request: &TranslationRequest<'_>) -> Translation {
    changed(request, |said| said.exact = true)
}

#[test]
fn p30_finds_a_wider_word_that_grants_less() {
    p30(grants_less).expect_err("no counter-example");
}

#[test]
fn p31_finds_every_widening() {
    let wrong: [Translate; 4] =
        [never_asks, leaves_commands_open, forgets_the_deny_rule, allows_a_pattern];
    for (index, translate) in wrong.into_iter().enumerate() {
        assert!(p31(translate).is_err(), "no counter-example for number {index}");
    }
}

#[test]
fn p32_finds_a_hidden_warning() {
    p32(hides_warnings).expect_err("no counter-example");
}
