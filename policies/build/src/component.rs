//! The components there are, and how one is made: a `cdylib` compiled for wasm32, made a component.

use std::{fs, path::Path};

use anyhow::{Context, Result, bail};
use reprise_components_build::{Metadata, TARGET, Toolchain, make};

/// One component that is built here.
pub struct Component {
    /// Its name.
    pub name: &'static str,
    /// The name of its example in `policies/components`.
    example: &'static str,
    /// The world of `wit/` it exports.
    pub world: &'static str,
    /// One line about it.
    about: &'static str,
    /// Shipped in `policies/dist`, or a fixture of the tests.
    pub shipped: bool,
}

impl Component {
    const fn shipped(name: &'static str, world: &'static str, about: &'static str) -> Self {
        Self { name, example: name, world, about, shipped: true }
    }

    const fn fixture(name: &'static str, world: &'static str, about: &'static str) -> Self {
        Self { name, example: name, world, about, shipped: false }
    }

    /// What is written into it. The version is that of the workspace, which policies share.
    fn metadata(&self) -> Metadata {
        let text = |text: &str| Some(text.to_owned());
        Metadata {
            name: text(self.name),
            version: text(env!("CARGO_PKG_VERSION")),
            description: text(self.about),
            licenses: text(env!("CARGO_PKG_LICENSE")),
            source: Some(format!("policies/components/src/{}", self.source())),
            // Which compiler, the manifest says.
            language: Some(("Rust".to_owned(), String::new())),
            ..Metadata::default()
        }
    }

    /// Its source in `policies/components/src`.
    fn source(&self) -> String {
        if self.name == "core" { "core/mod.rs".to_owned() } else { format!("{}.rs", self.name.replace('-', "_")) }
    }

    /// Where it is committed, from the workspace's root.
    pub fn file(&self) -> String {
        let folder = if self.shipped { "policies/dist" } else { "tests/fixtures" };
        format!("{folder}/{}.wasm", self.name)
    }
}

/// All components, in the manifest's order.
pub const COMPONENTS: &[Component] = &[
    Component {
        example: "core-exports",
        ..Component::shipped("core", "core", "names of blocks, layouts of records, and plans, as every host has them")
    },
    Component::shipped("full", "checkpoint-policy", "a checkpoint at the end of every block"),
    Component::shipped("periodic", "checkpoint-policy", "a checkpoint every so many tokens"),
    Component::shipped("zero", "checkpoint-policy", "no checkpoint: a hit recomputes its windows"),
    Component::shipped(
        "events",
        "checkpoint-policy",
        "a checkpoint at the end of a prompt and where it leaves a cached path",
    ),
    Component::shipped(
        "adaptive",
        "learning-checkpoint-policy",
        "a checkpoint where it can be expected to save more than what goes for it",
    ),
    Component::shipped("lru", "cache-policy-complete", "the leaf used least recently goes first"),
    Component::shipped("fifo", "cache-policy-complete", "the leaf inserted first goes first"),
    Component::shipped(
        "two-hit",
        "cache-policy-complete",
        "lru that lets a block into a full pool only at second sight",
    ),
    Component::shipped(
        "segmented",
        "cache-policy-complete",
        "what was used once makes room for what was used again; what comes back is known",
    ),
    Component::shipped(
        "flop-aware",
        "cache-policy-complete",
        "recency and compute saved per byte, weighed by what that would have saved",
    ),
    Component::shipped(
        "ttl-priority",
        "cache-policy-complete",
        "lifetimes and priorities for namespaces and first blocks, then the leaf used least recently",
    ),
    Component::shipped(
        "auto",
        "cache-policy-complete",
        "learns how blocks are used, and keeps those whose place brings most",
    ),
    Component::shipped(
        "write-saver",
        "cache-policy-complete",
        "auto for disks that wear: writes only what is expected to come back",
    ),
    Component::fixture("hostile", "cache-policy-complete", "misbehaves on demand, for tests"),
    Component::fixture("hostile-checkpoints", "checkpoint-policy", "misbehaves on demand, for tests"),
];

/// A component and its bytes.
pub struct Built {
    /// Which one.
    pub component: &'static Component,
    /// The `.wasm` file.
    pub bytes: Vec<u8>,
}

/// Builds every component of the workspace at `root`, below `target/components`.
pub fn build_all(root: &Path, toolchain: &Toolchain) -> Result<Vec<Built>> {
    let target = root.join("target/components");
    let mut build = toolchain.cargo_build(root, &[(root, "reprise")])?;
    build.args(["--package", "reprise-components", "--examples", "--target-dir"]).arg(&target);
    let status = build.status().context("starting cargo")?;
    if !status.success() {
        bail!("compiling the components failed; the compiler's messages are above");
    }
    let folder = target.join(TARGET).join("release/examples");
    COMPONENTS.iter().map(|component| wrap(component, &folder)).collect()
}

/// Makes a component of a core module.
fn wrap(component: &'static Component, folder: &Path) -> Result<Built> {
    let path = folder.join(format!("{}.wasm", component.example.replace('-', "_")));
    let module = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    let bytes = make(&module, Some(component.world), &component.metadata())
        .with_context(|| format!("making a component of {}", path.display()))?;
    Ok(Built { component, bytes })
}
