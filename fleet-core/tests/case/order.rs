//! The order of policies, row by row (01 §2.15).

use fleet_core::config::Fleet;
use fleet_core::harness::Harnesses;
use fleet_core::policy::check::compare;
use fleet_core::policy::order::{Dimension, ORDER};
use rstest::rstest;

use crate::fleet::{base, lines};

fn fleet(text: &str) -> Fleet {
    base(text).with(Harnesses::built_in()).fleet()
}

fn role(text: &str) -> Fleet {
    fleet(&format!("roles:\n  A: {text}\n"))
}

/// What is other, as people read it; what does not widen is in brackets.
fn diff(old: &Fleet, new: &Fleet) -> Vec<String> {
    compare(old, new, &Harnesses::built_in())
        .widenings
        .iter()
        .map(|it| {
            let text =
                format!("{}: {}: {} -> {}", it.dimension.row().word, it.subject, it.from, it.to);
            if it.widens() { text } else { format!("[{text}]") }
        })
        .collect()
}

#[test]
fn the_table_has_one_row_for_each_dimension_in_its_order() {
    for (number, row) in ORDER.iter().enumerate() {
        assert_eq!(row.dimension as usize, number, "{}", row.word);
        assert_eq!(row.dimension.row().word, row.word);
        assert!(!row.implied_by.contains(&row.dimension), "{}", row.word);
        let earlier = |cause: &Dimension| {
            // Causes of causes end, so that what is left out has a cause that is listed.
            (*cause as usize) < number || row.dimension == Dimension::Paths
        };
        assert!(row.implied_by.iter().all(earlier), "{}", row.word);
    }
}

#[rstest]
#[case::sandbox("{isolation: {network: deny}}", "{}", &["isolation: isolation: isolated -> none"])]
#[case::sandbox_none(
    "{isolation: {network: deny, fs: {read: [/d]}, resources: {pids: 20}}}",
    "{isolation: {backend: none}}",
    &["isolation: isolation: isolated -> none"]
)]
#[case::backend(
    "{isolation: {backend: bubblewrap, network: deny}}",
    "{isolation: {network: deny}}",
    &["backend: landlock: not allowed -> allowed"]
)]
#[case::strict(
    "{isolation: {on_unavailable: strict, network: deny}}",
    "{isolation: {on_unavailable: warn, network: deny}}",
    &["on_unavailable: on_unavailable: refuses to start -> starts un-isolated"]
)]
#[case::default_of_on_unavailable(
    "{isolation: {network: allow, fs: {write: [/d]}}}",
    "{isolation: {network: allow}}",
    &["on_unavailable: on_unavailable: refuses to start -> starts un-isolated"]
)]
#[case::protect(
    "{isolation: {network: deny, protect: [Makefile]}}",
    "{isolation: {network: deny}}",
    &["protect: Makefile: protected -> not protected"]
)]
#[case::protect_more(
    "{isolation: {network: deny}}",
    "{isolation: {network: deny, protect: [Makefile]}}",
    &[]
)]
#[case::protect_nothing(
    "{isolation: {network: deny, protect: [.git]}}",
    "{isolation: {network: deny, protect: []}}",
    &[
        "protect: .claude: protected -> not protected",
        "protect: .codex: protected -> not protected",
        "protect: .git: protected -> not protected",
        "protect: .git/config: protected -> not protected",
        "protect: .git/hooks: protected -> not protected",
        "protect: .mcp.json: protected -> not protected",
    ]
)]
#[case::system(
    "{isolation: {network: deny}}",
    "{isolation: {network: deny, system: full}}",
    &["system: system: curated -> full"]
)]
#[case::nested(
    "{isolation: {network: deny}}",
    "{isolation: {network: deny, nested_sandbox: true}}",
    &["nested_sandbox: nested_sandbox: false -> true"]
)]
#[case::mount(
    "{isolation: {network: deny}}",
    "{isolation: {network: deny, fs: {read: [/d]}}}",
    &["paths: /d: not reachable -> ro"]
)]
#[case::writable(
    "{isolation: {network: deny, fs: {read: [/d]}}}",
    "{isolation: {network: deny, fs: {write: [/d]}}}",
    &["paths: /d: ro -> rw"]
)]
#[case::inside_writable(
    "{isolation: {network: deny, fs: {write: [/d]}}}",
    "{isolation: {network: deny, fs: {write: [/d, /d/a], read: [/d/b]}}}",
    &[]
)]
#[case::inside_readable(
    "{isolation: {network: deny, fs: {read: [/d]}}}",
    "{isolation: {network: deny, fs: {read: [/d], write: [/d/a]}}}",
    &["paths: /d/a: ro -> rw"]
)]
#[case::subdirectory(
    "{isolation: {network: deny, fs: {write: [/d]}}}",
    "{isolation: {network: deny, fs: {write: [/d/a]}}}",
    &[]
)]
#[case::parent_directory(
    "{isolation: {network: deny, fs: {write: [/d/a]}}}",
    "{isolation: {network: deny, fs: {write: [/d]}}}",
    &["paths: /d: not reachable -> rw"]
)]
#[case::read_only_hole(
    "{isolation: {network: deny, fs: {write: [/d], read: [/d/keys]}}}",
    "{isolation: {network: deny, fs: {write: [/d]}}}",
    &["paths: /d/keys: ro -> rw"]
)]
#[case::cwd(
    "{cwd: /w, isolation: {network: deny}}",
    "{cwd: /x, isolation: {network: deny}}",
    &["paths: /x: not reachable -> rw"]
)]
#[case::cwd_without_isolation("{cwd: /w}", "{cwd: /x}", &["paths: /x: ro -> rw"])]
#[case::into_isolation("{cwd: /w}", "{cwd: /w, isolation: {network: allow, fs: {read: [/d]}}}", &[])]
#[case::into_isolation_and_more(
    "{cwd: /w}",
    "{cwd: /w, isolation: {network: allow, fs: {write: [/d]}}}",
    &["paths: /d: ro -> rw"]
)]
#[case::add_dirs(
    "{harness: codex, harness_options: {add_dirs: [/a]}}",
    "{harness: codex, harness_options: {add_dirs: [/a/b, /c]}}",
    &["paths: /c: ro -> rw"]
)]
#[case::secret(
    "{isolation: {network: deny}}",
    "{isolation: {network: deny, secrets: ['/k/one:/run/secrets/one']}}",
    &["secrets: /run/secrets/one: not shown -> shown"]
)]
#[case::secret_elsewhere(
    "{isolation: {network: deny, secrets: ['/k/one:/run/secrets/one']}}",
    "{isolation: {network: deny, secrets: ['/k/one:/run/secrets/two']}}",
    &[]
)]
#[case::another_secret_there(
    "{isolation: {network: deny, secrets: ['/k/one:/run/secrets/one']}}",
    "{isolation: {network: deny, secrets: ['/k/two:/run/secrets/one']}}",
    &["secrets: /run/secrets/one: shown -> shown"]
)]
#[case::network(
    "{isolation: {network: deny}}",
    "{isolation: {network: allow}}",
    &[
        "on_unavailable: on_unavailable: refuses to start -> starts un-isolated",
        "network: every host: not reachable -> reachable"
    ]
)]
#[case::host(
    "{isolation: {network: allowlist, allow_hosts: ['*.a.example', 'b.example:443']}}",
    "{isolation: {network: allowlist, allow_hosts: ['x.a.example:80', 'B.example:443', b.example]}}",
    &["network: b.example: not reachable -> reachable"]
)]
#[case::allowlist_to_broker(
    "{isolation: {network: allowlist, allow_hosts: [a.example]}}",
    "{isolation: {network: broker, allow_hosts: [a.example]}}",
    &["network: api.anthropic.com:443: not reachable -> reachable"]
)]
// Only what can be reached counts of the value of a variable.
#[case::another_model_server(
    "{env: {ANTHROPIC_BASE_URL: 'https://a.example'}, isolation: {network: broker}}",
    "{env: {ANTHROPIC_BASE_URL: 'https://b.example/v1'}, isolation: {network: broker}}",
    &["network: b.example:443: not reachable -> reachable"]
)]
#[case::the_same_model_server(
    "{env: {ANTHROPIC_BASE_URL: 'https://a.example'}, isolation: {network: broker}}",
    "{env: {ANTHROPIC_BASE_URL: 'https://A.example:443/v1'}, isolation: {network: broker}}",
    &[]
)]
#[case::approval(
    "{}",
    "{permissions: {approval: auto}}",
    &["approval: approval: ask -> auto"]
)]
#[case::filesystem(
    "{permissions: {filesystem: read-only}}",
    "{permissions: {filesystem: unrestricted}}",
    &["filesystem: filesystem: read-only -> unrestricted"]
)]
#[case::unattended(
    "{}",
    "{permissions: {unattended: wait}}",
    &["unattended: unattended: deny -> wait"]
)]
#[case::native_mode(
    "{}",
    "{harness_options: {permission_mode: bypassPermissions}}",
    &[
        "approval-in-force: approval-in-force: ask -> allow",
        "filesystem-in-force: filesystem-in-force: workspace -> unrestricted"
    ]
)]
#[case::narrower_native_mode(
    "{permissions: {approval: auto}}",
    "{permissions: {approval: auto}, harness_options: {permission_mode: plan}}",
    &[]
)]
#[case::codex_bound(
    "{harness: codex}",
    "{harness: codex, harness_options: {sandbox: danger-full-access}}",
    &["filesystem-in-force: filesystem-in-force: workspace -> unrestricted"]
)]
#[case::codex_bound_dropped(
    "{harness: codex, harness_options: {sandbox: read-only}}",
    "{harness: codex}",
    &["filesystem-in-force: filesystem-in-force: read-only -> workspace"]
)]
#[case::cap(
    "{isolation: {network: deny, resources: {mem: 1G, pids: 20, cpu: 2}}}",
    "{isolation: {network: deny, resources: {mem: 2G, pids: 20}}}",
    &["resources: cpu: 2000 m -> no cap", "resources: mem: 1G -> 2G"]
)]
#[case::cap_lowered(
    "{isolation: {network: deny, resources: {mem: 2G}}}",
    "{isolation: {network: deny, resources: {mem: 1G, cpu: 1}}}",
    &[]
)]
#[case::environment(
    "{env: {A: x}, env_pass: [P]}",
    "{env: {A: y, B: x}, env_pass: [Q, P]}",
    &["env_pass: Q: not passed -> passed", "env: B: not set -> set"]
)]
#[case::workflow(
    "{}",
    "{managed_cli: [task-workflow]}",
    &["managed_cli: task-workflow: not allowed -> allowed"]
)]
#[case::server(
    "{}",
    "{harness_options: {mcp_servers: {github: {command: gh-mcp, args: [--token, CANARY]}}}}",
    &["mcp_servers: github: not there -> gh-mcp"]
)]
#[case::server_changed(
    "{harness_options: {mcp_servers: {x: {type: http, url: 'https://u:CANARY@a.example/p'}}}}",
    "{harness_options: {mcp_servers: {x: {type: http, url: 'https://u:CANARY@b.example/p'}}}}",
    &["mcp_servers: x: a.example -> b.example"]
)]
#[case::secret_of_a_server(
    "{harness_options: {mcp_servers: {x: {command: m, env: {K: CANARY1}}}}}",
    "{harness_options: {mcp_servers: {x: {command: m, env: {K: CANARY2}}}}}",
    &[]
)]
#[case::codex_server(
    "{harness: codex}",
    "{harness: codex, harness_options: {config: {mcp_servers.x.command: m, mcp_servers.x.args: [a]}}}",
    &["mcp_servers: x: not there -> m"]
)]
#[case::options(
    "{harness: codex, harness_options: {config: {model_verbosity: low}}}",
    "{harness: codex, harness_options: {search: true, config: {model_verbosity: CANARY}}}",
    &[
        "harness_options: config.model_verbosity: another value -> another value",
        "harness_options: search: not set -> true"
    ]
)]
#[case::switches(
    "{harness_options: {plugins: {a@b: false, c@d: false}}}",
    "{harness_options: {plugins: {a@b: true}, mcp_servers_only: false, remote_control: false}}",
    &[
        "harness_options: mcp_servers_only: not set -> false",
        "harness_options: plugins.a@b: not set -> true",
        "switched-off: plugins.a@b: switched off -> not switched off",
        "switched-off: plugins.c@d: switched off -> not switched off"
    ]
)]
#[case::neutral(
    "{harness_options: {effort: low}, mission: x}",
    "{harness_options: {effort: high, mcp_servers_only: true}, mission: y, model: opus}",
    &[]
)]
#[case::program(
    "{harness: command, harness_options: {argv: [cat, CANARY]}}",
    "{harness: command, harness_options: {argv: [nc, CANARY]}}",
    &["[program: argv: cat -> nc]"]
)]
#[case::harness(
    "{isolation: {network: deny}}",
    "{harness: command, harness_options: {argv: [sh]}, isolation: {network: deny}}",
    &[
        "approval-in-force: approval-in-force: ask -> whatever the program does",
        "filesystem-in-force: filesystem-in-force: workspace -> whatever the program does",
        "[program: argv: not used -> sh]",
        "[program: command: not used -> used]"
    ]
)]
fn a_widening_is_named(#[case] old: &str, #[case] new: &str, #[case] expected: &[&str]) {
    let found = diff(&role(old), &role(new));
    assert_eq!(found, expected);
    assert!(!format!("{found:?}").contains("CANARY"));
}

#[test]
fn a_widening_has_the_place_that_says_so() {
    let old = fleet(
        "defaults:\n  isolation: {network: deny, protect: [.git]}\nroles:\n  A: {}\n  B: {}\n",
    );
    let new = fleet(
        "defaults:\n  isolation:\n    network: deny\n    protect: []\n    fs: {read: [/d]}\nroles:\n  A: {}\n  B:\n    isolation:\n      network: deny\n      resources: {}\n",
    );
    let found = compare(&old, &new, &Harnesses::built_in());
    let places: Vec<String> = found
        .widenings
        .iter()
        .map(|it| {
            let place = it.place.as_ref().expect("a place");
            format!(
                "{} {} {}:{}",
                it.role.as_deref().expect("a role"),
                it.key,
                place.line,
                place.column
            )
        })
        .collect();
    let mut places = places;
    places.dedup();
    assert_eq!(
        places,
        [
            "A isolation.protect 4:5",
            "A isolation.fs.read[0] 5:17",
            // The default of a block of its own protects less.
            "B isolation.protect 9:5",
        ]
    );
}

#[test]
fn rules_of_the_fleet_are_compared_too() {
    let old = fleet("policy: {forbid_paths: [/k, /l/m]}\nroles: {A: {}}\n");
    let new = fleet("policy: {forbid_paths: [/l, /n]}\nroles: {A: {}}\n");
    let dropped = ["policy.forbid_paths: /k: forbidden -> not forbidden"];
    assert_eq!(diff(&old, &new), dropped);
    let none = fleet("roles: {A: {}}\n");
    let found = compare(&old, &none, &Harnesses::built_in());
    assert_eq!(found.widenings.len(), 2);
    assert!(found.widenings.iter().all(|it| it.place.is_some() && it.role.is_none()));
    assert!(diff(&none, &old).is_empty());
}

/// A requirement that is dropped or loosened holds back less; one that is added or tightened more.
#[test]
fn a_loosened_requirement_is_a_widening() {
    let of = |require: &str| {
        fleet(&format!(
            "policy: {{require: {require}}}\nroles: {{A: {{isolation: {{network: deny, resources: \
             {{cpu: 1, mem: 1G, pids: 100}}}}, permissions: {{approval: ask}}}}}}\n"
        ))
    };
    let strict = "{isolation: L3, network: [deny], approval: ask, resources: [cpu, mem]}";
    for (lax, lines) in [
        (
            "{isolation: L1, network: [deny], approval: ask, resources: [cpu, mem]}",
            vec!["policy.require: isolation: L3 -> L1"],
        ),
        (
            "{isolation: L3, network: [deny, broker], approval: auto, resources: [cpu, mem]}",
            vec![
                "policy.require: approval: at most ask -> at most auto",
                "policy.require: no network `broker`: required -> not required",
            ],
        ),
        (
            "{isolation: L3, network: [deny], approval: ask, resources: [cpu]}",
            vec!["policy.require: a cap on mem: required -> not required"],
        ),
    ] {
        let mut widened = diff(&of(strict), &of(lax));
        widened.sort();
        assert_eq!(widened, lines, "{lax}");
        let tightened = diff(&of(lax), &of(strict));
        assert!(tightened.is_empty(), "{tightened:?}");
    }
}

#[test]
fn new_and_removed_roles_are_listed_by_name_and_are_no_widening() {
    let old = fleet("roles: {C: {}, A: {}, B: {}}\n");
    let new = fleet("roles: {Z: {}, A: {}, D: {}}\n");
    let found = compare(&old, &new, &Harnesses::built_in());
    let names = |roles: &[fleet_core::policy::check::OtherRole]| {
        roles.iter().map(|it| it.role.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&found.new_roles), ["D", "Z"]);
    assert_eq!(names(&found.removed_roles), ["B", "C"]);
    assert!(!found.widens());
}

#[test]
fn very_many_grants_are_compared_in_a_moment() {
    let hosts = |from: usize| lines(from..from + 20_000, |n| format!("h{n}.example:443, "));
    let paths = |from: usize| lines(from..from + 20_000, |n| format!("/d/{n}, "));
    let text = |from| {
        format!(
            "{{isolation: {{network: broker, allow_hosts: [{}], fs: {{read: [{}]}}}}}}",
            hosts(from),
            paths(from)
        )
    };
    assert_eq!(diff(&role(&text(0)), &role(&text(10_000))).len(), 20_000);
}
