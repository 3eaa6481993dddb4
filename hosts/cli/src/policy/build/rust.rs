//! A folder in Rust: one package with a `cdylib`, compiled by the toolchain that builds the shipped policies.

use std::{
    env, fs,
    io::BufReader,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, anyhow, bail};
use cargo_metadata::{CrateType, Message, MetadataCommand, Package, Target};
use reprise_components_build::{Metadata, Toolchain};

use super::{Compiled, OUTPUT, Problem, script::is_on_path};

/// Compiles the package at `folder`.
pub(super) fn compile(folder: &Path, say: &impl Fn(&str)) -> Result<Compiled, Problem> {
    let folder =
        folder.canonicalize().with_context(|| format!("following {}", folder.display())).map_err(Problem::Input)?;
    let toolchain = toolchain().map_err(Problem::Work)?;
    let known = packages(&folder).map_err(Problem::Input)?;
    let package = known.root_package().ok_or_else(|| {
        Problem::Input(anyhow!(
            "{} is a workspace without a package of its own: name the folder of one policy",
            folder.display()
        ))
    })?;
    let target = cdylib(package).map_err(Problem::Input)?;
    say(&format!("building {} {} with {}", package.name, package.version, toolchain.version()));

    // What lies on this machine is written by the names of its packages.
    let local = known.packages.iter().filter(|package| package.source.is_none());
    let hide: Vec<(&Path, &str)> = local
        .filter_map(|package| Some((package.manifest_path.parent()?.as_std_path(), package.name.as_str())))
        .collect();
    let module = run(&toolchain, &folder, &hide, package, target).map_err(Problem::Work)?;
    let bytes = fs::read(&module).with_context(|| format!("reading {}", module.display())).map_err(Problem::Work)?;
    let output = Some(Path::new(OUTPUT).join(format!("{}.wasm", package.name)));
    Ok(Compiled {
        bytes,
        metadata: metadata(package, toolchain.version()),
        output: output.map(|output| shortest(&folder).join(output)),
    })
}

/// What compiles it, or which of the tools is missing.
fn toolchain() -> anyhow::Result<Toolchain> {
    let is_there = |variable: &str, program: &str| match env::var_os(variable) {
        Some(named) => is_on_path(&named),
        None => is_on_path(program.as_ref()),
    };
    let (cargo, rustc) = (is_there("CARGO", "cargo"), is_there("RUSTC", "rustc"));
    let found = Toolchain::find()?;
    let missing = match (cargo, rustc || found.is_some()) {
        (true, true) => return found.ok_or_else(|| anyhow!(Toolchain::missing())),
        (false, true) => "cargo",
        (true, false) => "rustc",
        (false, false) => "cargo/rustc",
    };
    bail!("there is no {missing} on the PATH: install Rust (https://rustup.rs)")
}

/// The folder as seen from here, if it lies here.
fn shortest(folder: &Path) -> PathBuf {
    let here = env::current_dir().and_then(|here| here.canonicalize()).ok();
    here.and_then(|here| folder.strip_prefix(here).ok()).map_or_else(|| folder.to_owned(), Path::to_owned)
}

/// What cargo knows of the package and what it depends on.
fn packages(folder: &Path) -> anyhow::Result<cargo_metadata::Metadata> {
    let found = MetadataCommand::new().manifest_path(folder.join("Cargo.toml")).exec();
    found.map_err(|error| match error {
        cargo_metadata::Error::CargoMetadata { stderr } => {
            anyhow!("reading {}: {}", folder.join("Cargo.toml").display(), stderr.trim())
        }
        error => anyhow!(error).context(format!("reading {}", folder.join("Cargo.toml").display())),
    })
}

fn cdylib(package: &Package) -> anyhow::Result<&Target> {
    package.targets.iter().find(|target| target.crate_types.contains(&CrateType::CDyLib)).ok_or_else(|| {
        anyhow!(
            "{} has no library that a component can be made of: add `crate-type = [\"cdylib\"]` to its [lib]",
            package.manifest_path
        )
    })
}

/// Compiles and says where the module is. Cargo's own words go to standard error.
fn run(
    toolchain: &Toolchain,
    folder: &Path,
    hide: &[(&Path, &str)],
    package: &Package,
    target: &Target,
) -> anyhow::Result<PathBuf> {
    let mut command = toolchain.cargo_build(folder, hide)?;
    command.args(["--lib", "--message-format", "json-render-diagnostics", "--package"]).arg(package.id.repr.as_str());
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("starting cargo")?;
    let messages = child.stdout.take().context("listening to cargo")?;
    let mut module = None;
    for message in Message::parse_stream(BufReader::new(messages)) {
        if let Message::CompilerArtifact(artifact) = message.context("listening to cargo")?
            && artifact.package_id == package.id
            && artifact.target.name == target.name
        {
            module = artifact.filenames.into_iter().find(|path| path.extension() == Some("wasm"));
        }
    }
    if !child.wait().context("waiting for cargo")?.success() {
        bail!("compiling {} failed; the compiler's messages are above", package.name);
    }
    module.map(PathBuf::from).with_context(|| format!("compiling {} gave no .wasm file", package.name))
}

/// What the manifest says. The compiler's own word on the language is stripped with all else that a host does not need.
fn metadata(package: &Package, compiler: &str) -> Metadata {
    let authors = package.authors.join(", ");
    // `rustc 1.95.0 (…)`.
    let version = compiler.split_whitespace().nth(1).unwrap_or_default();
    Metadata {
        name: Some(package.name.to_string()),
        version: Some(package.version.to_string()),
        description: package.description.clone(),
        authors: (!authors.is_empty()).then_some(authors),
        licenses: package.license.clone(),
        source: package.repository.clone(),
        language: Some(("Rust".to_owned(), version.to_owned())),
        ..Metadata::default()
    }
}
