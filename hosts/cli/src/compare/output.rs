//! The files of a comparison, each whole or not there.

use std::{
    fs, io,
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::Context;

use super::{Results, csv, html};

/// Where the files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// One line for each cell.
    pub csv: PathBuf,
    /// Everything.
    pub json: PathBuf,
    /// The report.
    pub report: PathBuf,
}

/// Writes results.csv, results.json and report.html into a directory that is there.
///
/// # Errors
/// When one cannot be written; what was there before is then as it was.
pub fn write(directory: &Path, results: &Results) -> anyhow::Result<Files> {
    let file = |name: &str| directory.join(name);
    let files = Files { csv: file("results.csv"), json: file("results.json"), report: file("report.html") };
    let json = serde_json::to_string_pretty(&results.json()).context("putting the results into JSON")? + "\n";
    for (path, text) in [(&files.csv, csv(results)), (&files.json, json), (&files.report, html(results))] {
        replace(path, &text).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(files)
}

/// Puts a file in the place of what was there.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    // Others may read it as they may read any file that is made.
    let mode = fs::Permissions::from_mode(0o666);
    let mut temporary = tempfile::Builder::new().permissions(mode).tempfile_in(directory)?;
    temporary.write_all(text.as_bytes())?;
    temporary.as_file().sync_all()?;
    temporary.persist(path)?;
    Ok(())
}
