//! Loading a fleet from text.

use std::ops::Range;
use std::sync::Arc;

use fleet_core::config::{
    ConfigSources, Fleet, LoadOptions, Loaded, Role, SchemaOf, SourceText, YamlMode, load,
};
use fleet_core::diagnostic::Severity;
use fleet_core::harness::Harnesses;
use fleet_core::harness::command::CommandHarness;
use fleet_core::path::LexicalPath;
use fleet_core::test_support::fakes::stub_harnesses;

use crate::schema;

/// The fleet home of these tests.
pub(crate) const HOME: &str = "/home/op";

/// A base file and drop-ins, as text.
pub(crate) struct Files {
    base: Option<Vec<u8>>,
    drop_ins: Vec<(String, Vec<u8>)>,
    mode: YamlMode,
    harnesses: Harnesses,
}

/// A program that has no model harness.
pub(crate) fn only_command() -> Harnesses {
    let mut harnesses = Harnesses::default();
    harnesses.register(Arc::new(CommandHarness::default()));
    harnesses
}

/// A fleet with this base file.
pub(crate) fn base(text: impl AsRef<[u8]>) -> Files {
    Files {
        base: Some(text.as_ref().to_vec()),
        drop_ins: Vec::new(),
        mode: YamlMode::Compat,
        harnesses: stub_harnesses(),
    }
}

/// A fleet without a base file.
pub(crate) fn no_base() -> Files {
    Files { base: None, ..base("") }
}

impl Files {
    pub(crate) fn drop_in(mut self, name: &str, text: impl AsRef<[u8]>) -> Self {
        self.drop_ins.push((name.to_owned(), text.as_ref().to_vec()));
        self
    }

    pub(crate) fn with(mut self, harnesses: Harnesses) -> Self {
        self.harnesses = harnesses;
        self
    }

    pub(crate) fn strict(mut self) -> Self {
        self.mode = YamlMode::Strict;
        self
    }

    pub(crate) fn load(&self) -> Loaded {
        let path = |name: &str| format!("{HOME}/{name}").into();
        let sources = ConfigSources {
            base_path: path("fleet.yaml"),
            base: self
                .base
                .as_ref()
                .map(|bytes| SourceText { path: path("fleet.yaml"), bytes: bytes.clone() }),
            drop_ins: self
                .drop_ins
                .iter()
                .map(|(name, bytes)| SourceText {
                    path: path(&format!("fleet.d/{name}")),
                    bytes: bytes.clone(),
                })
                .collect(),
        };
        let home = LexicalPath::absolute(HOME).expect("absolute");
        let harnesses = &self.harnesses;
        let loaded = load(&sources, &LoadOptions { yaml_mode: self.mode, home: &home, harnesses });
        if loaded.fleet.is_some() {
            self.the_schema_agrees();
        }
        loaded
    }

    /// Whatever any test of the loader finds accepted, the schema accepts too.
    fn the_schema_agrees(&self) {
        let base = self.base.iter().map(|bytes| (SchemaOf::Base, bytes));
        let files = base.chain(self.drop_ins.iter().map(|(_, bytes)| (SchemaOf::DropIn, bytes)));
        for (of, bytes) in files {
            let Some(file) = schema::document(bytes) else { continue };
            let remarks = schema::remarks(schema::with_stubs(of), &file);
            assert!(
                remarks.is_empty(),
                "the loader accepts it and the schema does not: {remarks:?}\n{file}"
            );
        }
    }

    /// The fleet; panics with the problems if there is none.
    pub(crate) fn fleet(&self) -> Fleet {
        let loaded = self.load();
        let problems = problems(&loaded);
        loaded.fleet.unwrap_or_else(|| panic!("refused:\n{}", problems.join("\n")))
    }

    /// The role of this name.
    pub(crate) fn role(&self, name: &str) -> Role {
        self.fleet().roles.get(name).unwrap_or_else(|| panic!("no role {name}")).clone()
    }

    /// All problems as lines; panics if the fleet is accepted.
    pub(crate) fn refused(&self) -> Vec<String> {
        let loaded = self.load();
        assert!(loaded.fleet.is_none(), "accepted");
        problems(&loaded)
    }

    /// The one problem; panics if there are more.
    pub(crate) fn only(&self) -> String {
        let lines = self.refused();
        assert_eq!(lines.len(), 1, "{}", lines.join("\n"));
        lines.into_iter().next().expect("one line")
    }

    /// Warnings of an accepted fleet.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let loaded = self.load();
        assert!(loaded.fleet.is_some(), "refused:\n{}", problems(&loaded).join("\n"));
        assert!(loaded.diagnostics.iter().all(|it| it.severity == Severity::Warning));
        problems(&loaded)
    }
}

/// One text out of many numbered ones.
pub(crate) fn lines(numbers: Range<usize>, line: impl Fn(usize) -> String) -> String {
    numbers.map(line).collect::<Vec<_>>().concat()
}

fn problems(loaded: &Loaded) -> Vec<String> {
    loaded.diagnostics.iter().map(ToString::to_string).collect()
}

/// Asserts that a line holds each of these texts.
#[track_caller]
pub(crate) fn names(line: &str, parts: &[&str]) {
    for part in parts {
        assert!(line.contains(part), "`{part}` is not in: {line}");
    }
}
