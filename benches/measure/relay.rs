//! A network that our launcher serves, against a direct connection: 10 MB, and 1000 small requests.
//!
//! The same client runs in a sandbox under `network: broker` and on the host, in turn.

#![expect(clippy::cast_precision_loss, reason = "numbers of bytes and requests, far below 2^52")]

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::isolation::{Mount, MountMode, MountOrigin, NetworkMode};
use fleet_core::launch::{LaunchCommand, LaunchPlan};
use fleet_core::path::LexicalPath;
use fleet_core::port::{FileIdentity, FileKind, IsolationBackend as _};

use crate::sandbox::{host_evidence, run, write_launch_file};
use crate::{Failure, summary};

const BULK: usize = 10_000_000;
const REQUESTS: usize = 1000;
/// A request that asks for the bulk; any other byte is answered by itself.
const ASK_FOR_BULK: u8 = b'B';

/// Runs the client in both ways in turn, `times` times, and compares within each round.
pub(crate) fn compare(
    times: usize,
    binary: &str,
    directory: &Path,
) -> Result<Vec<String>, Failure> {
    let directory = Utf8PathBuf::try_from(directory.canonicalize()?)?;
    let root = directory.join("relay");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&root)?;
    for name in ["m0", "m1"] {
        fs::create_dir_all(root.join(name))?;
    }
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream));
        }
    });
    let own = Utf8PathBuf::try_from(std::env::current_exe()?)?;
    let result = root.join("m1/result");
    let client = ["client", address.to_string().as_str(), result.as_str()].map(str::to_owned);
    let argv: Vec<String> = std::iter::once(own.to_string()).chain(client.clone()).collect();
    let command = LaunchCommand { argv, cwd: root.join("m1") };
    let plan = plan(&root, &own, address, &command)?;

    let mut columns: [Vec<f64>; 4] = Default::default();
    for round in 0..=times {
        run(Command::new(&own).args(&client))?;
        let direct = numbers(&result)?;
        let file = write_launch_file(&plan, command.clone(), &directory, round)?;
        run(Command::new(binary).args(["_pane", file.as_str()]))?;
        let relayed = numbers(&result)?;
        if round > 0 {
            columns[0].push(relayed[0] / direct[0]);
            columns[1].push(relayed[1] - direct[1]);
            columns[2].push(relayed[2] - direct[2]);
            columns[3].push(BULK as f64 / relayed[0]);
        }
    }
    let [bulk, kept, fresh, rate] = columns;
    let lines = [
        summary::line("bulk-of-direct", bulk),
        summary::line("request-over", kept),
        summary::line("connection-over", fresh),
        // Bytes in a microsecond are megabytes in a second.
        summary::line("rate", rate),
    ];
    Ok(lines.into_iter().flatten().collect())
}

fn plan(
    root: &Utf8Path,
    own: &Utf8Path,
    address: SocketAddr,
    command: &LaunchCommand,
) -> Result<LaunchPlan, Failure> {
    let identify = |path: &LexicalPath| {
        fs::symlink_metadata(path.as_str()).map_or(FileIdentity { dev: 0, ino: 0 }, |found| {
            FileIdentity { dev: found.dev(), ino: found.ino() }
        })
    };
    let mut policy = fleet_benches::policy_of(&LexicalPath::absolute(root.as_str())?, 2, identify)?;
    let program = LexicalPath::absolute(own.as_str())?;
    policy.mounts.push(Mount {
        identity: Some(identify(&program)),
        source: program.clone(),
        kind: Some(FileKind::File),
        destination: program,
        mode: MountMode::ReadOnly,
        origin: MountOrigin::LaunchClosure,
    });
    policy.network = NetworkMode::Broker;
    policy.reachable = vec![address.to_string().parse()?];
    Ok(fleet_benches::host_backend().plan(&policy, &host_evidence()?, command)?)
}

/// What the client wrote: microseconds of the bulk, of a request, of a request with a connection.
fn numbers(file: &Utf8Path) -> Result<[f64; 3], Failure> {
    let text = fs::read_to_string(file)?;
    let numbers: Vec<f64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    fs::remove_file(file)?;
    <[f64; 3]>::try_from(numbers).map_err(|_| "the client was interrupted".into())
}

fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let bulk = vec![b'x'; BULK];
    let mut request = [0];
    while stream.read(&mut request)? == 1 {
        stream.write_all(if request[0] == ASK_FOR_BULK { &bulk } else { &request })?;
    }
    Ok(())
}

/// Measures one connection to a server and writes what it found into a file.
pub(crate) fn client(address: SocketAddr, file: &Path) -> Result<Vec<String>, Failure> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let start = Instant::now();
    stream.write_all(&[ASK_FOR_BULK])?;
    let mut bulk = vec![0; BULK];
    stream.read_exact(&mut bulk)?;
    let bulk = start.elapsed().as_secs_f64() * 1e6;

    let mut answer = [0];
    let start = Instant::now();
    for _ in 0..REQUESTS {
        stream.write_all(b"r")?;
        stream.read_exact(&mut answer)?;
    }
    let kept = start.elapsed().as_secs_f64() * 1e6 / REQUESTS as f64;

    let start = Instant::now();
    for _ in 0..REQUESTS {
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(b"r")?;
        stream.read_exact(&mut answer)?;
    }
    let fresh = start.elapsed().as_secs_f64() * 1e6 / REQUESTS as f64;
    fs::write(file, format!("{bulk} {kept} {fresh}"))?;
    Ok(Vec::new())
}
