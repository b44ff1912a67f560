//! What agents may write, for the choice of the programs that fleet runs itself.

use camino::{Utf8Path, Utf8PathBuf};
use fleet_core::config::{Fleet, LoadOptions, YamlMode, load};
use fleet_core::harness::Harnesses;
use fleet_core::id::RoleName;
use fleet_core::path::LexicalPath;
use fleet_core::port::{PathProbe, StateStore};
use fleet_core::programs::ProgramTrust;
use fleet_core::world::World;

use super::config_files::{ConfigFileError, read_sources};

/// No path is longer.
const LONGEST_PATH: u64 = 16 * 1024;

/// By the fleet of this command and those that roles were last started with. A fleet that does not
/// load leaves programs of the system only; one that is gone says nothing.
pub fn program_trust(
    store: &dyn StateStore,
    probe: &dyn PathProbe,
    world: &World,
    harnesses: &Harnesses,
    config: Option<&Utf8Path>,
) -> ProgramTrust {
    let home =
        LexicalPath::absolute(world.homes.os.as_str()).unwrap_or_else(|_| LexicalPath::root());
    let mut configs = vec![config.map(Utf8Path::to_owned)];
    for recorded in recorded_configs(store, world) {
        if !configs.contains(&recorded) {
            configs.push(recorded);
        }
    }
    let (mut fleets, mut complete): (Vec<Fleet>, bool) = (Vec::new(), true);
    for config in configs {
        let sources = match read_sources(store, probe, &world.layout, config.as_deref()) {
            Ok(sources) => sources,
            Err(ConfigFileError::Missing { .. }) => continue,
            Err(_) => {
                complete = false;
                continue;
            }
        };
        let options = LoadOptions { yaml_mode: YamlMode::Compat, home: &home, harnesses };
        match load(&sources, &options).fleet {
            Some(fleet) => fleets.push(fleet),
            None => complete = false,
        }
    }
    ProgramTrust::new(&fleets, complete, &world.layout, &home, probe)
}

/// The configuration of each role that was ever started; `None` is the default one.
fn recorded_configs(store: &dyn StateStore, world: &World) -> Vec<Option<Utf8PathBuf>> {
    let entries = store.list(&world.layout.control_root()).ok().flatten().unwrap_or_default();
    let roles = entries.into_iter().filter_map(|entry| entry.name.parse::<RoleName>().ok());
    let recorded = roles.filter_map(|role| {
        store.read(&world.layout.role(&role).config_path(), LONGEST_PATH).ok().flatten()
    });
    recorded
        .map(|bytes| {
            let text = String::from_utf8_lossy(&bytes).trim().to_owned();
            (!text.is_empty()).then(|| Utf8PathBuf::from(text))
        })
        .collect()
}
