//! A3: text that a multiplexer would change in transit.

use crate::support::{TestEnvironment, needs, wait_for};

const TEXTS: &[&str] = &[
    "fix it;",
    ";",
    "a;;",
    "a\\;",
    "-n foo",
    "--",
    "$(id)",
    "`id`",
    "Enter",
    "C-c",
    "#{pane_id} #(id)",
    "'quoted' \"twice\"",
    "two\nlines\n",
    "tab\there",
    "größe 日本 🚢",
    " spaces  kept ",
    "%s \\n \\x41",
];

/// Records every byte of its terminal, with bracketed paste as editors have it.
const RECORDER: &str = "roles:\n  R:\n    harness: command\n    harness_options:\n      argv: [sh, -c, 'stty raw -echo; printf \"\\033[?2004hREADY\"; exec cat > \"$OURS_FLEET_STATE/got\"']\n";

#[test]
fn a3_a_sent_text_arrives_byte_for_byte() {
    needs!("tmux", "stty");
    let env = TestEnvironment::with_fleet(RECORDER);
    env.run(["up"]).expect(0);
    wait_for("the recorder is ready", || {
        env.run(["peek", "R"]).stdout.contains("READY").then_some(())
    });
    let mut expected = Vec::new();
    for text in TEXTS {
        assert_eq!(env.run(["send", "R", "--", text]).expect(0).stdout, "typed\n");
        expected.extend_from_slice(b"\x1b[200~");
        expected.extend_from_slice(text.as_bytes());
        expected.extend_from_slice(b"\x1b[201~\r");
        wait_for(&format!("{text:?} arrived"), || {
            let got = env.state_file("R", "got").unwrap_or_default();
            (got.len() >= expected.len()).then_some(())
        });
        let got = env.state_file("R", "got").expect("recorded");
        assert_eq!(
            String::from_utf8_lossy(&got),
            String::from_utf8_lossy(&expected),
            "after {text:?}"
        );
    }
    // What could not be typed unchanged is refused with the reason, and nothing of it arrives.
    let out = env.run(["send", "R", "--", "bad\u{1b}[2J"]).expect(1);
    assert!(out.stderr.contains("control characters"), "{}", out.stderr);
    env.run(["send", "R", "end"]).expect(0);
    expected.extend_from_slice(b"\x1b[200~end\x1b[201~\r");
    wait_for("the last text arrived", || {
        (env.state_file("R", "got").as_deref() == Some(&expected)).then_some(())
    });
}

#[test]
fn a3_arguments_of_a_harness_arrive_byte_for_byte() {
    needs!("tmux");
    let texts: Vec<String> =
        TEXTS.iter().map(|text| serde_json::to_string(text).expect("a text")).collect();
    let env = TestEnvironment::with_fleet(&format!(
        "roles:\n  R:\n    harness: command\n    harness_options:\n      argv: [sh, -c, 'for a; do printf \"%s\\0\" \"$a\"; done > \"$OURS_FLEET_STATE/argv\"; exec cat', sh, {}]\n",
        texts.join(", ")
    ));
    env.run(["up"]).expect(0);
    let expected: Vec<u8> =
        TEXTS.iter().flat_map(|text| text.bytes().chain(std::iter::once(0))).collect();
    let got = wait_for("the arguments are recorded", || {
        env.state_file("R", "argv").filter(|got| got.len() >= expected.len())
    });
    assert_eq!(String::from_utf8_lossy(&got), String::from_utf8_lossy(&expected));
}
