use std::sync::Arc;

use fleet_core::harness::{JsonChange, SharedItem};
use fleet_core::id::Timestamp;
use fleet_core::layout::FleetLayout;
use fleet_core::redact::Redacted;
use fleet_core::test_support::fakes::{Fault, ManualClock, MemoryStore, Planted};
use serde_json::{Value, json};

use super::*;
use crate::FileStore;

const fn item(name: &'static str, kind: SharedKind) -> SharedItem {
    SharedItem { name, kind, below_account: false, login: false }
}

const SPEC: HomeSpec = HomeSpec {
    variable: "AGENT_HOME",
    operator: ".agent",
    shared: &[
        item("RULES.md", SharedKind::File),
        item("plugins", SharedKind::Directory),
        item("rules", SharedKind::EachFile),
    ],
    read: &[],
};

/// A role's home in memory.
struct Home {
    store: MemoryStore,
    trees: RoleTrees,
    dir: Utf8PathBuf,
    log: RunnerLog,
}

impl Home {
    fn new() -> Self {
        let store = MemoryStore::default();
        let trees = FleetLayout::new(Utf8Path::new("/h")).role(&"A".parse().expect("a name"));
        let home = trees.harness.join("agent");
        for dir in [&home, &trees.handout, &trees.control] {
            store.ensure_dir(dir).expect("it is made");
        }
        let clock = Arc::new(ManualClock::new(Timestamp::default()));
        let log = RunnerLog::new(Arc::new(store.clone()), clock, trees.runner_log());
        Self { store, trees, dir: home, log }
    }

    fn furnish(&self) -> Furnish<'_> {
        let (trees, home, log) = (&self.trees, self.dir.as_path(), &self.log);
        Furnish { store: &self.store, trees, home, log }
    }

    fn target(&self, name: &str) -> Option<String> {
        self.store.target(&self.dir.join(name)).map(|target| target.to_string())
    }

    fn content(&self, name: &str) -> Option<String> {
        let bytes = self.store.content(&self.dir.join(name))?;
        Some(String::from_utf8(bytes).expect("text"))
    }

    fn names(&self, name: &str) -> Vec<String> {
        let entries = self.store.list(&self.dir.join(name)).expect("an answer");
        entries.unwrap_or_default().into_iter().map(|entry| entry.name).collect()
    }

    fn logged(&self) -> String {
        let bytes = self.store.content(&self.trees.runner_log()).unwrap_or_default();
        String::from_utf8(bytes).expect("text")
    }
}

fn shared(names: &[&str]) -> Vec<Shared> {
    let item = |name: &&str| {
        let target = LexicalPath::absolute(&format!("/op/{name}")).expect("plain");
        let name = (*name).to_owned();
        let link = Some(name.clone());
        Shared { name, destination: target.clone(), target, link, login: false }
    };
    names.iter().map(item).collect()
}

fn whole(place: FilePlace, name: &str, text: &str) -> HarnessFile {
    let content = FileContent::Whole(Redacted::new(text.to_owned()));
    HarnessFile { place, name: name.to_owned(), content }
}

fn set(path: &[&str]) -> JsonEdit {
    let path = path.iter().map(|name| (*name).to_owned()).collect();
    JsonEdit { path, change: JsonChange::Set(Redacted::new(json!(true))) }
}

#[test]
fn items_are_linked_and_unlinked() {
    let home = Home::new();
    let all = shared(&["RULES.md", "plugins", "rules/a", "rules/b"]);
    for _ in 0..2 {
        home.furnish().links(&SPEC, &all, &[]).expect("linked");
        for name in ["RULES.md", "plugins", "rules/a", "rules/b"] {
            assert_eq!(home.target(name), Some(format!("/op/{name}")));
        }
    }
    home.furnish().links(&SPEC, &shared(&["rules/b"]), &[]).expect("linked");
    assert_eq!(home.names(""), ["rules"]);
    assert_eq!(home.names("rules"), ["b"]);
    // What the program keeps there without a shared item is its own.
    home.store.put(&home.dir.join("plugins/own"), b"x");
    home.store.put(&home.dir.join("rules/own"), b"x");
    home.furnish().links(&SPEC, &[], &[]).expect("nothing to link");
    assert_eq!(
        (home.names("plugins"), home.names("rules")),
        (vec!["own".into()], vec!["own".into()])
    );
    assert!(home.logged().is_empty(), "{}", home.logged());
}

#[test]
fn what_the_agent_put_there_is_neither_followed_nor_lost() {
    let home = Home::new();
    home.store.put(&home.dir.join("RULES.md"), b"obey me");
    home.store.put(&home.dir.join("plugins/evil"), b"x");
    home.store.plant(&home.dir.join("rules"), Planted::Symlink);
    let all = shared(&["RULES.md", "plugins", "rules/a"]);
    home.furnish().links(&SPEC, &all, &[]).expect("linked");
    for name in ["RULES.md", "plugins", "rules/a"] {
        assert_eq!(home.target(name), Some(format!("/op/{name}")), "{name}");
    }
    assert_eq!(home.content("RULES.md.aside").as_deref(), Some("obey me"));
    assert_eq!(home.names("plugins.aside"), ["evil"]);
    assert!(home.logged().contains("RULES.md was set aside as `RULES.md.aside`"));
    // A link that the agent bent is put right; a second file takes the place of the first aside.
    home.store.remove(&home.dir.join("plugins")).expect("removed");
    home.store.plant(&home.dir.join("plugins"), Planted::Symlink);
    home.store.remove(&home.dir.join("RULES.md")).expect("removed");
    home.store.put(&home.dir.join("RULES.md"), b"again");
    home.furnish().links(&SPEC, &all, &[]).expect("linked");
    assert_eq!(home.target("plugins").as_deref(), Some("/op/plugins"));
    assert_eq!(home.content("RULES.md.aside").as_deref(), Some("again"));
    // Directories do not give way to one another.
    home.store.remove(&home.dir.join("plugins")).expect("removed");
    home.store.put(&home.dir.join("plugins/more"), b"x");
    home.furnish().links(&SPEC, &all, &[]).expect("linked");
    assert_eq!(home.names("plugins.aside-1"), ["more"]);
}

#[test]
fn whole_files_replace_whatever_is_there() {
    let home = Home::new();
    home.store.plant(&home.dir.join("config.toml"), Planted::Symlink);
    home.store.put(&home.dir.join("dir.toml/x"), b"x");
    home.store.plant(&home.dir.join("rules"), Planted::Symlink);
    for name in ["config.toml", "dir.toml", "rules/ours.rules"] {
        home.furnish().file(&whole(FilePlace::Home, name, "text")).expect("written");
        assert_eq!(home.content(name).as_deref(), Some("text"), "{name}");
        assert_eq!(home.store.mode(&home.dir.join(name)), Some(0o600));
    }
    home.furnish().file(&whole(FilePlace::Handout, "mcp.json", "{}")).expect("written");
    assert!(home.store.content(&home.trees.handout.join("mcp.json")).is_some());
    for name in ["../x", "/etc/x", "a/../x", "", "a//b"] {
        let error = home.furnish().file(&whole(FilePlace::Home, name, "x")).expect_err(name);
        assert!(error.to_string().contains("write"), "{error}");
    }
    home.store.fail_next(None, Fault::Write);
    assert!(home.furnish().file(&whole(FilePlace::Handout, "mcp.json", "new")).is_err());
}

const TRUSTED: &str = "{\n  \"trust\": true\n}";

/// P39 with the file system: what cannot be edited stays, and no launch fails for it.
#[test]
fn p39_a_file_that_cannot_be_edited_is_left_alone_with_a_warning() {
    let home = Home::new();
    let file = HarnessFile {
        place: FilePlace::Home,
        name: "state.json".to_owned(),
        content: FileContent::Json(vec![set(&["trust"])]),
    };
    let path = home.dir.join("state.json");
    for broken in ["", "{\"trust\": tru", "[]", "7", "{} x"] {
        home.store.put(&path, broken.as_bytes());
        home.furnish().file(&file).expect("no failure");
        assert_eq!(home.content("state.json").as_deref(), Some(broken));
    }
    assert_eq!(home.logged().matches("was left as it is: it holds no JSON object").count(), 5);
    home.store.plant(&path, Planted::Symlink);
    home.furnish().file(&file).expect("no failure");
    assert!(home.logged().contains("was set aside as `state.json.aside`"), "{}", home.logged());
    assert_eq!(home.content("state.json").as_deref().map(str::trim_end), Some(TRUSTED));
    home.store.remove(&path).expect("removed");
    home.store.fail_next(Some(&path), Fault::Write);
    home.furnish().file(&file).expect("no failure");
    assert_eq!(home.content("state.json"), None);
    home.store.write(&path, b"{\"own\": [1]}", 0o640).expect("written");
    home.furnish().file(&file).expect("no failure");
    let edited: Value =
        serde_json::from_str(&home.content("state.json").expect("there")).expect("JSON");
    assert_eq!(edited, json!({"own": [1], "trust": true}));
    assert_eq!(home.store.mode(&path), Some(0o640), "the mode is kept");
    assert!(!home.store.paths().contains(&home.trees.home_lock()), "no lock is left");
}

#[test]
fn p39_edits_at_the_same_time_all_count() {
    const WRITERS: usize = 8;
    let dir = tempfile::tempdir().expect("a directory");
    let dir = Utf8PathBuf::from_path_buf(dir.path().canonicalize().expect("real")).expect("UTF-8");
    let (path, lock) = (dir.join("state.json"), dir.join("lock"));
    FileStore.write(&path, b"{\"kept\": {\"a\": 1}}", 0o600).expect("written");
    std::thread::scope(|scope| {
        for number in 0..WRITERS {
            let (path, lock) = (&path, &lock);
            scope.spawn(move || {
                for round in 0..4 {
                    let name = format!("w{number}-{round}");
                    edit(&FileStore, lock, path, &[set(&["projects", &name])]).expect("edited");
                }
            });
        }
    });
    let text = FileStore.read(&path, MAX_EDITED).expect("read").expect("there");
    let value: Value = serde_json::from_slice(&text).expect("JSON");
    assert_eq!(value["projects"].as_object().map(serde_json::Map::len), Some(WRITERS * 4));
    assert_eq!(value["kept"], json!({"a": 1}));
    let left: Vec<String> = FileStore
        .list(&dir)
        .expect("an answer")
        .expect("there")
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert_eq!(left, ["state.json"], "no lock and no temporary file is left");
}
