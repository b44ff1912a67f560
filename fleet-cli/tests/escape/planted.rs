//! Programs that an agent left where fleet looks for its own: none of them runs on the host.

use rstest::rstest;

use crate::support::{TestEnvironment, needs};

const PROGRAMS: &[&str] = &["tmux", "bwrap", "podman", "git", "runc", "ours-fleet"];

/// Says that it ran, and does what the real one does.
fn plant(env: &TestEnvironment, directory: &str) {
    for program in PROGRAMS {
        let real = format!("/usr/bin/{program}");
        let log = env.path("STOLEN");
        let script =
            format!("#!/bin/sh\necho {program} >> {}\nexec {real} \"$@\"\n", log.display());
        env.script(&format!("{directory}/{program}"), &script);
    }
}

fn stolen(env: &TestEnvironment) -> String {
    String::from_utf8(env.read("STOLEN").unwrap_or_default()).expect("UTF-8")
}

/// Two roles, of which `a` may write `src/a`, if it is there.
fn fleet(env: &TestEnvironment, with_a: bool) {
    let role = |name: &str, keys: &str| {
        format!(
            "  {name}:\n    harness: command\n    harness_options: {{ argv: [cat] }}\n    isolation: \
             {{ backend: bubblewrap, network: deny, on_unavailable: strict }}\n{keys}"
        )
    };
    let a = format!("    cwd: {}\n", env.path("src/a").display());
    let a = if with_a { role("a", &a) } else { String::new() };
    env.write("fleet.yaml", &format!("roles:\n{}{a}", role("b", "")));
}

/// Every command that runs a program, while what the agent left is first on the `PATH`.
fn use_fleet(env: &TestEnvironment) {
    env.run(["doctor"]);
    env.run(["version"]);
    env.run(["up", "b"]).expect(0);
    assert_eq!(env.status("b")["state"], "running");
    env.run(["send", "b", "hello"]).expect(0);
    env.run(["peek", "b"]).expect(0);
    env.run(["restart", "b"]).expect(0);
    env.run(["check", "--against", "HEAD"]);
    env.run(["down", "b"]).expect(0);
}

fn with_path(first: &str) -> TestEnvironment {
    let mut env = TestEnvironment::new();
    let path = format!("{}:{}", env.path(first).display(), std::env::var("PATH").expect("PATH"));
    env.set("PATH", &path);
    env
}

#[rstest]
#[case::in_the_directory("src/a")]
#[case::below_it("src/a/.venv/bin")]
fn what_an_agent_left_on_the_path_is_not_run(#[case] directory: &str) {
    needs!("tmux", "bwrap");
    let env = with_path(directory);
    plant(&env, directory);
    fleet(&env, true);
    use_fleet(&env);
    assert_eq!(stolen(&env), "");

    let said = format!("no program is taken from `{}`", env.path(directory).display());
    let doctor = env.run(["doctor"]).expect(1).stdout;
    assert!(doctor.contains(&said), "{doctor}");
    // The role itself does not start with such a `PATH`, as before.
    let up = env.run(["up"]).expect(4).stderr;
    assert!(up.contains(&said) && up.contains("a directory of fleet's own PATH"), "{up}");
    assert_eq!(stolen(&env), "");
}

/// The control: where no role may write, the same programs are the user's own.
#[test]
fn what_no_agent_may_write_is_run() {
    needs!("tmux", "bwrap");
    let env = with_path("src/a/.venv/bin");
    plant(&env, "src/a/.venv/bin");
    fleet(&env, false);
    use_fleet(&env);
    let stolen = stolen(&env);
    for program in ["tmux", "bwrap", "git"] {
        assert!(stolen.contains(program), "{program} in {stolen}");
    }
    assert!(!env.run(["doctor"]).stdout.contains("no program is taken"));
}

/// A link of the user's own, from a directory of the `PATH` into the agent's; and a link of the agent's
/// on the way to a directory that is the user's.
#[rstest]
#[case::of_a_program(true)]
#[case::of_a_directory(false)]
fn a_link_makes_no_difference(#[case] program: bool) {
    needs!("tmux", "bwrap");
    let env = with_path("bin");
    let link = |to: &str, at: &str| {
        std::os::unix::fs::symlink(env.path(to), env.path(at)).expect("a link");
    };
    std::fs::create_dir_all(env.path("src/a")).expect("a directory");
    if program {
        plant(&env, "src/a/tools");
        std::fs::create_dir(env.path("bin")).expect("a directory");
        for name in PROGRAMS {
            link(&format!("src/a/tools/{name}"), &format!("bin/{name}"));
        }
    } else {
        plant(&env, "elsewhere");
        link("elsewhere", "src/a/tools");
        link("src/a/tools", "bin");
    }
    fleet(&env, true);
    use_fleet(&env);
    assert_eq!(stolen(&env), "");
}

/// What agents may write is then unknown; what the system brings is used.
#[test]
fn a_fleet_that_does_not_load_leaves_the_programs_of_the_system() {
    needs!("tmux", "bwrap");
    let env = with_path("src/a");
    plant(&env, "src/a");
    fleet(&env, true);
    env.run(["up", "b"]).expect(0);
    env.write("fleet.yaml", "roles: [");
    let doctor = env.run(["doctor"]).expect(1).stdout;
    assert!(
        doctor.contains("the fleet does not load, and what agents may write is unknown"),
        "{doctor}"
    );
    env.run(["down", "b"]).expect(0);
    assert_eq!(stolen(&env), "");
}

/// One that a role was started with counts also for a command that names another.
#[test]
fn every_fleet_file_that_roles_were_started_with_counts() {
    needs!("tmux", "bwrap");
    let env = with_path("src/a");
    plant(&env, "src/a");
    fleet(&env, true);
    let other = env.path("other.yaml");
    std::fs::rename(env.path("fleet.yaml"), &other).expect("renamed");
    let named = |args: &[&str]| {
        let mut all = vec!["-c", other.to_str().expect("UTF-8")];
        all.extend(args);
        env.run(all)
    };
    named(&["up", "b"]).expect(0);
    env.run(["down", "b"]).expect(0);
    env.run(["doctor"]);
    assert_eq!(stolen(&env), "");
}
