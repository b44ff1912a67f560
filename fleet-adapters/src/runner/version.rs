//! Which version of a harness's program is installed.

use std::time::Duration;

use fleet_core::harness::Harness;
use fleet_core::port::CommandSpec;
use fleet_core::status::HarnessStatus;

use super::Runtime;

const LIMIT: Duration = Duration::from_secs(10);
/// No version is longer.
const LONGEST: usize = 64;

impl Runtime {
    /// Asks a harness's program for its version. It runs in a home of its own that nobody uses, so
    /// that asking changes nothing of the operator's.
    ///
    /// # Errors
    /// Why the version is not known, in one line. Not that a role could not start.
    ///
    /// # Cancel safety
    /// Dropping the future ends the program.
    pub async fn harness_version(&self, harness: &dyn Harness) -> Result<Option<String>, String> {
        let Some(prerequisite) = harness.prerequisite() else { return Ok(None) };
        let Some((program, args)) = prerequisite.argv.split_first() else { return Ok(None) };
        let home = self.runtime_dir.join("version-home");
        self.ports.store.ensure_dir(&home).map_err(|error| error.to_string())?;
        let mut spec = CommandSpec::new(*program, args.iter().copied());
        spec.timeout = LIMIT;
        spec.env = vec![
            ("PATH".to_owned(), self.world.path()),
            ("HOME".to_owned(), home.to_string()),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ];
        if let Some(spec_of_home) = harness.home() {
            spec.env.push((spec_of_home.variable.to_owned(), home.to_string()));
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
