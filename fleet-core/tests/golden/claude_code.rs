//! The whole permission table of `claude-code`, as a reviewer reads it.

use std::fmt::Write as _;

use fleet_core::permissions::{Approval, Filesystem, Outer, Permissions};

use crate::claude::{around, whole};

#[test]
fn the_table_of_every_cell() {
    let mut text = String::new();
    for approval in [Approval::Ask, Approval::Auto, Approval::Allow] {
        for filesystem in [Filesystem::ReadOnly, Filesystem::Workspace, Filesystem::Unrestricted] {
            for outer in [Outer::Off, Outer::OffUnsandboxed, Outer::On] {
                let mut it = around("cwd: /srv/project").outer(outer);
                let words = it.role.permissions;
                it.role.permissions = Permissions { approval, filesystem, ..words };
                cell(&mut text, &it);
            }
        }
    }
    insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!(text) });
}

fn cell(text: &mut String, it: &crate::claude::Around) {
    let words = it.role.permissions;
    let said = it.translated();
    let granted: Vec<&str> = said.granted.iter().map(|it| it.as_str()).collect();
    let mut line = |line: String| writeln!(text, "{line}").expect("text");
    line(format!(
        "## {} × {}, outer {:?}",
        words.approval.as_str(),
        words.filesystem.as_str(),
        it.outer
    ));
    line(format!("exact {}, measured {}", said.exact, said.measured));
    line(format!("granted: {}", granted.join(" ")));
    for (key, value) in &said.native {
        line(format!("{key}: {value}"));
    }
    line(format!("overlay: {}", whole(&it.launch(), "settings-overlay.json")));
    for (kind, lines) in
        [("note", said.notes), ("warning", said.warnings), ("refusal", said.refusals)]
    {
        for said in lines {
            line(format!("{kind}: {said}"));
        }
    }
    line(String::new());
}
