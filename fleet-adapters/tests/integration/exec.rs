use std::time::{Duration, Instant};

use camino::Utf8Path;
use fleet_adapters::{OUTPUT_LIMIT, ProcTable, ProcessExec};
use fleet_core::port::{CommandSpec, Exec, ExecError, Exit, ProcessTable, Signal};

use crate::support::{lives, path_variable, script, temp, until, utf8};

fn shell(text: &str) -> CommandSpec {
    let mut spec = CommandSpec::new("sh", ["-c", text]);
    spec.env = vec![("PATH".to_owned(), path_variable())];
    spec
}

/// Pids that a script wrote into a file, once there are as many.
async fn pids(file: &Utf8Path, count: usize) -> Vec<u32> {
    let read = || {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect::<Vec<u32>>()
    };
    until("pids were written", || read().len() == count).await;
    read()
}

/// A script whose grandchild writes its pid as well.
fn family(file: &Utf8Path) -> CommandSpec {
    shell(&format!("echo $$ >> {file}; (echo $$ > /dev/null; sleep 600 & echo $! >> {file}; wait)"))
}

#[tokio::test]
async fn a_timeout_kills_the_whole_group() {
    let dir = temp();
    let file = utf8(&dir).join("pids");
    let mut spec = family(&file);
    spec.timeout = Duration::from_millis(500);
    let error = ProcessExec.run(&spec).await.expect_err("it hangs");
    assert!(matches!(error, ExecError::Timeout { .. }), "{error:?}");
    for pid in pids(&file, 2).await {
        until("the group is gone", || !lives(pid)).await;
    }
}

#[tokio::test]
async fn dropping_the_call_kills_the_whole_group() {
    let dir = temp();
    let file = utf8(&dir).join("pids");
    let spec = family(&file);
    let running = tokio::spawn(async move { ProcessExec.run(&spec).await });
    let pids = pids(&file, 2).await;
    assert!(pids.iter().all(|pid| lives(*pid)), "they run until the call is dropped");
    running.abort();
    for pid in pids {
        until("the group is gone", || !lives(pid)).await;
    }
}

#[tokio::test]
async fn a_background_child_does_not_delay_the_answer_and_is_left_alone() {
    let dir = temp();
    let file = utf8(&dir).join("pids");
    let spec = shell(&format!("sleep 600 & echo $! > {file}; echo done"));
    let start = Instant::now();
    let output = ProcessExec.run(&spec).await.expect("it ends");
    assert_eq!(output.stdout, b"done\n");
    assert!(start.elapsed() < spec.timeout / 2, "the sleeper keeps the pipes open");
    let background = pids(&file, 1).await;
    assert!(lives(background[0]));
    let table = ProcTable::new();
    let identity = table.identity(background[0]).expect("an answer").expect("it lives");
    table.signal(&identity, Signal::Kill).expect("an answer");
}

#[tokio::test]
async fn all_that_the_program_wrote_is_there_however_it_ended() {
    // Both pipes full to the brim at the end, the largest case that needs no reader.
    let spec = shell("head -c 60000 /dev/zero; head -c 60000 /dev/zero >&2; kill -9 $$");
    let output = ProcessExec.run(&spec).await.expect("it ends");
    assert_eq!(
        (output.exit, output.stdout.len(), output.stderr.len()),
        (Exit::Signal(9), 60_000, 60_000)
    );
}

#[tokio::test]
async fn the_limit_on_output_is_common_to_both_pipes() {
    let half = OUTPUT_LIMIT / 2;
    let spec = shell(&format!("head -c {half} /dev/zero; head -c {half} /dev/zero >&2"));
    let output = ProcessExec.run(&spec).await.expect("exactly the limit");
    assert_eq!(output.stdout.len() + output.stderr.len(), OUTPUT_LIMIT);
    let spec = shell(&format!("head -c {half} /dev/zero; head -c {} /dev/zero >&2", half + 1));
    let error = ProcessExec.run(&spec).await.expect_err("one byte more");
    assert!(matches!(error, ExecError::OutputLimit { .. }), "{error:?}");
}

#[tokio::test]
async fn unread_input_is_no_error() {
    let mut spec = shell("exit 3");
    spec.stdin = Some(vec![b'x'; 1_000_000]);
    assert_eq!(ProcessExec.run(&spec).await.expect("it ends").exit, Exit::Code(3));
}

#[tokio::test]
async fn the_default_directory_is_the_root_and_no_input_is_empty_input() {
    let output = ProcessExec.run(&shell("pwd; cat")).await.expect("it ends");
    assert_eq!(output.stdout, b"/\n");
    let dir = temp();
    let mut spec = shell("pwd");
    spec.cwd = Some(utf8(&dir));
    let output = ProcessExec.run(&spec).await.expect("it ends");
    assert_eq!(output.stdout_text().trim(), utf8(&dir).as_str());
    spec.cwd = Some(utf8(&dir).join("missing"));
    let error = ProcessExec.run(&spec).await.expect_err("no directory");
    let ExecError::Io { source, .. } = error else { panic!("{error:?}") };
    assert!(source.to_string().contains("missing"), "{source}");
}

#[tokio::test]
async fn programs_are_looked_up_on_the_path_of_the_child() {
    let dir = temp();
    let (first, second) = (utf8(&dir).join("first"), utf8(&dir).join("second"));
    for at in [&first, &second] {
        std::fs::create_dir(at).expect("it is made");
    }
    // A directory and a plain file of that name are passed over.
    std::fs::create_dir(first.join("tool-a")).expect("it is made");
    std::fs::write(first.join("tool-b"), "").expect("it is written");
    for name in ["tool-a", "tool-b"] {
        script(&second.join(name), "#!/bin/sh\necho second\n");
    }
    let run = async |name: &str, path: String| {
        let mut spec = CommandSpec::new(name, ["x"]);
        spec.env = vec![("PATH".to_owned(), path)];
        spec.cwd = Some(second.clone());
        ProcessExec.run(&spec).await.expect("an answer")
    };
    for name in ["tool-a", "tool-b"] {
        let found = run(name, format!("{first}:{second}")).await;
        assert_eq!(found.stdout, b"second\n", "{name}");
        assert_eq!(run(name, first.to_string()).await.exit, Exit::Code(126), "{name}");
        // Empty and relative entries would mean the working directory.
        for path in ["", ":", ".:"] {
            assert_eq!(run(name, path.to_owned()).await.exit, Exit::Code(127), "{name} {path}");
        }
    }
    script(&second.join("orphan"), "#!/no/such/interpreter\n");
    assert_eq!(run("orphan", second.to_string()).await.exit, Exit::Code(127));
    std::fs::write(second.join("garbage"), "\x7fELF nonsense").expect("it is written");
    crate::support::set_mode(&second.join("garbage"), 0o755);
    assert_eq!(run("garbage", second.to_string()).await.exit, Exit::Code(126));
    assert_eq!(run("", second.to_string()).await.exit, Exit::Code(127));
}

#[tokio::test]
async fn a_closed_directory_on_the_path_hides_nothing_else() {
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

    // Nothing is closed to root, so this thread gives that privilege up.
    let mut sets = capabilities(None).expect("an answer");
    sets.effective -= CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
    set_capabilities(None, sets).expect("less is always allowed");
    let dir = temp();
    let closed = utf8(&dir).join("closed");
    std::fs::create_dir(&closed).expect("it is made");
    script(&closed.join("tool"), "#!/bin/sh\n");
    crate::support::set_mode(&closed, 0o000);
    let run = async |program: &str| {
        let mut spec = CommandSpec::new(program, ["x"]);
        spec.env = vec![("PATH".to_owned(), closed.to_string())];
        ProcessExec.run(&spec).await.expect("an answer").exit
    };
    assert_eq!(run("tool").await, Exit::Code(127));
    assert_eq!(run(closed.join("tool").as_str()).await, Exit::Code(126));
    crate::support::set_mode(&closed, 0o700);
}
