//! Loads fleet files of 10, 100 and 1000 roles with 20 mounts each, from text.

use camino::Utf8PathBuf;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fleet_core::config::{ConfigSources, LoadOptions, SourceText, YamlMode, load};
use fleet_core::harness::Harnesses;
use fleet_core::path::LexicalPath;

fn load_fleet(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("load");
    let harnesses = Harnesses::built_in();
    let home = LexicalPath::root();
    let options = LoadOptions { yaml_mode: YamlMode::Compat, home: &home, harnesses: &harnesses };
    for roles in [10_usize, 100, 1000] {
        let path = Utf8PathBuf::from("/srv/fleet/fleet.yaml");
        let bytes = fleet_benches::fleet_text("/srv/data", roles, 20).into_bytes();
        let size = bytes.len() as u64;
        let sources = ConfigSources {
            base_path: path.clone(),
            base: Some(SourceText { path, bytes }),
            drop_ins: Vec::new(),
        };
        let found = load(&sources, &options);
        assert!(
            found.fleet.as_ref().is_some_and(|fleet| fleet.roles.len() == roles),
            "the fleet does not load: {:?}",
            found.diagnostics.first()
        );
        group.throughput(Throughput::Bytes(size));
        group.bench_function(roles.to_string(), |bencher| {
            bencher.iter(|| load(&sources, &options));
        });
    }
    group.finish();
}

criterion_group!(benches, load_fleet);
criterion_main!(benches);
