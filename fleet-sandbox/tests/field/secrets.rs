//! 08 A6: values of the environment are in no command line.

use crate::support::{Launch, need_bwrap, processes_with, running};

#[test]
fn a6_no_command_line_holds_a_value_of_the_environment() {
    need_bwrap!();
    let mut launch = Launch::new();
    let secret = format!("s3cr3t-{}", std::process::id());
    launch.env.push(("OTHER_TOKEN".to_owned(), secret.clone()));
    let marker = format!("9100.{}", std::process::id());
    let argv = ["/usr/bin/sleep", &marker];
    let mut launcher = launch.launcher(launch.plan(&launch.policy(), &argv), &argv);
    let mut child = launcher.spawn().expect("launcher");
    assert!(running(|| launch.control.join("observed.json").exists()));
    assert!(!processes_with(&[&marker]).is_empty(), "the scan sees command lines");
    let leaks: Vec<u32> = std::fs::read_dir("/proc")
        .expect("proc")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&secret)
        })
        .collect();
    child.kill().expect("our own process");
    child.wait().expect("launcher");
    assert!(leaks.is_empty(), "{leaks:?}");
    let observed = std::fs::read_to_string(launch.control.join("observed.json")).expect("observed");
    assert!(!observed.contains(&secret));
}
