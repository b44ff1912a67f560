use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use camino::Utf8PathBuf;
use fleet_core::config::{ConfigSources, Fleet, LoadOptions, SourceText, YamlMode, load};
use fleet_core::harness::Harnesses;
use fleet_core::harness::command::CommandOptions;
use fleet_core::isolation::{Backend, NetworkMode, OnUnavailable};
use fleet_core::path::LexicalPath;
use fleet_core::test_support::fakes::StubHarness;

fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn fleet_files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            fleet_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            found.push(path);
        }
    }
}

/// The harnesses of the product; a stub stands in where a build has one less.
fn harnesses() -> Harnesses {
    let mut harnesses = Harnesses::built_in();
    for stub in [StubHarness::claude_code(), StubHarness::codex()] {
        if harnesses.get(stub.id.as_str()).is_none() {
            harnesses.register(Arc::new(stub));
        }
    }
    harnesses
}

fn loaded(path: &Path) -> Fleet {
    loaded_text(fs::read(path).expect("a readable file"), &path.display().to_string())
}

fn loaded_text(bytes: Vec<u8>, shown: &str) -> Fleet {
    let name = Utf8PathBuf::from("/srv/fleet/fleet.yaml");
    let sources = ConfigSources {
        base_path: name.clone(),
        base: Some(SourceText { path: name, bytes }),
        drop_ins: Vec::new(),
    };
    let home = LexicalPath::absolute("/home/operator").expect("absolute");
    let harnesses = harnesses();
    let options = LoadOptions { yaml_mode: YamlMode::Strict, home: &home, harnesses: &harnesses };
    let loaded = load(&sources, &options);
    assert_eq!(loaded.diagnostics, [], "{shown}");
    loaded.fleet.unwrap_or_else(|| panic!("{shown} gives no fleet"))
}

#[test]
fn every_fleet_file_loads_without_a_remark() {
    let mut found = Vec::new();
    fleet_files(&here(), &mut found);
    assert!(found.len() >= 7, "found {found:?}");
    for path in found {
        let fleet = loaded(&path);
        assert!(!fleet.roles.is_empty(), "{}", path.display());
        for role in fleet.roles.values() {
            let refused: Vec<_> = role.unavailable.iter().filter(|key| key.refuses).collect();
            assert!(refused.is_empty(), "{}: {}: {refused:?}", path.display(), role.name);
        }
    }
}

#[test]
fn every_model_is_confined_and_can_be_reached() {
    for name in ["claude-code", "codex", "mixed"] {
        let fleet = loaded(&here().join(name).join("fleet.yaml"));
        for role in fleet.roles.values() {
            let block = role.isolation.as_ref().expect("isolation");
            assert_eq!(block.on_unavailable, Some(OnUnavailable::Strict), "{name}: {}", role.name);
            let model = role.harness.as_str() != "command";
            let network = if model { NetworkMode::Allow } else { NetworkMode::Deny };
            assert_eq!(block.network(), network, "{name}: {}", role.name);
            assert_eq!(role.permissions_declared, model, "{name}: {}", role.name);
        }
    }
}

#[test]
fn other_agents_are_told_where_their_briefing_is_and_can_be_read_by_a_shell() {
    for name in ["opencode", "gemini-cli"] {
        let fleet = loaded(&here().join("other-agents").join(format!("{name}.yaml")));
        for role in fleet.roles.values() {
            let options =
                CommandOptions::parse(role.harness_options.expose()).expect("good options");
            assert!(
                !options.ready.is_empty() && !options.busy.is_empty() && !options.modal.is_empty()
            );
            let resume = options.resume_argv.expect("a way to go on");
            assert!(options.argv[2].contains("$OURS_FLEET_BRIEFING"), "{name}");
            for argv in [&options.argv, &resume] {
                assert_eq!(argv[..2], ["sh", "-c"], "{name}");
                assert!(argv[2].contains("$OURS_FLEET_STATE"), "{name} keeps its data in the role");
                let status =
                    Command::new("sh").args(["-n", "-c", &argv[2]]).status().expect("sh runs");
                assert!(status.success(), "{name}: {}", argv[2]);
            }
        }
    }
}

#[test]
fn quickstart_agents_exist_and_are_confined() {
    let fleet = loaded(&here().join("quickstart/fleet.yaml"));
    assert_eq!(fleet.roles.len(), 3);
    for role in fleet.roles.values() {
        let block = role.isolation.as_ref().expect("isolation");
        assert_eq!(block.network(), NetworkMode::Deny, "{}", role.name);
        assert_eq!(block.on_unavailable, Some(OnUnavailable::Strict), "{}", role.name);
        let program = role.harness_options.expose()["argv"][0].as_str().expect("a program");
        assert!(here().join("quickstart/agents").join(program).is_file(), "{program}");
    }
}

#[test]
fn the_variant_for_macos_differs_in_isolation_only() {
    let linux = loaded(&here().join("quickstart/fleet.yaml"));
    let macos = loaded(&here().join("quickstart/fleet.macos.yaml"));
    for (linux, macos) in linux.roles.values().zip(macos.roles.values()) {
        assert_eq!(macos.isolation.as_ref().map(|block| block.backend), Some(Backend::None));
        assert_eq!(linux.name, macos.name);
        assert_eq!(linux.mission, macos.mission);
        assert_eq!(linux.harness_options.expose(), macos.harness_options.expose());
    }
    assert_eq!(linux.roles.len(), macos.roles.len());
}

/// The text between two lines of the README.
fn readme_part(begin: &str, end: &str) -> String {
    let readme = fs::read_to_string(here().join("../README.md")).expect("a README");
    let (_, rest) = readme.split_once(begin).expect("the beginning");
    let (part, _) = rest.split_once(end).expect("the end");
    part.trim().to_owned()
}

#[test]
fn the_fleet_file_of_the_readme_loads_without_a_remark() {
    let fleet = loaded_text(readme_part("```yaml\n", "```").into_bytes(), "README.md");
    let names: Vec<_> = fleet.roles.keys().map(ToString::to_string).collect();
    assert_eq!(names, ["builder"]);
    // The one that is written by a shell.
    let first = readme_part("cat > ~/fleet.yaml <<'EOF'\n", "EOF");
    let fleet = loaded_text(first.into_bytes(), "README.md");
    assert!(fleet.roles["hello"].isolation.is_some());
}

#[test]
fn the_readme_shows_the_diagnostics_that_the_loader_gives() {
    let shown =
        readme_part("<!-- diagnostics:begin -->\n```text\n", "```\n<!-- diagnostics:end -->");
    assert_eq!(shown, crate::embed_validate::run().join("\n"));
}
