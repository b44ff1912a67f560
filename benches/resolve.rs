//! Resolves policies of 5, 25 and 205 mounts against real directories.
//!
//! `resolve/N` uses one probe for all runs, as `config` does for all roles: every mount is looked at
//! anew, but the mount table and the directories above are known. `resolve/N-alone` makes a probe for
//! each run, as a launch does, and so reads the mount table each time.

#![expect(clippy::expect_used, reason = "a benchmark may stop at the first surprise")]

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;

use camino::Utf8PathBuf;
use criterion::{Criterion, criterion_group, criterion_main};
use fleet_core::harness::shared::SharedItems;
use fleet_core::isolation::forbidden::{ForbiddenInputs, ForbiddenList};
use fleet_core::isolation::resolve::{ResolveContext, resolve};
use fleet_core::isolation::{FsPath, IsolationBlock, MountMode, NetworkMode};
use fleet_core::layout::{FleetLayout, Homes};
use fleet_core::path::LexicalPath;
use fleet_sandbox::OpenatProbe;

/// STATE, the harness home and the handout, which are in every policy.
const OWN_MOUNTS: usize = 3;

fn resolve_policy(criterion: &mut Criterion) {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let root = Utf8PathBuf::try_from(scratch.path().canonicalize().expect("canonical"));
    let root = root.expect("UTF-8");
    let home = root.join("home");
    fs::create_dir_all(&home).expect("a home");
    let homes = Homes { fleet: home.clone(), os: home, passwd: None };
    let layout = FleetLayout::new(&homes.fleet);
    let trees = layout.role(&"bench".parse().expect("a role name"));
    let harness_home = trees.harness_home(&"command".parse().expect("a harness id"));
    let mut private = DirBuilder::new();
    private.recursive(true).mode(0o700);
    for directory in trees.all().into_iter().chain([harness_home.as_path()]) {
        private.create(directory).expect("a role directory");
    }
    let uid = rustix::process::getuid().as_raw();
    let inputs = ForbiddenInputs {
        homes: &homes,
        state_root: layout.root().to_owned(),
        config_files: vec![layout.base_config()],
        drop_in_dir: layout.drop_in_dir(),
        forbid_paths: Vec::new(),
        relocated: Vec::new(),
        sockets: Vec::new(),
        path_dirs: Vec::new(),
        binary: None,
        agent_dirs: Vec::new(),
        uid,
    };
    let forbidden = ForbiddenList::build(&inputs, &OpenatProbe::new());

    let mut group = criterion.benchmark_group("resolve");
    for total in [5_usize, 25, 205] {
        let paths: Vec<FsPath> = (0..total - OWN_MOUNTS)
            .map(|index| {
                let path = root.join(format!("data/m{index}"));
                fs::create_dir_all(&path).expect("a directory to mount");
                FsPath {
                    written: path.to_string(),
                    path: LexicalPath::absolute(path.as_str()).expect("absolute"),
                }
            })
            .collect();
        let (read, write) = paths.split_at(paths.len() / 2);
        let block = IsolationBlock {
            network: Some(NetworkMode::Deny),
            fs_read: read.to_vec(),
            fs_write: write.to_vec(),
            ..IsolationBlock::default()
        };
        let context = ResolveContext {
            trees: &trees,
            harness_home: &harness_home,
            cwd: None,
            cwd_mode: MountMode::ReadWrite,
            homes: &homes,
            forbidden: &forbidden,
            write_dirs: &[],
            launch_closure: &[],
            shared: &SharedItems::default(),
            model_endpoints: &[],
            uid,
        };
        let shared = OpenatProbe::new();
        let policy = resolve(&block, &context, &shared).expect("a policy");
        assert_eq!(policy.mounts.len(), total);
        assert!(policy.mounts.iter().all(|mount| mount.identity.is_some()));
        group.bench_function(total.to_string(), |bencher| {
            bencher.iter(|| resolve(&block, &context, &shared));
        });
        group.bench_function(format!("{total}-alone"), |bencher| {
            bencher.iter(|| resolve(&block, &context, &OpenatProbe::new()));
        });
    }
    group.finish();
}

criterion_group!(benches, resolve_policy);
criterion_main!(benches);
