//! The real Claude Code and Codex where only their provider can be reached. Landlock tells no hosts apart:
//! it is not here, and `backends` shows what agents get from it.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rstest::rstest;
use serde_json::json;

use crate::support::agents::{Agent, AgentFleet, AgentRole, needs_agent, run, say};
use crate::support::needs;

/// Listens on the host's loopback and counts who comes.
fn decoy() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let port = listener.local_addr().expect("address").port();
    let met = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&met);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            drop(stream);
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    (port, met)
}

#[rstest]
fn an_agent_reaches_its_provider_and_nothing_else(
    #[values(Agent::Claude, Agent::Codex)] agent: Agent,
    #[values("bubblewrap", "podman")] backend: &str,
    #[values("broker", "allowlist", "allow")] network: &str,
) {
    needs!("tmux", "bwrap", "socat", "bash", "podman", "runc", "catatonit", "newuidmap");
    needs_agent!(agent);
    let (port, met) = decoy();
    let probe = format!(
        "bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port} && echo rea''ched || echo ref''used'; echo tried"
    );
    let mut role = AgentRole::new("A", agent, false, json!([run(&probe), say("all done")]));
    // The port of the provider is not known before there is one.
    role.more = "    isolation: ISOLATION\n".to_owned();
    let fleet = AgentFleet::new(std::slice::from_ref(&role));
    let provider = fleet.provider.url.trim_start_matches("http://").to_owned();
    let hosts = match network {
        "allowlist" => format!(", allow_hosts: ['{provider}']"),
        _ => String::new(),
    };
    let block =
        format!("{{ backend: {backend}, network: {network}, on_unavailable: strict{hosts} }}");
    let yaml = String::from_utf8(fleet.env.read("fleet.yaml").expect("a fleet")).expect("text");
    fleet.env.write("fleet.yaml", &yaml.replace("ISOLATION", &block));
    fleet.env.run(["init"]).expect(0);
    fleet.up();
    fleet.wait_step("all done");
    fleet.wait_readiness("A", "idle");

    let told = fleet.told_after("/dev/tcp");
    assert!(told.contains("tried"), "the tool was called: {told}");
    let open = network == "allow";
    // With the host's network it is there to be reached: the probe proves something.
    assert_eq!(told.contains("reached"), open, "{told}");
    assert_eq!(told.contains("refused"), !open, "{told}");
    assert_eq!(met.load(Ordering::SeqCst) > 0, open);

    let status = fleet.env.status("A");
    assert_eq!(status["status"]["isolation"]["backend"], backend, "{status}");
    let rows = status["status"]["isolation"]["rows"].to_string();
    assert!(rows.is_empty() || !rows.contains("missing"), "{rows}");
    let net = fleet.env.run(["net", "A", "--json"]).expect(0).json();
    let connections = net["connections"].as_array().expect("a list");
    assert_eq!(connections.iter().any(|it| it["target"] == json!(provider)), !open, "{net}");
    assert!(connections.iter().all(|it| it["decision"] == "allowed"), "{net}");

    fleet.env.run(["down"]).expect(0);
    fleet.env.expect_no_process();
}
