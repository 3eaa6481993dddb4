//! `cargo components`: builds the components in `policies/dist`, the fixtures of the tests, and their manifest.
//!
//! `cargo components --check` builds them beside the committed ones and fails if these are not current.

mod component;
mod manifest;
mod sources;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, bail};
use clap::Parser;
use reprise_components_build::Toolchain;

use component::COMPONENTS;
use manifest::{Entry, Manifest};

/// Builds the shipped policies and the core as WebAssembly components.
#[derive(Parser)]
struct Arguments {
    /// Change nothing: fail if the committed components were not built from these sources.
    #[arg(long)]
    check: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without a backtrace: the message says what to do.
            eprintln!("components: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let root = workspace_root()?;
    let toolchain = Toolchain::find_or_install(|what| println!("components: {what}"))?;
    println!("components: building with {}", toolchain.version());
    let built = component::build_all(&root, &toolchain)?;
    let manifest = Manifest {
        compiler: toolchain.version().to_owned(),
        sources: sources::digest(&root)?,
        component: built.iter().map(Entry::of).collect(),
    };
    if arguments.check { check(&root, &manifest) } else { write(&root, &manifest, &built) }
}

/// Replaces what is committed.
fn write(root: &Path, manifest: &Manifest, built: &[component::Built]) -> Result<()> {
    for built in built {
        let path = root.join(built.component.file());
        let folder = path.parent().expect("a file lies in a folder");
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        fs::write(&path, &built.bytes).with_context(|| format!("writing {}", path.display()))?;
        println!("components: {:>8} bytes  {}", built.bytes.len(), built.component.file());
    }
    manifest.write(root)
}

/// Compares what is committed with its manifest, and the manifest with what was just built.
fn check(root: &Path, fresh: &Manifest) -> Result<()> {
    let committed = Manifest::read(root)?;
    let mut stale = committed.unlike_files(root)?;
    if committed.sources != fresh.sources {
        stale.push("the sources have changed since the components were built".to_owned());
    }
    for component in COMPONENTS {
        if !committed.component.iter().any(|entry| entry.name == component.name) {
            stale.push(format!("`{}` is not in the manifest", component.name));
        }
    }
    let differing = committed.differing(fresh);
    if committed.compiler == fresh.compiler {
        stale.extend(differing.iter().map(|name| format!("`{name}` comes out differently when it is built anew")));
    } else if !differing.is_empty() {
        println!(
            "components: built anew with {} these differ from the committed ones ({}), as they may: {}",
            fresh.compiler,
            committed.compiler,
            differing.join(", ")
        );
    }
    if stale.is_empty() {
        println!("components: {} are current", committed.component.len());
        return Ok(());
    }
    bail!(
        "components are not current:\n  {}\nrun `cargo components` and commit policies/dist and tests/fixtures",
        stale.join("\n  ")
    )
}

/// The workspace this program belongs to.
fn workspace_root() -> Result<PathBuf> {
    let package = std::env::var("CARGO_MANIFEST_DIR").context("run this as `cargo components`, from the workspace")?;
    Path::new(&package)
        .ancestors()
        .nth(2)
        .map(Path::to_owned)
        .with_context(|| format!("`{package}` does not lie two folders below the workspace"))
}
