//! What agents run all day works in the sandbox and under its system call filter: Node.js, Python and
//! Cargo. Git: `field::worktrees`; Claude Code and Codex: `e2e::agents`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{TestEnvironment, needs, wait_for};

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

/// Processes, threads, shared memory, a database, a socket, certificates.
const PYTHON: &str = r"
import multiprocessing, socket, sqlite3, ssl, subprocess, tempfile, threading, traceback

def double(number):
    return 2 * number

def main():
    assert subprocess.run(['/bin/sh', '-c', 'echo child'], capture_output=True).stdout == b'child\n'
    with multiprocessing.get_context('spawn').Pool(2) as pool:
        assert pool.map(double, range(4)) == [0, 2, 4, 6]
    from multiprocessing import shared_memory
    memory = shared_memory.SharedMemory(create=True, size=4096)
    memory.buf[0] = 7
    memory.close()
    memory.unlink()
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

/// A role that runs a script in a working directory, in the sandbox, and what the script left there.
fn ran(env: &TestEnvironment, script: &str, readable: &[&Path]) {
    fs::create_dir_all(env.path("work")).expect("directory");
    let agent = env.script("tools/agent", &format!("#!/bin/sh\n{script}\nexec cat\n"));
    let mut fleet = String::from("roles:\n  A:\n    harness: command\n");
    writeln!(fleet, "    cwd: {}", env.path("work").display()).expect("a text");
    writeln!(fleet, "    harness_options: {{ argv: [{}] }}", agent.display()).expect("a text");
    let readable: Vec<String> = readable.iter().map(|it| format!("{:?}", it.display())).collect();
    let read = readable.join(", ");
    writeln!(fleet, "    isolation: {{ network: deny, fs: {{ read: [{read}] }} }}")
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

#[test]
fn node_works_in_the_sandbox() {
    needs!("tmux", "bwrap");
    if of_the_system("node").is_none() {
        skip!("/usr/bin/node is not installed");
    }
    let env = TestEnvironment::new();
    env.write("work/program.js", NODE);
    ran(&env, "/usr/bin/node program.js", &[]);
    assert_eq!(result(&env, "node.done"), "good");
}

#[test]
fn python_works_in_the_sandbox() {
    needs!("tmux", "bwrap");
    if of_the_system("python3").is_none() {
        skip!("/usr/bin/python3 is not installed");
    }
    let env = TestEnvironment::new();
    env.write("work/program.py", PYTHON);
    ran(&env, "/usr/bin/python3 program.py", &[]);
    assert_eq!(result(&env, "python.done"), "good");
}

/// With a build script, a dependency and a test run. The toolchain is where the person who runs the
/// tests has it, which a plain test user may not be able to read.
#[test]
fn cargo_builds_and_tests_in_the_sandbox_as_root() {
    needs!("tmux", "bwrap", "cargo", "cc");
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
    ran(&env, &script, &[Path::new(&sysroot)]);
    let code = result(&env, "cargo.done");
    let log = fs::read_to_string(env.path("work/cargo.log")).expect("a log");
    assert_eq!(code, "0\n", "{log}");
    assert!(log.contains("test all ... ok"), "{log}");
}
