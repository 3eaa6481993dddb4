//! A folder in any language: its script is run, and leaves a module or a component.

use std::{
    env,
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, anyhow, bail};
use reprise_components_build::Metadata;

use super::{Compiled, OUTPUT, Problem};

/// The script.
pub(super) const SCRIPT: &str = "build.sh";

/// What the scripts of a language call.
struct Needs {
    /// The source by which the language is known.
    source: &'static str,
    language: &'static str,
    program: &'static str,
    /// A variable that names another program instead.
    instead: Option<&'static str>,
    install: &'static str,
}

const LANGUAGES: [Needs; 3] = [
    Needs {
        source: "policy.c",
        language: "C",
        program: "python3",
        instead: Some("CC"),
        install: "pip brings the compiler: `apt-get install python3 python3-venv`, or name a clang that compiles for wasm32-wasi in CC",
    },
    Needs {
        source: "policy.py",
        language: "Python",
        program: "python3",
        instead: None,
        install: "pip brings componentize-py: `apt-get install python3 python3-venv`, version 3.10 or later",
    },
    Needs {
        source: "policy.js",
        language: "JavaScript",
        program: "npm",
        instead: None,
        install: "npm brings componentize-qjs: `apt-get install nodejs npm`, or https://nodejs.org; version 20 or later",
    },
];

/// Runs the script of `folder` and reads what it left.
pub(super) fn run(folder: &Path, say: &impl Fn(&str)) -> Result<Compiled, Problem> {
    let needs = LANGUAGES.iter().find(|needs| folder.join(needs.source).is_file());
    needs.map_or(Ok(()), check).map_err(Problem::Work)?;
    let before = modules(folder).map_err(Problem::Work)?;
    say(&format!("running {}", folder.join(SCRIPT).display()));
    execute(folder).map_err(Problem::Work)?;
    let module = left(folder, &before).map_err(Problem::Work)?;
    let bytes = fs::read(&module).with_context(|| format!("reading {}", module.display())).map_err(Problem::Work)?;
    let language = needs.map(|needs| (needs.language.to_owned(), String::new()));
    Ok(Compiled { bytes, metadata: Metadata { language, ..Metadata::default() }, output: Some(module) })
}

/// Says what is missing before anything is fetched.
fn check(needs: &Needs) -> anyhow::Result<()> {
    let Needs { language, program, instead, install, .. } = needs;
    if instead.is_some_and(|variable| env::var_os(variable).is_some()) || is_on_path(program.as_ref()) {
        return Ok(());
    }
    Err(anyhow!("a policy in {language} is built with `{program}`, which is not on the path: {install}"))
}

/// Whether there is such a program, by its name or its path.
pub(super) fn is_on_path(program: &OsStr) -> bool {
    let paths = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&paths).any(|folder| folder.join(program).is_file())
}

fn execute(folder: &Path) -> anyhow::Result<()> {
    let script = folder.canonicalize().with_context(|| format!("following {}", folder.display()))?.join(SCRIPT);
    let mut command = Command::new(&script);
    // Standard output is for the result.
    command.current_dir(folder).stdin(Stdio::null()).stdout(io::stderr());
    let status = command.status().map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => anyhow!("{} may not be executed: chmod +x it", script.display()),
        io::ErrorKind::NotFound => {
            anyhow!("{} cannot be run: what its first line names is not there", script.display())
        }
        _ => anyhow!(error).context(format!("running {}", script.display())),
    })?;
    if !status.success() {
        bail!("{} ended with {status}; what it said is above", script.display());
    }
    Ok(())
}

/// Modules and components in the folder's output, with the time of their last change.
fn modules(folder: &Path) -> anyhow::Result<Vec<(PathBuf, std::time::SystemTime)>> {
    let output = folder.join(OUTPUT);
    let reading = || format!("reading {}", output.display());
    let entries = match fs::read_dir(&output) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(reading)?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.with_context(reading)?.path();
        if path.extension().is_some_and(|extension| extension == "wasm") {
            let changed = fs::metadata(&path).and_then(|metadata| metadata.modified());
            found.push((path, changed.with_context(reading)?));
        }
    }
    found.sort();
    Ok(found)
}

/// The one that the script wrote.
fn left(folder: &Path, before: &[(PathBuf, std::time::SystemTime)]) -> anyhow::Result<PathBuf> {
    let after = modules(folder)?;
    let mut written: Vec<PathBuf> =
        after.iter().filter(|module| !before.contains(module)).map(|(path, _)| path.clone()).collect();
    // A script that found nothing to do leaves the one of last time.
    if written.is_empty() && after.len() == 1 {
        written.extend(after.into_iter().map(|(path, _)| path));
    }
    match (written.pop(), written.is_empty()) {
        (Some(module), true) => Ok(module),
        (Some(_), false) => {
            bail!("{SCRIPT} wrote more than one .wasm file to {}, and a policy is one", folder.join(OUTPUT).display())
        }
        (None, _) => bail!("{SCRIPT} wrote no .wasm file to {}", folder.join(OUTPUT).display()),
    }
}
