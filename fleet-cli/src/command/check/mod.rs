//! `check`: the gate for fleet files. Reads them, or an older version of them, and prints what
//! [`fleet_core::policy::check`] says; looks at nothing else.

mod git;
mod github;
mod human;
mod report;
mod sarif;
mod sources;

use fleet_core::policy::check;

use self::git::Git;
use self::report::{Against, Report};
use self::sources::{Fileset, Shown};
use crate::app::App;
use crate::args::{self, CheckFormat};
use crate::error::CliError;
use crate::exit::ExitStatus;

/// Judges the fleet files, compares them with an older version where one is named, and prints the
/// verdict.
///
/// # Errors
/// A file or a revision cannot be read. What is wrong *in* the files is a finding.
pub async fn run(app: &App, args: &args::Check) -> Result<ExitStatus, CliError> {
    let git = Git::beside(app, &sources::base_path(app));
    let root = match args.format {
        // Both name files from the top of the repository.
        CheckFormat::Github | CheckFormat::Sarif => git.root().await,
        CheckFormat::Human | CheckFormat::Json => app.settings.cwd.clone(),
    };
    let shown = Shown::below(root);
    let files = sources::read(app, &shown)?;
    let (mode, harnesses) = (args.yaml_mode.into(), &app.runtime.harnesses);
    let checked = check::check(&files.sources, mode, harnesses);
    let mut report = Report::new(&files, &checked);
    if let Some(old) = &args.against {
        let old_files = older(app, &git, old, &shown).await?;
        let old_checked = check::check(&old_files.sources, mode, harnesses);
        let mut against = Against::new(old, &old_files);
        match (&old_checked.fleet, &checked.fleet) {
            (None, _) => report.old_does_not_load(old, &old_files, &old_checked),
            (Some(_), None) => {}
            (Some(before), Some(after)) => {
                let found = check::compare(before, after, harnesses);
                against.compare(&files, &old_files, found);
            }
        }
        report.against = Some(against);
    }
    let out = &app.printer;
    match args.format {
        CheckFormat::Human => human::print(out, &report),
        CheckFormat::Json => out.json(&report.json()),
        CheckFormat::Sarif => out.json(&sarif::document(&report)),
        CheckFormat::Github => out.raw(&github::text(&report)),
    }
    Ok(if report.is_good() { ExitStatus::Done } else { ExitStatus::Failed })
}

/// The version to compare with. An existing file is a file; everything else is a revision.
async fn older(app: &App, git: &Git<'_>, old: &str, shown: &Shown) -> Result<Fileset, CliError> {
    if old.is_empty() || old.starts_with('-') || old.chars().any(char::is_control) {
        let message = format!("`{}` is no fleet file and no revision", old.escape_debug());
        return Err(CliError::usage(message));
    }
    match sources::older_file(app, old, shown)? {
        Some(files) => Ok(files),
        None => git.files(old).await,
    }
}
