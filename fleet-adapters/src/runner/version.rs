//! Which version of a harness's program is installed.

use std::collections::BTreeMap;
use std::time::Duration;

use fleet_core::config::Role;
use fleet_core::harness::Harness;
use fleet_core::id::HarnessId;
use fleet_core::port::CommandSpec;
use fleet_core::status::HarnessStatus;

use super::Runtime;

/// A launch can wait for a busy machine.
const LIMIT: Duration = Duration::from_secs(10);
/// A person who looks does not want to.
const LOOK_LIMIT: Duration = Duration::from_secs(4);
/// A home that does not exist and that nobody can make.
const NO_HOME: &str = "/dev/null/home";
/// No version is longer.
const LONGEST: usize = 64;

impl Runtime {
    /// Asks a harness's program for its version. It gets a home that cannot exist, so that asking
    /// changes nothing.
    ///
    /// # Errors
    /// Why the version is not known, in one line. Not that a role could not start.
    ///
    /// # Cancel safety
    /// Dropping the future ends the program.
    pub async fn harness_version(&self, harness: &dyn Harness) -> Result<Option<String>, String> {
        self.ask_version(harness, LIMIT).await
    }

    async fn ask_version(
        &self,
        harness: &dyn Harness,
        limit: Duration,
    ) -> Result<Option<String>, String> {
        let Some(prerequisite) = harness.prerequisite() else { return Ok(None) };
        let Some((program, args)) = prerequisite.argv.split_first() else { return Ok(None) };
        let mut spec = CommandSpec::new(*program, args.iter().copied());
        spec.timeout = limit;
        spec.env = vec![
            ("PATH".to_owned(), self.world.path()),
            ("HOME".to_owned(), NO_HOME.to_owned()),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ];
        if let Some(spec_of_home) = harness.home() {
            spec.env.push((spec_of_home.variable.to_owned(), NO_HOME.to_owned()));
        }
        let output = self.ports.exec.run(&spec).await.map_err(|error| error.to_string())?;
        if !output.success() {
            return Err(format!("`{program}` ended with {:?}", output.exit));
        }
        let plain = |version: &String| {
            version.len() <= LONGEST && version.chars().all(|c| c.is_ascii_graphic())
        };
        let version = (prerequisite.version)(&output.stdout_text()).filter(plain);
        version.map(Some).ok_or_else(|| format!("`{program}` printed no version"))
    }
}

/// The installed versions of some harnesses, each asked for once.
#[derive(Debug, Clone, Default)]
pub struct HarnessVersions {
    asked: BTreeMap<HarnessId, Option<String>>,
}

impl HarnessVersions {
    /// Asks the program of each harness of these roles. Why one is not known is
    /// for its launch, or for `doctor`, to say.
    ///
    /// # Cancel safety
    /// Dropping the future ends the program that runs.
    pub async fn of_roles(runtime: &Runtime, roles: impl IntoIterator<Item = &Role>) -> Self {
        let mut asked = BTreeMap::new();
        for role in roles {
            if !asked.contains_key(&role.harness)
                && let Some(harness) = runtime.harnesses.get(role.harness.as_str())
            {
                let version = runtime.ask_version(&**harness, LOOK_LIMIT).await.ok().flatten();
                asked.insert(role.harness.clone(), version);
            }
        }
        Self { asked }
    }

    /// The version of a harness, if its program says so.
    pub fn get(&self, harness: &HarnessId) -> Option<&str> {
        self.asked.get(harness)?.as_deref()
    }
}

/// What a status says of a harness.
pub(super) fn harness_status(harness: &dyn Harness, version: Option<&str>) -> HarnessStatus {
    HarnessStatus {
        id: harness.id().clone(),
        version: version.map(str::to_owned),
        qualified: harness
            .prerequisite()
            .zip(version)
            .map(|(known, version)| known.is_qualified(version)),
    }
}
