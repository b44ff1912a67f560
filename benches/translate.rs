//! Neutral permissions turned into the settings of each built-in agent program.

use std::collections::BTreeMap;

use criterion::{Criterion, criterion_group, criterion_main};
use fleet_core::harness::{Harnesses, LaunchDirs, Options};
use fleet_core::permissions::{Approval, Outer, Permissions, TranslationRequest};

fn translate_words(criterion: &mut Criterion) {
    let dirs = LaunchDirs {
        state: "/srv/fleet/.ours-fleet/agents/a".into(),
        cwd: "/srv/project".into(),
        git: Vec::new(),
        harness_home: "/srv/fleet/.ours-fleet/harness/a".into(),
        handout: "/srv/fleet/.ours-fleet/handout/a".into(),
        briefing: "/srv/fleet/.ours-fleet/handout/a/briefing.md".into(),
        aliases: BTreeMap::new(),
    };
    let (options, operator_files) = (Options::default(), BTreeMap::new());
    let harnesses = Harnesses::built_in();
    let mut group = criterion.benchmark_group("translate");
    for name in ["claude-code", "codex"] {
        let Some(harness) = harnesses.get(name) else { continue };
        let request = TranslationRequest {
            permissions: Permissions { approval: Approval::Auto, ..Permissions::default() },
            options: &options,
            outer: Outer::On,
            dirs: &dirs,
            version: None,
            root: false,
            operator_files: &operator_files,
            denied_reads: &[],
        };
        group.bench_function(name, |bencher| bencher.iter(|| harness.translate(&request)));
    }
    group.finish();
}

criterion_group!(benches, translate_words);
criterion_main!(benches);
