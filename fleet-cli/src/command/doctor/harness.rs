//! Rows about harnesses: whether the program is there, whether its own sandbox works, and what of a
//! role's isolation stands in its way.

use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use fleet_adapters::runner::native_sandbox::{NativeSandbox, NativeSandboxes, try_out};
use fleet_core::config::{Fleet, Role};
use fleet_core::harness::{Harness, Prerequisite};
use fleet_core::isolation::NetworkMode;
use fleet_core::path::LexicalPath;
use fleet_core::permissions::Filesystem;
use fleet_core::plan::Assessment;
use fleet_core::port::{CommandSpec, ExecError, ExecOutput, Exit};
use fleet_core::redact::{Redacted, is_secret_key};

use super::{Check, Level};
use crate::app::App;
use crate::env_vars;

/// A harness prints its version in well under a second.
const LIMIT: Duration = Duration::from_secs(4);

/// The harnesses to check: those of the fleet, every one where the fleet did not load, and only
/// `only` where it is given.
pub(super) fn chosen(
    app: &App,
    fleet: Option<&Fleet>,
    only: Option<&str>,
) -> Vec<Arc<dyn Harness>> {
    let harnesses = &app.runtime.harnesses;
    let used = |id: &str| match (only, fleet) {
        (Some(only), _) => only == id,
        (None, Some(fleet)) => fleet.roles.values().any(|role| role.harness.as_str() == id),
        (None, None) => true,
    };
    harnesses.ids().filter(|id| used(id)).filter_map(|id| harnesses.get(id)).cloned().collect()
}

/// Every row of these harnesses.
pub(super) async fn checks(
    app: &App,
    fleet: Option<&Fleet>,
    harnesses: &[Arc<dyn Harness>],
    native: &NativeSandboxes,
) -> Vec<Check> {
    let mut checks = Vec::new();
    for harness in harnesses {
        if let Some(needs) = harness.prerequisite() {
            let mut spec = CommandSpec::new(needs.argv[0], needs.argv[1..].iter().copied());
            spec.timeout = LIMIT;
            spec.env = vec![
                (env_vars::PATH.to_owned(), app.runtime.world.path()),
                ("HOME".to_owned(), app.runtime.world.homes.os.to_string()),
            ];
            let output = app.runtime.ports.exec.run(&spec).await;
            checks.push(version(&**harness, needs, output));
        }
        let tried = match native.get(harness.id()) {
            Some(tried) => tried.clone(),
            None => try_out(&app.runtime, &**harness).await,
        };
        checks.extend(native_sandbox(fleet, &**harness, &tried));
    }
    checks
}

fn named(harness: &dyn Harness, level: Level, detail: String) -> Check {
    let mut check = Check::new("harness", level, detail);
    check.name = format!("{}: version", harness.id());
    check
}

fn version(
    harness: &dyn Harness,
    needs: &Prerequisite,
    output: Result<ExecOutput, ExecError>,
) -> Check {
    let command = needs.argv.join(" ");
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            return named(harness, Level::Fail, error.to_string())
                .fix(format!("run `{command}` by hand"));
        }
    };
    match output.exit {
        Exit::Code(0) => {}
        Exit::Code(127) => {
            let detail = format!("`{}` was not found on PATH", needs.argv[0]);
            return named(harness, Level::Fail, detail).fix(needs.hint);
        }
        Exit::Code(_) | Exit::Signal(_) => {
            let detail = format!("`{command}` failed");
            return named(harness, Level::Fail, detail).fix(needs.hint);
        }
    }
    let Some(version) = (needs.version)(&output.stdout_text()) else {
        return named(harness, Level::Warn, format!("`{command}` names no version"))
            .fix(format!("measured are {}", needs.qualified.join(", ")));
    };
    if needs.is_qualified(&version) {
        return named(harness, Level::Pass, version);
    }
    let detail = format!("{version} is not qualified: measured are {}", needs.qualified.join(", "));
    named(harness, Level::Warn, detail)
        .fix("it starts all the same; install a measured version where the permissions must hold")
}

fn native_sandbox(
    fleet: Option<&Fleet>,
    harness: &dyn Harness,
    tried: &NativeSandbox,
) -> Option<Check> {
    let check = |level, detail: String| {
        Some(Check::new("native sandbox", level, detail).named(harness.id().as_str()))
    };
    match tried {
        NativeSandbox::Absent => None,
        NativeSandbox::Works { program } => {
            check(Level::Pass, format!("`{program}` made one and ended as it should"))
        }
        NativeSandbox::Unusable { reason } => {
            let needy: Vec<&str> = fleet
                .iter()
                .flat_map(|fleet| fleet.roles.values())
                .filter(|role| needs_native(role, harness))
                .map(|role| role.name.as_str())
                .collect();
            if needy.is_empty() {
                return check(Level::Warn, format!("{reason}; no role needs it"))
                    .map(|it| it.fix("nothing, as long as each role has `isolation`"));
            }
            let detail = format!("{reason}; needed by {}", needy.join(", "));
            check(Level::Fail, detail).map(|it| {
                it.fix(
                    "give those roles `isolation`, or allow user namespaces and install what is missing",
                )
            })
        }
    }
}

/// Whether a bound of this role rests on its harness's own sandbox.
fn needs_native(role: &Role, harness: &dyn Harness) -> bool {
    role.harness == *harness.id()
        && !Assessment::wants_isolation(role)
        && role.permissions.filesystem != Filesystem::Unrestricted
}

/// Rows of one role: a sandbox in which the model cannot be reached, or in which a login cannot be
/// renewed.
pub(super) fn role_checks(app: &App, role: &Role) -> Vec<Check> {
    let Some(harness) = app.runtime.harnesses.get(role.harness.as_str()) else { return Vec::new() };
    let mut checks: Vec<Check> = network(role, &**harness).into_iter().collect();
    let exists = |path: &Utf8PathBuf| {
        let path = LexicalPath::absolute(path.as_str());
        path.is_ok_and(|path| app.probe().resolve(&path).is_ok_and(|seen| seen.object.is_some()))
    };
    let places = logins(app, role, &**harness);
    let found: Vec<&Utf8PathBuf> = places.iter().filter(|path| exists(path)).collect();
    match (found.first(), places.first()) {
        (Some(_), _) if Assessment::wants_isolation(role) => {
            checks.extend(found.into_iter().map(|path| login(role, path)));
        }
        (None, Some(place)) if !names_a_key(role) => {
            checks.push(no_login(role, &**harness, place));
        }
        _ => {}
    }
    checks
}

fn isolation(role: &Role, suffix: &str, level: Level, detail: String) -> Check {
    Check::new("isolation", level, detail)
        .role(role.name.as_str())
        .named(&format!("{} {suffix}", role.name))
}

fn network(role: &Role, harness: &dyn Harness) -> Option<Check> {
    let block = role.isolation.as_ref().filter(|_| Assessment::wants_isolation(role))?;
    // A harness with a prerequisite is one of a model, whose provider it must reach.
    harness.prerequisite()?;
    (block.network() == NetworkMode::Deny).then(|| {
        let detail = format!("`network: deny`: `{}` cannot reach its model", harness.id());
        isolation(role, "network", Level::Fail, detail)
            .fix("write `network: broker`, which reaches the model and nothing else")
    })
}

/// Where the login of the operator would be, if the role shares it.
fn logins(app: &App, role: &Role, harness: &dyn Harness) -> Vec<Utf8PathBuf> {
    let shared_home = role.harness_options.expose().get("config_home").is_some();
    let Some(home) = harness.home().filter(|_| !shared_home) else { return Vec::new() };
    let world = &app.runtime.world;
    let named = role
        .env
        .get(home.variable)
        .map(Redacted::expose)
        .or_else(|| world.env.0.get(home.variable));
    let operator = named.map_or_else(|| world.homes.os.join(home.operator), Utf8PathBuf::from);
    let logins = home.shared.iter().filter(|item| item.login);
    logins
        .map(|item| {
            let parent = if item.below_account { &world.homes.os } else { &operator };
            parent.join(item.name)
        })
        .collect()
}

/// Whether the role brings what may be a login of its own: a variable that is called so, or a file.
fn names_a_key(role: &Role) -> bool {
    // `…_USE_…`: Claude Code's switches to the cloud providers, which have logins of their own.
    let key = |name: &str| is_secret_key(name) || name.ends_with("_KEY") || name.contains("_USE_");
    role.env.keys().chain(&role.env_pass).any(|name| key(name))
        || role.isolation.as_ref().is_some_and(|block| !block.secrets.is_empty())
}

fn no_login(role: &Role, harness: &dyn Harness, place: &Utf8Path) -> Check {
    let detail = format!(
        "no login was found: {place} does not exist, and the role names no key in `env` or `env_pass`"
    );
    let fix = match harness.prerequisite() {
        Some(needs) => format!("{}; or pass a key by `env_pass`", needs.hint),
        None => "log in, or pass a key by `env_pass`".to_owned(),
    };
    Check::new("login", Level::Warn, detail)
        .role(role.name.as_str())
        .named(role.name.as_str())
        .fix(fix)
}

fn login(role: &Role, path: &Utf8Path) -> Check {
    let detail = format!(
        "the login `{path}` is shown read-only: a token renewed inside is not saved, and one renewed \
         outside is seen at the next start"
    );
    isolation(role, "login", Level::Warn, detail).fix(
        "use a key or long-lived token that needs no renewal: `env_pass`, or a file of mode 0600 in \
         `isolation.secrets`",
    )
}

#[cfg(test)]
mod tests {
    use fleet_core::test_support::fakes::StubHarness;
    use rstest::rstest;

    use super::super::tests::fleet as fleet_of;
    use super::*;

    fn output(exit: Exit, stdout: &str) -> ExecOutput {
        ExecOutput { exit, stdout: stdout.into(), stderr: b"s3cr3t".to_vec() }
    }

    #[rstest]
    #[case(Exit::Code(0), "2.1.332 (stub)", Level::Pass, "2.1.332")]
    #[case(
        Exit::Code(0),
        "2.1.400 (stub)",
        Level::Warn,
        "2.1.400 is not qualified: measured are 2.1.332"
    )]
    #[case(Exit::Code(0), "hello", Level::Warn, "`claude-code --version` names no version")]
    #[case(Exit::Code(127), "", Level::Fail, "`claude-code` was not found on PATH")]
    #[case(Exit::Code(1), "", Level::Fail, "`claude-code --version` failed")]
    #[case(Exit::Signal(9), "", Level::Fail, "`claude-code --version` failed")]
    fn a_program_is_judged_by_what_it_prints(
        #[case] exit: Exit,
        #[case] stdout: &str,
        #[case] level: Level,
        #[case] detail: &str,
    ) {
        let stub = StubHarness::claude_code();
        let check = version(&stub, stub.prerequisite.expect("one"), Ok(output(exit, stdout)));
        assert_eq!((check.name.as_str(), check.level), ("claude-code: version", level));
        assert_eq!(check.detail, detail);
        assert_eq!(check.fix.is_some(), level != Level::Pass);
    }

    #[test]
    fn an_unusable_sandbox_fails_only_where_a_role_rests_on_it() {
        let fleet = fleet_of(
            "roles: {A: {}, B: {permissions: {filesystem: unrestricted}}, C: {harness: codex}, \
             D: {isolation: {network: allow}}}",
        );
        let broken = NativeSandbox::Unusable { reason: "no namespaces".into() };
        let stub = StubHarness::claude_code();
        let check = native_sandbox(Some(&fleet), &stub, &broken).expect("a row");
        assert_eq!(
            (check.name.as_str(), check.level),
            ("native sandbox: claude-code", Level::Fail)
        );
        assert_eq!(check.detail, "no namespaces; needed by A");
        let without = fleet_of("roles: {D: {isolation: {network: allow}}}");
        let check = native_sandbox(Some(&without), &stub, &broken).expect("a row");
        assert_eq!(check.level, Level::Warn);
        assert!(native_sandbox(Some(&fleet), &stub, &NativeSandbox::Absent).is_none());
        let works = NativeSandbox::Works { program: "bwrap".into() };
        assert_eq!(native_sandbox(None, &stub, &works).expect("a row").level, Level::Pass);
    }

    #[rstest]
    #[case("{}", false)]
    #[case("{env: {EDITOR: vi}}", false)]
    #[case("{env: {ANTHROPIC_AUTH_TOKEN: x}}", true)]
    #[case("{env_pass: [MY_PROVIDER_KEY]}", true)]
    #[case("{env: {CLAUDE_CODE_USE_BEDROCK: '1'}}", true)]
    #[case("{isolation: {network: allow, secrets: [/h/key]}}", true)]
    fn a_role_that_brings_a_key_needs_no_login(#[case] role: &str, #[case] brings: bool) {
        let fleet = fleet_of(&format!("roles: {{A: {role}}}"));
        assert_eq!(names_a_key(&fleet.roles["A"]), brings);
    }

    #[test]
    fn a_model_without_a_network_is_a_failure() {
        let fleet = fleet_of(
            "roles: {A: {isolation: {network: deny}}, B: {isolation: {network: allow}}, C: {}, \
             D: {harness: command, harness_options: {argv: [x]}, isolation: {network: deny}}, \
             E: {isolation: {backend: none, network: deny}}}",
        );
        let stub = StubHarness::claude_code();
        let check = network(&fleet.roles["A"], &stub).expect("a row");
        assert_eq!((check.name.as_str(), check.level), ("isolation: A network", Level::Fail));
        for role in ["B", "C", "E"] {
            assert_eq!(network(&fleet.roles[role], &stub), None, "{role}");
        }
        let command = fleet_core::harness::command::CommandHarness::default();
        assert_eq!(network(&fleet.roles["D"], &command), None);
    }
}
