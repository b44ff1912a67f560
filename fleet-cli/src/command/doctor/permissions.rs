//! Rows about the permissions of one role.

use fleet_core::permissions::{Outer, Translation, Unattended};

use super::{Check, Level};
use crate::resolved::{ResolvedRole, permissions as words};

/// What the harness makes of the permissions, each option that overrules them, and what works without a
/// person.
pub(super) fn checks(resolved: &ResolvedRole<'_>) -> Vec<Check> {
    let mut checks = vec![translation(resolved)];
    checks.extend(conflicts(resolved));
    checks.extend(floor(resolved));
    checks
}

fn translation(resolved: &ResolvedRole<'_>) -> Check {
    let role = resolved.role;
    let check =
        |level, detail: String| Check::new("permissions", level, detail).role(role.name.as_str());
    match &resolved.translation {
        Some(Translation::Supported(it)) => {
            let line = format!("{} -> {}", words::asked(role), words::native(it));
            let why = if it.warnings.is_empty() {
                String::new()
            } else {
                format!(": {}", it.warnings.join("; "))
            };
            let (exact, boundary) = (words::exactness(it), words::boundary(resolved.outer));
            let detail = format!("{line} ({exact}; {boundary}){why}");
            let wide = resolved.outer == Outer::OffUnsandboxed;
            match (it.exact, it.measured) {
                (true, true) if !wide => check(Level::Pass, detail),
                (true, true) => check(Level::Warn, detail).fix("see `native sandbox`"),
                (true, false) => check(Level::Warn, detail)
                    .fix("install a measured version, or look closely at what it does"),
                (false, _) => check(Level::Warn, detail).fix(
                    "write permissions that this harness has, or bound the role by `isolation`",
                ),
            }
        }
        Some(Translation::Unsupported { reason }) if role.permissions_declared => {
            check(Level::Fail, reason.clone())
                .fix("remove `permissions` from the role and bound it by `isolation`")
        }
        Some(Translation::Unsupported { reason }) if role.isolation.is_some() => {
            check(Level::Pass, reason.clone())
        }
        Some(Translation::Unsupported { reason }) => {
            check(Level::Warn, format!("{reason}, and none is declared")).fix("add `isolation`")
        }
        None => check(Level::Fail, format!("harness `{}` does not exist here", role.harness))
            .fix("write another `harness`"),
    }
}

fn conflicts(resolved: &ResolvedRole<'_>) -> impl Iterator<Item = Check> {
    let name = resolved.role.name.as_str();
    resolved.conflicts.iter().map(move |conflict| {
        Check::new("permission conflict", Level::Warn, words::conflict(conflict))
            .role(name)
            .fix(format!("remove `harness_options.{}`, or `permissions`", conflict.key))
    })
}

fn floor(resolved: &ResolvedRole<'_>) -> Option<Check> {
    let (role, floor) = (resolved.role, resolved.floor.as_ref()?);
    let check =
        |level, detail| Check::new("unattended floor", level, detail).role(role.name.as_str());
    let line = words::floor(floor);
    if floor.is_met() {
        return Some(check(Level::Pass, line));
    }
    let native = match &resolved.translation {
        Some(Translation::Supported(it)) => words::native(it),
        _ => String::new(),
    };
    let detail = format!("{} with {native} {line}", role.harness);
    Some(match floor.unattended {
        Unattended::Deny => check(Level::Fail, detail).fix(
            "write `permissions: {approval: auto}`, or `unattended: wait` where somebody is there to \
             answer",
        ),
        Unattended::Wait => {
            check(Level::Warn, detail).fix("have somebody attached, or write `approval: auto`")
        }
    })
}

#[cfg(test)]
mod tests {
    use fleet_core::config::Fleet;
    use fleet_core::harness::{Harness, LaunchDirs};
    use fleet_core::permissions::{
        TranslationRequest, conflicts as find_conflicts, floor as judge,
    };
    use fleet_core::test_support::fakes::StubHarness;
    use std::collections::BTreeMap;

    use rstest::rstest;

    use super::super::tests::{bare, fleet};
    use super::*;

    fn rows(fleet: &Fleet, outer: Outer, version: Option<&str>) -> Vec<(String, Level, String)> {
        let role = &fleet.roles["A"];
        let (harness, options) = (StubHarness::claude_code(), role.harness_options.expose());
        let dirs = LaunchDirs {
            state: "/s".into(),
            cwd: "/w".into(),
            harness_home: "/h".into(),
            handout: "/o".into(),
            briefing: "/o/briefing.md".into(),
            git: Vec::new(),
            aliases: BTreeMap::new(),
        };
        let request = TranslationRequest {
            permissions: role.permissions,
            options,
            outer,
            dirs: &dirs,
            version,
            root: false,
            operator_files: &BTreeMap::new(),
            denied_reads: &[],
        };
        let effective = harness.effective(&request);
        let resolved = ResolvedRole {
            outer,
            conflicts: find_conflicts(
                role.permissions_declared,
                &harness.native_overrides(options),
                &harness.translate(&request),
            ),
            floor: judge(&effective, role.permissions.unattended),
            translation: Some(effective),
            ..bare(role)
        };
        checks(&resolved).into_iter().map(|it| (it.name, it.level, it.detail)).collect()
    }

    #[rstest]
    #[case("permissions: {approval: auto}", Outer::On, None, Level::Pass, "(exact; isolation on")]
    #[case(
        "permissions: {approval: auto}",
        Outer::Off,
        Some("9.9"),
        Level::Warn,
        "(exact, not qualified; "
    )]
    #[case(
        "permissions: {approval: ask}",
        Outer::OffUnsandboxed,
        None,
        Level::Warn,
        "cannot be used here"
    )]
    #[case(
        "harness_options: {permission_mode: anything}",
        Outer::Off,
        None,
        Level::Warn,
        "(not exact; "
    )]
    fn the_row_says_how_exact_it_is_and_inside_what(
        #[case] keys: &str,
        #[case] outer: Outer,
        #[case] version: Option<&str>,
        #[case] level: Level,
        #[case] part: &str,
    ) {
        let rows = rows(&fleet(&format!("roles: {{A: {{{keys}}}}}")), outer, version);
        assert_eq!((rows[0].0.as_str(), rows[0].1), ("permissions: A", level));
        assert!(rows[0].2.contains(part), "{}", rows[0].2);
        assert!(rows[0].2.contains(" -> permission_mode="), "{}", rows[0].2);
    }

    #[test]
    fn e6_an_option_that_overrules_declared_permissions_is_named_with_both_values() {
        let text =
            "roles: {A: {permissions: {approval: ask}, harness_options: {permission_mode: allow}}}";
        let loud = rows(&fleet(text), Outer::On, None);
        assert_eq!((loud[1].0.as_str(), loud[1].1), ("permission conflict: A", Level::Warn));
        for part in ["`permission_mode`", "`allow`", "mean `ask`", "the option wins"] {
            assert!(loud[1].2.contains(part), "{part} in {}", loud[1].2);
        }
        let quiet = "roles: {A: {harness_options: {permission_mode: allow}}}";
        let quiet = rows(&fleet(quiet), Outer::On, None);
        assert!(quiet.iter().all(|row| !row.0.starts_with("permission conflict")));
    }

    #[rstest]
    #[case("approval: ask", Level::Fail, "is denied")]
    #[case("approval: ask, unattended: wait", Level::Warn, "blocks the turn")]
    #[case("approval: auto", Level::Pass, "met: ")]
    fn e9_e10_what_does_not_work_without_a_person_is_said_once(
        #[case] permissions: &str,
        #[case] level: Level,
        #[case] part: &str,
    ) {
        let text = format!("roles: {{A: {{permissions: {{{permissions}}}}}}}");
        let rows = rows(&fleet(&text), Outer::On, None);
        let floor: Vec<_> = rows.iter().filter(|row| row.0 == "unattended floor: A").collect();
        assert_eq!(floor.len(), 1);
        assert_eq!(floor[0].1, level);
        assert!(floor[0].2.contains(part), "{}", floor[0].2);
        if level != Level::Pass {
            for part in [
                "write-state, workspace-edit, status-commands",
                "claude-code",
                "permission_mode=ask",
            ] {
                assert!(floor[0].2.contains(part), "{part} in {}", floor[0].2);
            }
        }
    }
}
