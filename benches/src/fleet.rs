//! Fleet files of a given size.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

const HEAD: &str = "\
defaults:
  harness: command
  harness_options: { argv: [cat] }
  isolation: { network: deny, on_unavailable: strict }
roles:
";

/// The text of a fleet file with `roles` roles, each with `mounts` paths below `root`, half of them
/// to read, half to write.
///
/// Without mounts the roles still are isolated. The program of each is `cat`, which waits for input
/// and does nothing.
pub fn fleet_text(root: &str, roles: usize, mounts: usize) -> String {
    let mut text = String::from(HEAD);
    for role in 0..roles {
        // Writing into a String never fails.
        let _ = writeln!(text, "  r{role}:\n    mission: Wait for input, number {role}.");
        if mounts > 0 {
            let _ =
                writeln!(text, "    isolation:\n      network: deny\n      on_unavailable: strict");
            text.push_str("      fs:\n");
            for (key, range) in [("read", 0..mounts / 2), ("write", mounts / 2..mounts)] {
                let _ = writeln!(text, "        {key}:");
                for mount in range {
                    let _ = writeln!(text, "          - {}", mount_path(root, role, mount));
                }
            }
        }
    }
    text
}

/// Writes `home/` with the fleet file and every directory that it names below `root`.
pub fn write_fleet(root: &Path, roles: usize, mounts: usize) -> io::Result<()> {
    let text = root
        .to_str()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path is not UTF-8"))?;
    for role in 0..roles {
        for mount in 0..mounts {
            fs::create_dir_all(mount_path(text, role, mount))?;
        }
    }
    let home = root.join("home");
    fs::create_dir_all(&home)?;
    fs::write(home.join("fleet.yaml"), fleet_text(text, roles, mounts))
}

fn mount_path(root: &str, role: usize, mount: usize) -> String {
    format!("{root}/mounts/r{role}/m{mount}")
}
