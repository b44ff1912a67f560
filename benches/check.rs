//! Judges fleets of 10, 100 and 1000 roles by their text, and compares each with a narrower one.

use criterion::{Criterion, criterion_group, criterion_main};
use fleet_core::config::YamlMode;
use fleet_core::harness::Harnesses;
use fleet_core::policy::check::{check, compare, nominal_sources};

fn check_fleet(criterion: &mut Criterion) {
    let harnesses = Harnesses::built_in();
    let sources = |roles, mounts| {
        let text = fleet_benches::fleet_text("/srv/data", roles, mounts);
        nominal_sources(Some(text.into_bytes()), Vec::new())
    };
    let judged = |roles, mounts| check(&sources(roles, mounts), YamlMode::Compat, &harnesses);
    for (group, sizes) in [
        ("check-roles", [(10_usize, 20_usize), (100, 20), (1000, 20)]),
        ("check-mounts", [(10, 5), (10, 50), (10, 205)]),
    ] {
        let mut group = criterion.benchmark_group(group);
        for (roles, mounts) in sizes {
            let name = format!("{roles}x{mounts}");
            let (new, old) = (judged(roles, mounts), judged(roles, mounts / 2));
            assert!(new.is_good(), "{:?}", new.findings.first());
            let (Some(new), Some(old)) = (new.fleet, old.fleet) else { continue };
            assert!(compare(&old, &new, &harnesses).widens());
            let text = sources(roles, mounts);
            group.bench_function(format!("judge/{name}"), |bencher| {
                bencher.iter(|| check(&text, YamlMode::Compat, &harnesses));
            });
            group.bench_function(format!("compare/{name}"), |bencher| {
                bencher.iter(|| compare(&old, &new, &harnesses));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, check_fleet);
criterion_main!(benches);
