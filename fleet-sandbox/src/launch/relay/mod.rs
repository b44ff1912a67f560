//! Serves the network of a sandbox: listens inside it, decides and dials outside of it.
//!
//! A TCP socket belongs to the network namespace in which it was made, whoever holds it. So
//! `inside` makes the listening sockets there and hands them over; this process accepts, judges each
//! connection by the rules of the plan, resolves the name after that, judges the answer, and copies bytes. No program
//! and no other address of the host is reachable. The sockets die with this process.
//! Tests: `escape/network.rs`, `integration/relay.rs`.

mod connect_request;
mod connection;
mod inside;
mod log;
mod merge;
mod resolve;

use std::sync::Arc;
use std::time::Duration;

use fleet_core::isolation::network::Serve;
use fleet_core::launch::{LaunchFile, NetworkPlan};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::Refusal;
use connection::Relay;
use log::ConnectionLog;

pub use inside::listen_inside;

/// Connections of one role at a time; more wait.
const MOST: usize = 256;
/// After a failure to accept, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);
/// Between two looks at what is to be written. A launcher that is killed loses the counts of so long.
const TICK: Duration = Duration::from_secs(1);

/// The running relay; everything it serves ends when it is dropped.
pub(super) struct Network {
    relay: Arc<Relay>,
    _tasks: JoinSet<()>,
}

impl Drop for Network {
    fn drop(&mut self) {
        self.relay.log().finish();
    }
}

impl Network {
    /// Opens the listeners inside the network namespace of `sandboxed` and begins to serve them.
    pub(super) fn open(
        plan: &NetworkPlan,
        launch: &LaunchFile,
        sandboxed: u32,
    ) -> Result<Self, Refusal> {
        let Some(path) = &launch.connections else {
            return Err(Refusal::Plan { why: "connections have no record".to_owned() });
        };
        let log = ConnectionLog::open(path, &launch.launch_id, &plan.rules)
            .map_err(Refusal::system("open the record of connections"))?;
        let sockets = inside::sockets(sandboxed, plan)?;
        let relay = Arc::new(Relay::new(plan.rules.clone(), log));
        let slots = Arc::new(Semaphore::new(MOST));
        let mut tasks = JoinSet::new();
        for (socket, listener) in sockets.into_iter().zip(&plan.listeners) {
            let serve = || -> std::io::Result<TcpListener> {
                let socket = std::net::TcpListener::from(socket);
                socket.set_nonblocking(true)?;
                TcpListener::from_std(socket)
            };
            let socket = serve().map_err(Refusal::system("serve the sandbox's network"))?;
            tasks.spawn(accept(
                socket,
                listener.serve.clone(),
                Arc::clone(&relay),
                Arc::clone(&slots),
            ));
        }
        let ticking = Arc::clone(&relay);
        tasks.spawn(async move {
            loop {
                tokio::time::sleep(TICK).await;
                ticking.log().tick();
            }
        });
        Ok(Self { relay, _tasks: tasks })
    }
}

async fn accept(listener: TcpListener, serve: Serve, relay: Arc<Relay>, slots: Arc<Semaphore>) {
    let mut connections = JoinSet::new();
    loop {
        // Never closed, so this only waits.
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let (relay, serve) = (Arc::clone(&relay), serve.clone());
                connections.spawn(async move {
                    relay.serve(stream, &serve).await;
                    drop(slot);
                });
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
        // Finished ones are let go of.
        while connections.try_join_next().is_some() {}
    }
}
