//! The components there are, and how one is made: a `cdylib` compiled for wasm32, wrapped by `wit-component`.

use std::{fs, path::Path};

use anyhow::{Context, Result, bail};
use wit_component::ComponentEncoder;

use crate::toolchain::{TARGET, Toolchain};

/// One component that is built here.
pub struct Component {
    /// Its name.
    pub name: &'static str,
    /// The name of its example in `policies/components`.
    example: &'static str,
    /// The world of `wit/` it exports.
    pub world: &'static str,
    /// Shipped in `policies/dist`, or a fixture of the tests.
    pub shipped: bool,
}

impl Component {
    const fn shipped(name: &'static str, world: &'static str) -> Self {
        Self { name, example: name, world, shipped: true }
    }

    const fn fixture(name: &'static str, world: &'static str) -> Self {
        Self { name, example: name, world, shipped: false }
    }

    /// Where it is committed, from the workspace's root.
    pub fn file(&self) -> String {
        let folder = if self.shipped { "policies/dist" } else { "tests/fixtures" };
        format!("{folder}/{}.wasm", self.name)
    }
}

/// All components, in the manifest's order.
pub const COMPONENTS: &[Component] = &[
    Component { example: "core-exports", ..Component::shipped("core", "core") },
    Component::shipped("full", "checkpoint-policy"),
    Component::shipped("periodic", "checkpoint-policy"),
    Component::shipped("zero", "checkpoint-policy"),
    Component::shipped("events", "checkpoint-policy"),
    Component::shipped("lru", "cache-policy-complete"),
    Component::shipped("fifo", "cache-policy-complete"),
    Component::shipped("two-hit", "cache-policy-complete"),
    Component::fixture("hostile", "cache-policy-complete"),
    Component::fixture("hostile-checkpoints", "checkpoint-policy"),
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
    let mut build = toolchain.cargo_build(root)?;
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
    let bytes = ComponentEncoder::default()
        .validate(true)
        .module(&module)
        .and_then(|encoder| encoder.encode())
        .with_context(|| format!("making a component of {}", path.display()))?;
    Ok(Built { component, bytes })
}
