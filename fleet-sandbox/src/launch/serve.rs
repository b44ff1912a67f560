//! Between the start of a sandbox and that of its command: its network is served.

use std::os::fd::OwnedFd;
use std::time::Duration;

use fleet_core::isolation::BackendName;
use fleet_core::launch::LaunchFile;
use tokio::time::timeout;

use super::Refusal;
use super::record;
use super::relay::Network;
use super::status::{Report, StatusPipe};
use crate::observe::podman;

/// For the sandbox program to say which process is its first.
const APPEARANCE: Duration = Duration::from_secs(10);
/// The same for a container, which takes a second where nothing else goes on.
const SLOW: Duration = Duration::from_secs(40);

/// What is known of a sandbox before its command starts.
#[derive(Default)]
pub(super) struct Served {
    pub(super) network: Option<Network>,
    pub(super) reports: Vec<Report>,
}

/// Serves the network of a sandbox whose command waits for it, then lets the command start. A sandbox
/// that ends before is no error here: the guard tells why.
///
/// # Errors
/// The network cannot be served. The command still waits, until `release` is closed.
pub(super) async fn network(
    launch: &LaunchFile,
    program: u32,
    status: &mut StatusPipe,
    release: &OwnedFd,
) -> Result<Served, Refusal> {
    let container = launch.plan.backend == BackendName::Podman;
    if launch.plan.network.is_none() && !container {
        return Err(Refusal::Plan {
            why: "it waits for a network that it does not have".to_owned(),
        });
    }
    let mut reports = Vec::new();
    let init = timeout(if container { SLOW } else { APPEARANCE }, async {
        while status.is_open() {
            reports.extend(status.next().await);
            if let Some(init) = reports.iter().find_map(|report| report.child_pid) {
                return Some(init);
            }
        }
        None
    });
    let init = init.await.map_err(|_| Refusal::System {
        action: "serve the sandbox's network",
        detail: "the sandbox program does not say which process is its first".to_owned(),
    })?;
    let Some(init) = init else { return Ok(Served { network: None, reports }) };
    if container {
        podman::before(launch, program, init).map_err(|why| Refusal::System {
            action: "make the container as planned",
            detail: why,
        })?;
    }
    record::sandbox_process(launch, init);
    let plan = launch.plan.network.as_ref();
    let network = plan.map(|plan| Network::open(plan, launch, init)).transpose()?;
    rustix::io::write(release, b"g")
        .map_err(|errno| Refusal::system("let the command start")(errno.into()))?;
    Ok(Served { network, reports })
}
