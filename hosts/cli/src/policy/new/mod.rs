//! A folder with a policy that builds at once.

mod name;
mod sdk;
mod templates;

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use clap::ValueEnum;
use reprise_components_build::CONTRACT;

use super::Problem;
use sdk::Sdk;
use templates::Template;

/// What a policy is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Language {
    /// With the SDK: types, and unit tests by `cargo test`
    Rust,
    /// Compiled by zig's clang, which pip brings
    C,
    /// With componentize-py, which pip brings: its interpreter is in the component
    Python,
    /// With componentize-qjs, which npm brings: its interpreter is in the component
    Js,
}

/// What a policy decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// At which positions windows are kept
    Checkpoint,
    /// What is evicted
    Cache,
}

impl Language {
    fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::C => "c",
            Self::Python => "python",
            Self::Js => "js",
        }
    }

    /// As people write it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Rust => "Rust",
            Self::C => "C",
            Self::Python => "Python",
            Self::Js => "JavaScript",
        }
    }
}

impl Kind {
    /// As people write it, and as templates are named.
    pub fn name(self) -> &'static str {
        match self {
            Self::Checkpoint => "checkpoint",
            Self::Cache => "cache",
        }
    }
}

/// What to write.
#[derive(Clone, Debug)]
pub struct Options {
    /// The policy's name.
    pub name: String,
    /// The language.
    pub language: Language,
    /// The kind.
    pub kind: Kind,
    /// Where to; the name if it is not said.
    pub directory: Option<PathBuf>,
    /// A checkout of Reprise or a URL of its repository; searched for if it is not said.
    pub sdk: Option<String>,
}

/// Writes the folder and returns where it is.
///
/// # Errors
/// [`Problem::Input`] when the name will not do, there is no such template, something is in the way, or there is no SDK; then
/// nothing is written. [`Problem::Work`] when it cannot be written.
pub fn write(options: &Options) -> Result<PathBuf, Problem> {
    let Options { name, language, kind, directory, sdk } = options;
    name::check(name).map_err(Problem::Input)?;
    let template = Template::find(language.name(), kind.name()).ok_or_else(|| {
        Problem::Input(anyhow!(
            "there is no template for a {} policy in {}; there is {}. Any language that compiles to WebAssembly will do: export what wit/ \
             says, and have `reprise policy build MODULE -o FILE` make a component of it",
            kind.name(),
            language.title(),
            Template::names().join(", ")
        ))
    })?;
    let folder = directory.clone().unwrap_or_else(|| PathBuf::from(name));
    check_empty(&folder).map_err(Problem::Input)?;
    let needs_sdk = template.needs_sdk();
    if sdk.is_some() && !needs_sdk {
        return Err(Problem::Input(anyhow!(
            "--sdk is for policies in Rust; {} needs only wit/, of which it gets a copy",
            language.title()
        )));
    }
    let sdk = if needs_sdk { Some(Sdk::find(sdk.as_deref(), &folder).map_err(Problem::Input)?) } else { None };

    let failed = |error: io::Error| anyhow!(error).context(format!("writing the policy's folder {}", folder.display()));
    fs::create_dir_all(&folder).map_err(failed).map_err(Problem::Work)?;
    let mut given = vec![("{{name}}", name.clone())];
    if let Some(sdk) = &sdk {
        let [kit, testing] = sdk.dependencies(&folder).map_err(Problem::Work)?;
        given.extend([("{{sdk}}", kit), ("{{testing}}", testing)]);
    }
    for (path, bytes) in template.files(&given) {
        write_file(&folder.join(path), &bytes).map_err(Problem::Work)?;
    }
    if !needs_sdk {
        for (file, text) in CONTRACT {
            write_file(&folder.join("wit").join(file), text.as_bytes()).map_err(Problem::Work)?;
        }
    }
    Ok(folder)
}

/// Refuses a folder that holds something, and what is no folder.
fn check_empty(folder: &Path) -> anyhow::Result<()> {
    let mut entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(error).with_context(|| format!("looking whether the folder {} is empty", folder.display()));
        }
    };
    if entries.next().is_some() {
        return Err(anyhow!(
            "{} is not empty, and nothing in it is touched: name another folder with --dir",
            folder.display()
        ));
    }
    Ok(())
}

/// Writes a file and the folders it lies in. Scripts may be executed.
fn write_file(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let write = || -> io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, bytes)?;
        if bytes.starts_with(b"#!") {
            let mut permissions = fs::metadata(path)?.permissions();
            // Whoever may read it may run it.
            permissions.set_mode(permissions.mode() | (permissions.mode() & 0o444) >> 2);
            fs::set_permissions(path, permissions)?;
        }
        Ok(())
    };
    write().with_context(|| format!("writing {}", path.display()))
}
