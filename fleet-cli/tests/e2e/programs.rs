//! What agents run all day works in every sandbox and under its system call filters: Node.js, Python and
//! Cargo. Git: `field::worktrees`; Claude Code and Codex: `e2e::agents`, `e2e::backends`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rstest::rstest;

use crate::support::{TestEnvironment, has_program, needs, wait_for};

/// A server and its client, a thread, a child process, a file watch, a timer.
const NODE: &str = r#"
const assert = require('node:assert');
const fs = require('node:fs');
const http = require('node:http');
const { execFileSync } = require('node:child_process');
const { Worker } = require('node:worker_threads');
(async () => {
    assert.equal(execFileSync('/bin/sh', ['-c', 'echo child']).toString(), 'child\n');
    const sum = await new Promise((done, failed) => {
        const code = 'require("node:worker_threads").parentPort.postMessage(20 + 22)';
        new Worker(code, { eval: true }).on('message', done).on('error', failed);
    });
    assert.equal(sum, 42);
    const server = http.createServer((_, reply) => reply.end('served'));
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    const text = await (await fetch(`http://127.0.0.1:${server.address().port}/`)).text();
    server.close();
    assert.equal(text, 'served');
    const watched = new Promise((done) => fs.watch('.', (_, name) => name === 'seen' && done()));
    setTimeout(() => fs.writeFileSync('seen', ''), 20);
    await watched;
    fs.writeFileSync('node.done', 'good');
    process.exit(0);
})().catch((error) => { fs.writeFileSync('node.done', String(error.stack)); process.exit(1); });
"#;

/// Processes, threads, shared memory, a database, a socket, certificates. With `closed` what lies in
/// `/dev/shm` must be refused.
const PYTHON: &str = r"
import multiprocessing, socket, sqlite3, ssl, subprocess, sys, tempfile, threading, traceback

def double(number):
    return 2 * number

def pool():
    with multiprocessing.get_context('spawn').Pool(2) as pool:
        assert pool.map(double, range(4)) == [0, 2, 4, 6]

def memory():
    from multiprocessing import shared_memory
    memory = shared_memory.SharedMemory(create=True, size=4096)
    memory.buf[0] = 7
    memory.close()
    memory.unlink()

def main():
    assert subprocess.run(['/bin/sh', '-c', 'echo child'], capture_output=True).stdout == b'child\n'
    for shared in (pool, memory):
        if 'closed' in sys.argv:
            try:
                shared()
            except PermissionError:
                continue
            raise AssertionError('it is open')
        shared()
    table = sqlite3.connect('python.db')
    table.execute('pragma journal_mode=wal')
    table.execute('create table t (x)')
    table.execute('insert into t values (5)')
    table.commit()
    assert table.execute('select x from t').fetchone() == (5,)
    server = socket.create_server(('127.0.0.1', 0))
    def answer():
        connection, _ = server.accept()
        connection.sendall(b'served')
        connection.close()
    thread = threading.Thread(target=answer)
    thread.start()
    with socket.create_connection(server.getsockname()) as client:
        assert client.recv(16) == b'served'
    thread.join()
    ssl.create_default_context()
    with tempfile.NamedTemporaryFile() as file:
        file.write(b'x')

if __name__ == '__main__':
    try:
        main()
        result = 'good'
    except BaseException:
        result = traceback.format_exc()
    open('python.done', 'w').write(result)
";

/// A sandbox, with the narrowest network that has a loopback of the role's own or, where there is none, the
/// host's.
#[derive(Debug, Clone, Copy)]
struct Sandbox {
    isolation: &'static str,
    needs: &'static [&'static str],
    /// Whether `/dev/shm` is closed.
    closed: bool,
}

const BUBBLEWRAP: Sandbox =
    Sandbox { isolation: "backend: bubblewrap, network: deny", needs: &["bwrap"], closed: false };
const LANDLOCK: Sandbox =
    Sandbox { isolation: "backend: landlock, network: allow", needs: &[], closed: true };
const PODMAN: Sandbox = Sandbox {
    isolation: "backend: podman, network: deny",
    needs: &["podman", "runc", "catatonit", "newuidmap"],
    closed: false,
};

macro_rules! needs_sandbox {
    ($sandbox:expr) => {
        needs!("tmux");
        if let Some(name) = $sandbox.needs.iter().find(|name| !has_program(name)) {
            skip!(format!("{name} is not installed"));
        }
    };
}

/// A role that runs a script in a working directory, in the sandbox, and what the script left there.
fn ran(env: &TestEnvironment, sandbox: Sandbox, script: &str, readable: &[&Path]) {
    fs::create_dir_all(env.path("work")).expect("directory");
    let agent = env.script("tools/agent", &format!("#!/bin/sh\n{script}\nexec cat\n"));
    let mut fleet = String::from("roles:\n  A:\n    harness: command\n");
    writeln!(fleet, "    cwd: {}", env.path("work").display()).expect("a text");
    writeln!(fleet, "    harness_options: {{ argv: [{}] }}", agent.display()).expect("a text");
    let readable: Vec<String> = readable.iter().map(|it| format!("{:?}", it.display())).collect();
    let read = readable.join(", ");
    let how = sandbox.isolation;
    writeln!(fleet, "    isolation: {{ {how}, on_unavailable: strict, fs: {{ read: [{read}] }} }}")
        .expect("a text");
    env.write("fleet.yaml", &fleet);
    env.run(["up"]).expect(0);
}

fn result(env: &TestEnvironment, name: &str) -> String {
    let file = env.path("work").join(name);
    wait_for(name, || fs::read_to_string(&file).ok().filter(|text| !text.is_empty()))
}

/// Programs of the system, which every sandbox shows.
fn of_the_system(name: &str) -> Option<PathBuf> {
    let path = Path::new("/usr/bin").join(name);
    path.is_file().then_some(path)
}

#[rstest]
#[case::bubblewrap(BUBBLEWRAP)]
#[case::landlock_as_user(LANDLOCK)]
#[case::podman(PODMAN)]
fn node_works_in_the_sandbox(#[case] sandbox: Sandbox) {
    needs_sandbox!(sandbox);
    if of_the_system("node").is_none() {
        skip!("/usr/bin/node is not installed");
    }
    let env = TestEnvironment::new();
    env.write("work/program.js", NODE);
    ran(&env, sandbox, "/usr/bin/node program.js", &[]);
    assert_eq!(result(&env, "node.done"), "good");
}

#[rstest]
#[case::bubblewrap(BUBBLEWRAP)]
#[case::landlock_as_user(LANDLOCK)]
#[case::podman(PODMAN)]
fn python_works_in_the_sandbox(#[case] sandbox: Sandbox) {
    needs_sandbox!(sandbox);
    if of_the_system("python3").is_none() {
        skip!("/usr/bin/python3 is not installed");
    }
    let env = TestEnvironment::new();
    env.write("work/program.py", PYTHON);
    let closed = if sandbox.closed { "closed" } else { "" };
    ran(&env, sandbox, &format!("/usr/bin/python3 program.py {closed}"), &[]);
    assert_eq!(result(&env, "python.done"), "good");
}

/// With a build script, a dependency and a test run. The toolchain is where the person who runs the
/// tests has it, which a plain test user may not be able to read.
///
/// Under Landlock, which takes no root: `a_toolchain_works_under_landlock_as_user`.
#[rstest]
#[case::bubblewrap(BUBBLEWRAP)]
#[case::podman(PODMAN)]
fn cargo_builds_and_tests_in_the_sandbox_as_root(#[case] sandbox: Sandbox) {
    needs_sandbox!(sandbox);
    needs!("cargo", "cc");
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().expect("rustc");
    let sysroot = String::from_utf8(sysroot.stdout).expect("UTF-8").trim().to_owned();
    let env = TestEnvironment::new();
    env.write(
        "work/Cargo.toml",
        "[package]\nname = \"outer\"\nedition = \"2021\"\n[dependencies]\ninner = { path = \"inner\" }\n",
    );
    env.write(
        "work/build.rs",
        "fn main() { println!(\"cargo:rustc-env=BUILT=by the build script\"); }\n",
    );
    env.write(
        "work/src/lib.rs",
        "#[test]\nfn all() { assert_eq!((env!(\"BUILT\"), inner::two()), (\"by the build script\", 2)); }\n",
    );
    env.write("work/inner/Cargo.toml", "[package]\nname = \"inner\"\nedition = \"2021\"\n");
    env.write("work/inner/src/lib.rs", "pub fn two() -> u32 { 2 }\n");
    let script = format!(
        "export PATH={sysroot}/bin:/usr/bin:/bin CARGO_HOME=/tmp/cargo\n\
         cargo test --offline > cargo.log 2>&1\necho $? > cargo.done"
    );
    ran(&env, sandbox, &script, &[Path::new(&sysroot)]);
    let code = result(&env, "cargo.done");
    let log = fs::read_to_string(env.path("work/cargo.log")).expect("a log");
    assert_eq!(code, "0\n", "{log}");
    assert!(log.contains("test all ... ok"), "{log}");
}

/// A C compiler and its linker, which are where every user may read them: as with Cargo, temporary files,
/// child processes, and a program that is run as soon as it is made.
#[test]
fn a_toolchain_works_under_landlock_as_user() {
    needs_sandbox!(LANDLOCK);
    needs!("cc");
    let env = TestEnvironment::new();
    env.write("work/a.c", "int two(void) { return 2; }\n");
    env.write("work/b.c", "int two(void); int main(void) { return two() - 2; }\n");
    let script = "{ cc -c a.c && cc -c b.c && cc -o program a.o b.o && ./program; } > cc.log 2>&1\n\
                  echo $? > cc.done";
    ran(&env, LANDLOCK, script, &[]);
    let code = result(&env, "cc.done");
    let log = fs::read_to_string(env.path("work/cc.log")).expect("a log");
    assert_eq!(code, "0\n", "{log}");
}
