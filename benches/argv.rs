//! Makes the bubblewrap command line of a policy with 205 mounts.

#![expect(clippy::expect_used, reason = "a benchmark may stop at the first surprise")]

use criterion::{Criterion, criterion_group, criterion_main};
use fleet_core::launch::LaunchCommand;
use fleet_core::path::LexicalPath;
use fleet_core::port::{FileIdentity, IsolationBackend};

fn plan_argv(criterion: &mut Criterion) {
    let root = LexicalPath::absolute("/srv/data").expect("absolute");
    let policy = fleet_benches::policy_of(&root, 205, |path| FileIdentity {
        dev: 1,
        ino: path.as_str().len() as u64,
    });
    let policy = policy.expect("a policy");
    let backend = fleet_benches::host_backend();
    let evidence = fleet_benches::evidence("/usr/bin/bwrap", "--bind-fd --ro-bind-fd");
    let command = LaunchCommand { argv: vec!["true".to_owned()], cwd: "/srv/data/m1".into() };
    let plan = backend.plan(&policy, &evidence, &command).expect("a plan");
    assert!(plan.argv.len() > 2 * 205);
    let mut group = criterion.benchmark_group("argv");
    group.bench_function("205", |bencher| {
        bencher.iter(|| backend.plan(&policy, &evidence, &command));
    });
    group.finish();
}

criterion_group!(benches, plan_argv);
criterion_main!(benches);
