//! Chains of forks: each process makes the next one and ends, so that none is there for long enough to
//! be found. They must end with their launcher all the same.

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Host, Launch, need_landlock, processes_with, running, skip};

/// Ten chains that ignore every signal, each as fast as it can, for as long as a file is there.
const CHAINS: &str = r#"
use POSIX;
my ($file, $marker) = @ARGV;
for (keys %SIG) { $SIG{$_} = 'IGNORE' unless /CHLD|CLD/ }
for my $chain (1 .. 10) {
    next if fork;
    POSIX::setsid();
    while (-e $file) { exit if fork; select(undef, undef, undef, 0.0003 * ($chain % 4)) }
    exit;
}
open(my $ready, '>', "$file.ready");
sleep 1 while -e $file;
"#;

/// Version of Landlock from which on signals have a scope.
const SCOPES: u32 = 6;

struct Chains {
    launch: Launch,
    argv: Vec<String>,
    marker: String,
}

impl Chains {
    fn new(digits: u32) -> Self {
        let launch = Launch::new();
        let marker = format!("{digits}.{}", std::process::id());
        let file = launch.cwd.join("go");
        std::fs::write(&file, "").expect("write");
        let argv = ["/usr/bin/perl", "-e", CHAINS, file.as_str(), &marker];
        Self { argv: argv.map(str::to_owned).to_vec(), marker, launch }
    }

    fn alive(&self) -> usize {
        processes_with(&[&self.marker]).len()
    }

    /// Whether none is there, as far as many looks in a row can tell.
    fn gone(&self) -> bool {
        (0..50).all(|_| self.alive() == 0)
    }

    /// Starts them and sends the launcher a signal once they run; waits for its end.
    fn end(&self, isolated: bool, signal: Signal) {
        let plan = if isolated {
            self.launch.confined_plan(&self.launch.policy(), &self.argv)
        } else {
            self.launch.bare_plan(&self.argv)
        };
        let mut launcher = self.launch.launcher(plan, &self.argv).spawn().expect("launcher");
        let ready = self.launch.cwd.join("go.ready");
        assert!(running(|| ready.exists() && self.alive() > 5), "the chains do not run");
        let pid = Pid::from_raw(i32::try_from(launcher.id()).expect("pid")).expect("not zero");
        kill_process(pid, signal).expect("our own process");
        launcher.wait().expect("launcher");
    }
}

impl Drop for Chains {
    fn drop(&mut self) {
        // Whatever is left ends by itself.
        let _ = std::fs::remove_file(self.launch.cwd.join("go"));
        running(|| self.gone());
    }
}

macro_rules! need_scopes {
    () => {
        need_landlock!();
        if Host::landlock().abi() < SCOPES {
            skip!("signals have no scope here (Linux 6.12)");
        }
        if !std::path::Path::new("/usr/bin/perl").exists() {
            skip!("perl is not installed");
        }
    };
}

#[test]
fn no_chain_outlives_a_stop_under_landlock_as_user() {
    need_scopes!();
    for _ in 0..4 {
        let chains = Chains::new(9101);
        chains.end(true, Signal::TERM);
        assert!(chains.gone(), "{} are left when the launcher says it is over", chains.alive());
        let record = std::fs::read(chains.launch.control.join("exit.json")).expect("a record");
        let record: serde_json::Value = serde_json::from_slice(&record).expect("JSON");
        assert!(record.get("left").is_none(), "{record}");
    }
}

#[test]
fn no_chain_outlives_a_killed_launcher_under_landlock_as_user() {
    need_scopes!();
    let chains = Chains::new(9102);
    chains.end(true, Signal::KILL);
    assert!(running(|| chains.gone()), "{} are left", chains.alive());
    // The control: without the process that waits for the end of the launcher they go on.
    let chains = Chains::new(9103);
    chains.end(false, Signal::KILL);
    assert!(running(|| chains.alive() > 3), "the chains prove nothing");
    assert!(!chains.gone());
}

/// What ends everything is out of reach of what it is to end, and not in its way.
#[test]
fn the_process_that_ends_the_others_cannot_be_ended_by_them_as_user() {
    need_scopes!();
    let launch = Launch::new();
    let found = launch.cwd.join("found");
    // It has the command line of the first program, whose child it was.
    let script = format!(
        "for d in /proc/[0-9]*; do \
           p=${{d#/proc/}}; \
           [ $p = $$ ] && continue; \
           tr '\\0' ' ' < $d/cmdline 2>/dev/null | grep -q '_confine.*9104.{own}' || continue; \
           kill -KILL $p 2>/dev/null && echo killed $p; \
           kill -STOP $p 2>/dev/null && echo stopped $p; \
           cat $d/environ >/dev/null 2>&1 && echo looked $p; \
           echo seen $p; \
         done > {found}; true 9104.{own}; wait; exit 7",
        own = std::process::id(),
    );
    let argv = ["/bin/sh", "-c", &script];
    let outcome = launch.run_plan(launch.confined_plan(&launch.policy(), &argv), &argv);
    assert_eq!(outcome.code, Some(7), "{}", outcome.stderr);
    let found = std::fs::read_to_string(&found).expect("written");
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines.len(), 1, "{found}");
    assert!(lines[0].starts_with("seen "), "{found}");
}
