//! What `config` and `doctor` say of the model harnesses. The programs are scripts: what they print and
//! how they end is all that matters here.

use fleet_core::harness::Harnesses;
use serde_json::Value;

use crate::support::TestEnvironment;

const FLEET: &str = "\
roles:
  A:
    harness: claude-code
    model: some-model
    env: { SECRET: CANARY-1 }
    permissions: { approval: ask }
    harness_options:
      permission_mode: bypassPermissions
      mcp_servers: { x: { command: run, env: { KEY: CANARY-2 } } }
  B:
    harness: codex
    isolation: { network: deny }
";

/// Ends a test where a harness is not in this build.
macro_rules! needs_harnesses {
    () => {
        for id in ["claude-code", "codex"] {
            if Harnesses::built_in().get(id).is_none() {
                skip!(format!("the harness `{id}` is not in this build"));
            }
        }
    };
}

/// A fleet home with programs of these names and contents before all others on the `PATH`.
fn with_programs(programs: &[(&str, &str)]) -> TestEnvironment {
    let mut env = TestEnvironment::with_fleet(FLEET);
    for (name, content) in programs {
        env.script(&format!("bin/{name}"), content);
    }
    let path = std::env::var("PATH").expect("PATH");
    let own = env.path("bin").display().to_string();
    env.set("PATH", &format!("{own}:{path}"));
    env
}

fn check(report: &Value, name: &str) -> Value {
    let checks = report["checks"].as_array().expect("a list");
    let found = checks.iter().find(|check| check["name"] == name);
    found.unwrap_or_else(|| panic!("no row `{name}` in {report:#}")).clone()
}

fn doctor(env: &TestEnvironment) -> Value {
    let out = env.run(["doctor", "--json"]);
    assert!(!out.all().contains("CANARY"), "{}", out.all());
    out.json()
}

#[test]
fn doctor_knows_the_harnesses_that_it_may_be_limited_to() {
    let env = TestEnvironment::new();
    let out = env.run(["doctor", "--harness", "gemini"]).expect(64);
    for part in ["`gemini`", "command"] {
        assert!(out.stderr.contains(part), "{}", out.stderr);
    }
}

#[test]
fn e6_e9_config_shows_native_settings_and_what_overrules_them() {
    needs_harnesses!();
    let env = with_programs(&[]);
    let out = env.run(["config", "--json"]);
    assert!(!out.all().contains("CANARY"), "{}", out.all());
    let plan = out.json();
    let permissions = &plan["roles"][0]["permissions"];
    assert_eq!(permissions["supported"], true);
    assert_eq!(permissions["outer"], "off");
    assert!(permissions["conflicts"].as_array().is_some_and(|list| !list.is_empty()));
    assert_eq!(plan["roles"][0]["harnessHome"]["variable"], "CLAUDE_CONFIG_DIR");
    assert_eq!(plan["roles"][0]["env"]["keys"], serde_json::json!(["ANTHROPIC_MODEL", "SECRET"]));
    assert_eq!(plan["roles"][1]["permissions"]["outer"], "on");
    assert_eq!(plan["roles"][1]["harnessHome"]["variable"], "CODEX_HOME");

    let text = env.run(["config"]);
    assert!(!text.all().contains("CANARY"), "{}", text.all());
    for part in
        ["the option wins", "isolation on, the harness's own sandbox off", "CLAUDE_CONFIG_DIR="]
    {
        assert!(text.stdout.contains(part), "{part} in\n{}", text.stdout);
    }
}

#[test]
fn a_newer_program_is_not_passed_off_as_qualified() {
    needs_harnesses!();
    let prints = |text: &str| format!("#!/bin/sh\n[ \"$*\" = --version ] && echo '{text}'\n");
    let programs = |claude: &str, codex: &str| {
        with_programs(&[("claude", &prints(claude)), ("codex", &prints(codex))])
    };
    let env = programs("99.0.0 (Claude Code)", "codex-cli 99.0.0");
    let plan = env.run(["config", "--json"]).json();
    for role in 0..2 {
        assert_eq!(plan["roles"][role]["permissions"]["qualified"], false, "{plan:#}");
    }
    let text = env.run(["config"]).stdout;
    assert_eq!(text.matches("exact, not qualified)").count(), 2, "{text}");
    for part in ["99.0.0 is not qualified", "this version of Codex was not measured"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    // Nothing was written for it: no home of a harness, no state.
    assert!(!env.path(".ours-fleet").exists() && !env.path(".claude").exists());
    let report = doctor(&env);
    for name in ["claude-code: version", "codex: version", "permissions: A", "permissions: B"] {
        let row = check(&report, name);
        assert_eq!(row["level"], "warn", "{row}");
        assert!(row["detail"].as_str().is_some_and(|it| it.contains("not qualified")), "{row}");
    }

    let pinned = crate::support::harnesses::pinned;
    let env = programs(
        &format!("{} (Claude Code)", pinned("claude")),
        &format!("codex-cli {}", pinned("codex")),
    );
    let text = env.run(["config"]).stdout;
    assert!(!text.contains("was not measured") && !text.contains("is not qualified"), "{text}");
    assert_eq!(env.run(["config", "--json"]).json()["roles"][1]["permissions"]["qualified"], true);
}

#[test]
fn doctor_runs_the_programs_and_their_sandboxes() {
    needs_harnesses!();
    let env = with_programs(&[
        ("claude", "#!/bin/sh\necho '99.0.0 (Claude Code)'\n"),
        (
            "codex",
            "#!/bin/sh\n[ \"$1\" = --version ] && { echo 'codex-cli 0.171.0'; exit 0; }\necho 'no namespaces' >&2\nexit 1\n",
        ),
    ]);
    let report = doctor(&env);
    let claude = check(&report, "claude-code: version");
    assert_eq!(claude["level"], "warn");
    assert!(claude["detail"].as_str().is_some_and(|it| it.contains("99.0.0 is not qualified")));
    assert_eq!(check(&report, "codex: version")["level"], "pass");
    // Nothing rests on it: the one role has isolation.
    let native = check(&report, "native sandbox: codex");
    assert_eq!(native["level"], "warn");
    assert!(native["detail"].as_str().is_some_and(|it| it.contains("no namespaces")));
    assert_eq!(check(&report, "permission conflict: A")["level"], "warn");
    assert_eq!(check(&report, "isolation: B network")["level"], "fail");
    let report = doctor(&with_programs(&[("claude", "#!/bin/sh\nexit 3\n")]));
    assert_eq!(check(&report, "claude-code: version")["level"], "fail");
}
