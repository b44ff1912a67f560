//! Loads a fleet file of this machine and says what each role may do: `stranger FLEET_FILE HOME`.

use std::process::ExitCode;

use fleet_core::{ConfigSources, Harnesses, Judge, LoadOptions, World, load};
use fleet_sandbox::OpenatProbe;

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (file, home) = (args.next().ok_or("FLEET_FILE HOME")?, args.next().ok_or("FLEET_FILE HOME")?);
    let (world, harnesses) = (World::of_account("me", 1000, home)?, Harnesses::built_in());
    let sources = ConfigSources::base_only(&file, std::fs::read(&file)?);
    let loaded = load(&sources, &LoadOptions::new(&world.home()?, &harnesses));
    for diagnostic in &loaded.diagnostics {
        println!("{diagnostic}");
    }
    let Some(fleet) = loaded.fleet else { return Ok(ExitCode::FAILURE) };
    let probe = OpenatProbe::new();
    let judge = Judge::new(&fleet, &world, &harnesses, &probe);
    for (role, verdict) in judge.all() {
        for problem in &verdict.problems {
            println!("{}: refused: {problem}", role.name);
        }
        for mount in verdict.policy.iter().flat_map(|policy| &policy.mounts) {
            println!("{}: {} {}", role.name, mount.mode, mount.destination);
        }
    }
    Ok(ExitCode::SUCCESS)
}
