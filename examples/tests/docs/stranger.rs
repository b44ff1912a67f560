//! A program that embeds the core from a crate of its own, outside of the workspace.

use std::fs;
use std::path::Path;
use std::process::Command;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// Builds it beside what cargo built for this test, so that little is built twice; from what is on this
/// machine.
fn build(directory: &Path) -> std::path::PathBuf {
    let workspace = Path::new(HERE).parent().expect("a workspace");
    let manifest =
        fs::read_to_string(Path::new(HERE).join("stranger/Cargo.toml.in")).expect("read");
    let manifest = manifest.replace("@WORKSPACE@", workspace.to_str().expect("UTF-8"));
    fs::write(directory.join("Cargo.toml"), manifest).expect("written");
    // The very versions of the workspace: cargo drops what is not needed.
    fs::copy(workspace.join("Cargo.lock"), directory.join("Cargo.lock")).expect("copied");
    fs::create_dir(directory.join("src")).expect("a directory");
    fs::copy(Path::new(HERE).join("stranger/src/main.rs"), directory.join("src/main.rs"))
        .expect("copied");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a target directory");
    let output = Command::new(env!("CARGO"))
        .args(["build", "--offline", "--quiet"])
        .env("CARGO_TARGET_DIR", target)
        .env_remove("RUSTFLAGS")
        .current_dir(directory)
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    target.join("debug/stranger")
}

#[test]
fn a_stranger_judges_a_fleet_file_in_thirty_lines() {
    let source = fs::read_to_string(Path::new(HERE).join("stranger/src/main.rs")).expect("read");
    assert!(source.lines().count() <= 34, "it has grown: {}", source.lines().count());
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().canonicalize().expect("real");
    let program = build(&root);

    let home = root.join("home");
    fs::create_dir_all(home.join(".ssh")).expect("a directory");
    fs::create_dir_all(root.join("project")).expect("a directory");
    std::os::unix::fs::symlink(home.join(".ssh"), root.join("handy")).expect("a link");
    let file = root.join("fleet.yaml");
    let judge = |text: &str| {
        fs::write(&file, text.replace('@', root.to_str().expect("UTF-8"))).expect("written");
        let output = Command::new(&program).args([&file, &home]).output().expect("it runs");
        (output.status.success(), String::from_utf8(output.stdout).expect("UTF-8"))
    };
    let role = |keys: &str| {
        format!(
            "roles:\n  a:\n    harness: command\n    harness_options: {{ argv: [cat] }}\n    {keys}\n"
        )
    };
    let (sound, text) = judge(&role("isolation: { network: deny, fs: { read: [@/handy] } }"));
    assert!(sound, "{text}");
    assert!(text.contains("a: refused: ") && text.contains("handy"), "{text}");
    assert!(text.contains("home/.ssh` (keys"), "{text}");
    let (sound, text) = judge(&role("cwdd: @/project"));
    assert!(!sound && text.contains("fleet.yaml:5:"), "{text}");
    assert!(text.contains("cwd"), "{text}");
}
