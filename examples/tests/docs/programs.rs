use crate::{custom_backend, custom_harness, custom_supervisor, dry_run, embed_validate};

#[test]
fn embed_validate_names_both_mistakes_with_their_lines() {
    let lines = embed_validate::run();
    let text = lines.join("\n");
    assert!(text.contains("fleet.yaml:5:"), "{text}");
    assert!(text.contains("`mission`"), "{text}");
    assert!(text.contains("fleet.yaml:9:"), "{text}");
    assert!(text.contains("denied"), "{text}");
    assert_eq!(lines.len(), 2, "{text}");
}

#[test]
fn embed_validate_has_nothing_to_say_about_a_good_file() {
    let lines = embed_validate::problems(
        "roles: { a: { harness: command, harness_options: { argv: [cat] } } }\n",
    );
    assert_eq!(lines, Vec::<String>::new());
}

#[test]
fn custom_harness_starts_its_role() {
    let lines = custom_harness::run().expect("runs");
    assert_eq!(
        lines,
        [
            "helper: aide --model small-1 --briefing /srv/fleet/.ours-fleet/handout/helper/briefing.md"
        ]
    );
}

#[tokio::test]
async fn custom_backend_promises_no_more_than_it_does() {
    let lines = custom_backend::run().await.expect("runs");
    assert_eq!(
        lines,
        [
            "refused: `none` cannot enforce `network: deny` in this build",
            "/usr/bin/nice -n 10 -- agent --brief",
            "filesystem: missing (`nice` confines nothing)",
            "network: missing (`nice` confines nothing)",
            "processes: missing (`nice` confines nothing)",
        ]
    );
}

#[tokio::test]
async fn custom_supervisor_never_calls_unknown_stopped() {
    let lines = custom_supervisor::run().await.expect("runs");
    assert_eq!(
        lines,
        [
            "before: Stopped, not listed by the cluster",
            "started: Running, listed by the cluster",
            "connection lost: Unknown, the cluster does not answer",
            "connection back: Running, listed by the cluster",
            "stopped: Stopped, not listed by the cluster",
            "the stop in between: failed to stop the runner of `writer`: the cluster does not answer",
        ]
    );
}

#[test]
fn dry_run_mounts_one_role_and_refuses_the_other() {
    let lines = dry_run::run().expect("runs");
    let text = lines.join("\n");
    assert!(lines.iter().any(|line| line.starts_with("builder: rw /srv/project ")), "{text}");
    assert!(lines.iter().any(|line| line.starts_with("builder: ro /srv/docs ")), "{text}");
    let curious: Vec<_> = lines.iter().filter(|line| line.starts_with("curious: ")).collect();
    assert_eq!(curious.len(), 1, "{text}");
    assert!(curious[0].contains("isolation.fs.read[0]"), "{text}");
    assert!(curious[0].contains("/home/operator/.ssh"), "{text}");
}
