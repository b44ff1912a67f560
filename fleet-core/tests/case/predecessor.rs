//! Fleet files as they were written for the predecessor's 0.5 to 0.18 line: each loads with the value
//! that it had there, or is refused in lines that say what to write. What that line accepted and
//! ignored (07, column "predecessor") is where the two differ.

use fleet_core::config::{Fleet, Role, Worklog};
use fleet_core::harness::Harnesses;
use fleet_core::isolation::{Backend, NetworkMode, OnUnavailable, SystemView};
use fleet_core::permissions::{Approval, Filesystem, Unattended};
use rstest::rstest;

use crate::fleet::{Files, base, names};

fn files(text: &str) -> Files {
    base(text).with(Harnesses::built_in())
}

fn unavailable(role: &Role) -> Vec<&str> {
    role.unavailable.iter().filter(|it| it.refuses).map(|it| it.path.as_str()).collect()
}

/// A file as a team would have had it: most keys of that line, once each.
const TEAM: &str = "\
# The team of the web shop.
vars:
  src: /home/op/src
  tokens: 200000
start_stagger_ms: 1500
defaults:
  harness: claude-code
  session: tmux
  permissions:
    approval: ask
  env:
    EDITOR: vi
  monitor:
    enabled: true
    batch_ms: 3000
    interrupt: after_tool
  worklog: false
  isolation:
    backend: bubblewrap
    network: allow
    on_unavailable: warn
roles:
  Lead:
    identity: shop-lead
    cwd: ${src}/shop
    coordinator: owner
    mission: |
      Plan the work.
      Hand it out; read `$HOME/notes` first.
    persona: Calm.
    bio: Leads.
    model: opus
    autocompact_pct: 60
    permissions:
      approval: auto
      filesystem: workspace
    harness_options:
      permission_mode: acceptEdits
      effort: high
      remote_control: true
      mem_palace: false
      plugins:
        tidy@tools: true
      mcp_servers:
        search:
          command: search-mcp
          args: [--stdio]
          env: {SEARCH_KEY: k}
  Coder:
    harness: codex
    cwd: ${src}/shop
    permissions:
      approval: allow
    env:
      EDITOR: ed
    harness_options:
      launcher: auto
      sandbox: danger-full-access
      approval: never
      search: false
      profile: work
      config:
        model_reasoning_effort: high
    isolation:
      backend: auto
      network: deny
      on_unavailable: strict
      fs:
        read: [/srv/data, /opt/tools]
        write:
          - /srv/out
      secrets:
        - /srv/keys/npm:/run/secrets/npm
        - /srv/keys/pip
  Idle:
";

#[test]
fn a_whole_file_loads_with_its_values() {
    let fleet: Fleet = files(TEAM).fleet();
    let [lead, coder, idle] = ["Lead", "Coder", "Idle"].map(|name| &fleet.roles[name]);
    assert_eq!(fleet.start_stagger_ms, 1500);
    assert_eq!(lead.identity.as_str(), "shop-lead");
    assert_eq!(idle.identity.as_str(), "Idle");
    assert_eq!(lead.cwd.as_ref().map(ToString::to_string).as_deref(), Some("/home/op/src/shop"));
    assert_eq!(lead.model.as_deref(), Some("opus"));
    assert_eq!(lead.autocompact_pct, Some(60));
    assert_eq!(lead.permissions.approval, Approval::Auto);
    assert_eq!(idle.permissions.approval, Approval::Ask);
    assert!(lead.mission.as_ref().is_some_and(|text| text.contains("$HOME/notes")));
    assert_eq!(lead.env["EDITOR"].expose(), "vi");
    assert_eq!(coder.env["EDITOR"].expose(), "ed");
    assert_eq!(lead.harness_options.expose()["permission_mode"], "acceptEdits");
    assert_eq!(coder.harness_options.expose()["approval"], "never");
    assert!(lead.monitor.fleet && lead.monitor.batch_ms == 3000);
    assert_eq!(lead.monitor.interrupt, "after_tool");
    assert_eq!(lead.worklog, None);
    let block = coder.isolation.as_ref().expect("a block");
    assert_eq!((block.backend, block.network()), (Backend::Auto, NetworkMode::Deny));
    assert_eq!(block.on_unavailable, Some(OnUnavailable::Strict));
    assert_eq!(block.system, SystemView::Curated);
    let read: Vec<&str> = block.fs_read.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(read, ["/srv/data", "/opt/tools"]);
    let secrets: Vec<(&str, &str)> =
        block.secrets.iter().map(|it| (it.from.as_str(), it.to.as_str())).collect();
    assert_eq!(
        secrets,
        [("/srv/keys/npm", "/run/secrets/npm"), ("/srv/keys/pip", "/srv/keys/pip")]
    );
    let inherited = idle.isolation.as_ref().expect("the default");
    assert_eq!((inherited.backend, inherited.network()), (Backend::Bubblewrap, NetworkMode::Allow));
    // `monitor` waits for the mail; nothing else of the file does.
    for role in [lead, coder, idle] {
        assert_eq!(unavailable(role), ["monitor"], "{}", role.name);
    }
}

type Look = fn(&Role) -> bool;

/// What still means what it meant.
#[rstest]
#[case("permissions: {approval: deny}", |role: &Role| role.permissions.approval == Approval::Ask
    && role.permissions.filesystem == Filesystem::ReadOnly
    && role.permissions.unattended == Unattended::Deny)]
#[case("harness: codex", |role: &Role| role.harness.as_str() == "codex")]
#[case("session: acp", |role: &Role| unavailable(role) == ["session"])]
#[case("session_options: {acp: {command: claude-agent-acp}}",
    |role: &Role| unavailable(role) == ["session_options.acp"])]
#[case("session_options: {tmux: {boot_grace_ms: 5000}}", |role: &Role| role.boot_grace_ms == Some(5000))]
#[case("monitor: {enabled: false}", |role: &Role| !role.monitor.fleet && unavailable(role) == ["monitor"])]
#[case("monitor: {enabled: true, mode: fleet}", |role: &Role| role.monitor.fleet)]
#[case("worklog: false", |role: &Role| role.worklog.is_none() && unavailable(role).is_empty())]
#[case("worklog: {max_kb: 512}", |role: &Role| role.worklog
    == Some(Worklog { max_kb: 512, ..Worklog::default() }))]
#[case("model: ' '", |role: &Role| role.model.is_none())]
#[case("max_tokens: 200000", |role: &Role| role.max_tokens == Some(200_000))]
#[case("harness_options: {remote_control: true}", |role: &Role| unavailable(role).is_empty())]
#[case("harness: codex, harness_options: {sandbox: workspace-write, approval: on-request}",
    |role: &Role| unavailable(role).is_empty())]
#[case("harness: codex, harness_options: {permission_mode: never}", |_: &Role| true)]
#[case("isolation: {}", |role: &Role| role.isolation.as_ref().is_some_and(|it| it.backend == Backend::Auto
    && it.network() == NetworkMode::Broker && it.on_unavailable.is_none())
    && unavailable(role).is_empty())]
#[case("isolation: {backend: none}", |role: &Role| unavailable(role).is_empty())]
#[case("isolation: {network: allow, resources: {cpu: '1.5', mem: 2g, pids: 64}}",
    |role: &Role| unavailable(role).is_empty())]
#[case("isolation: {network: allowlist, allow_hosts: [api.example:443]}",
    |role: &Role| unavailable(role).is_empty()
        && role.isolation.as_ref().is_some_and(|it| it.allow_hosts.len() == 1))]
#[case("isolation: {backend: podman, network: deny}",
    |role: &Role| unavailable(role).is_empty())]
#[case("managed_cli: [task-workflow]", |role: &Role| unavailable(role) == ["managed_cli"])]
#[case("auth_proxy: {kind: anthropic, base_url: 'http://127.0.0.1:8080/', required: false}",
    |role: &Role| unavailable(role) == ["auth_proxy"])]
#[case("session: acp, owner_channel: {identity: boss, owners: [someone]}",
    |role: &Role| unavailable(role) == ["session", "owner_channel"])]
#[case("oversee: [{role: B, interval: 10m}]", |role: &Role| unavailable(role) == ["oversee"])]
fn a_key_loads_with_its_value(#[case] keys: &str, #[case] look: Look) {
    let role = files(&format!("roles:\n  A: {{{keys}}}\n  B: {{}}\n")).role("A");
    assert!(look(&role), "{role:?}");
    // What the build cannot serve yet names the key and says what to write instead.
    for key in role.unavailable.iter().filter(|it| it.refuses) {
        names(&key.reason, &["not available in this build"]);
        assert!(!key.instead.is_empty(), "{}", key.path);
    }
}

/// What that line accepted and ignored, bent, or ran without protection, and what the message says now.
#[rstest]
#[case("cwd: work", &["cwd: ", "absolute"])]
#[case("cwd: ../work", &["cwd: "])]
#[case("cwd: 5", &["cwd: must be a text", "quotes"])]
#[case("identity: ''", &["identity: is not an identity"])]
#[case("env: {PORT: 8080}", &["env.PORT: must be a text", "put it in quotes"])]
#[case("env: {OURS_FLEET_HOME: /x}", &["env.OURS_FLEET_HOME", "choose another name"])]
#[case("autocompact_pct: 150", &["autocompact_pct: is out of range", "1 to 100"])]
#[case("harness: claude", &["harness: is not a known harness", "claude-code"])]
#[case("harness: [codex]", &["harness: must be a text"])]
#[case("session: screen", &["session: ", "tmux, acp"])]
#[case("identty: x", &["did you mean `identity`?"])]
#[case("permissions: {approval: yolo}", &["allowed: ask, auto, allow"])]
#[case("permissions: {mode: ask}", &["permissions.mode: unknown key", "approval, filesystem"])]
#[case("monitor: {inject: full}", &["monitor.inject: ", "allowed: notification"])]
#[case("monitor: {mode: native, enabled: true}", &["leave `enabled` out"])]
#[case("worklog: true", &["worklog: must be a mapping, or false"])]
#[case("worklog: null", &["worklog: is empty", "write a value or leave the key out"])]
#[case("harness: codex, harness_options: {approval: untrusted}",
    &["harness_options.approval: ", "write `on-request`"])]
#[case("harness: codex, harness_options: {approval: on-failure}",
    &["harness_options.approval: ", "write `on-request`"])]
#[case("harness: codex, harness_options: {permission_mode: untrusted}", &["write `on-request`"])]
#[case("harness: codex, harness_options: {config: {approval_policy: untrusted}}",
    &["write `on-request`"])]
#[case("harness: codex, harness_options: {approval: never, permission_mode: on-request}",
    &["says something else than `approval`"])]
#[case("harness: codex, harness_options: {launcher: ours-codex}", &["allowed: auto, codex"])]
#[case("harness: codex, harness_options: {add_dirs: [../lib]}", &["harness_options.add_dirs[0]"])]
#[case("harness: codex, harness_options: {config: {tools: {web: true}}}",
    &["harness_options.config.tools"])]
#[case("harness_options: {permission_mode: yolo}", &["harness_options.permission_mode"])]
#[case("harness_options: {remote_control: 'yes'}", &["`true` or `false`"])]
#[case("isolation: null", &["isolation: is empty", "`{}`", "`{backend: none}`"])]
#[case("isolation: false", &["isolation: must be a mapping"])]
#[case("isolation: {network: none}", &["broker, deny, allow, allowlist"])]
#[case("isolation: {fs: {read: /srv}}", &["isolation.fs.read: must be a list", "`[…]`"])]
#[case("isolation: {fs: {read: [data]}}", &["isolation.fs.read[0]: ", "relative"])]
#[case("isolation: {fs: {read: [1]}}", &["isolation.fs.read[0]: must be a text"])]
#[case("isolation: {resources: {mem: -1}}", &["isolation.resources.mem: "])]
#[case("isolation: {resources: {mem: 1M}}", &["64M or more"])]
#[case("isolation: {resources: {cpu: '-2'}}", &["isolation.resources.cpu: "])]
#[case("isolation: {secrets: ['/a:/b:/c']}", &["isolation.secrets[0]"])]
#[case("isolation: {allow_hosts: [x.example], network: deny}", &["`network: allowlist`"])]
#[case("isolation: {network: allow}, env: {NODE_OPTIONS: -r x}", &["outside the sandbox too"])]
#[case("owner_channel: {identity: boss, owners: [x]}", &["needs `session: acp`"])]
#[case("managed_cli: task-workflow", &["managed_cli: must be a list"])]
#[case("model_chain: []", &["model_chain: is an empty list"])]
#[case("oversee: [{role: B}]", &["`interval` is missing"])]
#[case("oversee: [{role: B, interval: 10}]", &["interval: must be a text"])]
#[case("oversee: [{role: C, interval: 10m}]", &["there is no role `C`"])]
fn a_key_is_refused_with_what_to_write(#[case] keys: &str, #[case] parts: &[&str]) {
    let line = files(&format!("roles:\n  A: {{{keys}}}\n  B: {{}}\n")).only();
    names(&line, &["/home/op/fleet.yaml:2:", "role 'A': "]);
    names(&line, parts);
}

/// The same for what stands above the roles.
#[rstest]
#[case("rolez: {A: {}}", &["rolez: unknown key", "did you mean `roles`?"])]
#[case("defaults: {harnes: codex}", &["defaults.harnes: unknown key", "did you mean `harness`?"])]
#[case("defaults: {identity: x}", &["defaults.identity: unknown key", "directly below the role"])]
#[case("roles: [A]", &["roles: must be a mapping"])]
#[case("roles: {1: {}}", &["a key must be a text", "put it in quotes: \"1\""])]
#[case("roles: {_A: {}}", &["is not a valid name for a role", "letter or digit"])]
#[case("roles: {A: hello}", &["role 'A': must be a mapping"])]
#[case("roles: {A: {identity: x}, B: {identity: x}}", &["role 'B': identity: ", "role `A`"])]
#[case("roles: {Rev: {}, rev: {}}", &["role 'rev': ", "case of letters"])]
#[case("roles: {A: {cwd: '${nope}/x'}}", &["cwd: ", "${nope}"])]
#[case("vars: {a: [x]}", &["vars.a: must be a text, number or boolean"])]
#[case("start_stagger_ms: '5'", &["start_stagger_ms: ", "a number of milliseconds"])]
#[case("start_stagger_ms: -1", &["start_stagger_ms: ", "`-1`"])]
#[case("loops: {l: {roles: [A], interval: 30s, prompt: x}}\nroles: {A: {session: acp}}",
    &["loops.l.interval: is too short", "1m or more"])]
#[case("loops: {l: {roles: [A], interval: 5m, prompt: x}}\nroles: {A: {}}",
    &["loops.l.roles", "`session: acp`"])]
#[case("watchdogs: {w: {coordinator: boss, interval: 10}}", &["watchdogs.w.interval: must be a"])]
fn the_top_level_is_refused_with_what_to_write(#[case] text: &str, #[case] parts: &[&str]) {
    names(&files(text).only(), parts);
}

#[test]
fn loops_and_watchdogs_are_kept_for_later() {
    let fleet = files(
        "loops:\n  nightly: {roles: ['*'], interval: 1d, jitter: 10m, prompt: Tidy up.}\n\
         watchdogs:\n  dog: {coordinator: boss, watch: [A], interval: 10m, timeout: 5m}\n\
         roles:\n  A: {session: acp}\n",
    )
    .fleet();
    let written: Vec<&str> = fleet
        .unavailable
        .iter()
        .filter(|it| it.place.is_some())
        .map(|it| it.path.as_str())
        .collect();
    assert_eq!(written, ["loops", "watchdogs"]);
    let refused = unavailable(&fleet.roles["A"]);
    assert_eq!(refused, ["session", "loops.nightly", "watchdogs.dog"]);
}
