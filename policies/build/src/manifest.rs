//! `policies/dist/manifest.toml`: what is committed, from what, and by which compiler.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::component::Built;

const FILE: &str = "policies/dist/manifest.toml";
const HEADER: &str = "# Written by `cargo components`; `cargo components --check` compares.\n\n";

/// The manifest.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// `rustc --version` of the compiler.
    pub compiler: String,
    /// Digest of the sources of all components, see [`crate::sources`].
    pub sources: String,
    /// The components.
    pub component: Vec<Entry>,
}

/// One component.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// The world it exports.
    pub world: String,
    /// Its file, from the workspace's root.
    pub file: String,
    /// BLAKE3 of the file, hexadecimal.
    pub blake3: String,
}

impl Entry {
    /// The entry of a component just built.
    pub fn of(built: &Built) -> Self {
        let (component, blake3) = (built.component, blake3::hash(&built.bytes).to_hex().to_string());
        Self { name: component.name.to_owned(), world: component.world.to_owned(), file: component.file(), blake3 }
    }
}

impl Manifest {
    /// The committed manifest.
    pub fn read(root: &Path) -> Result<Self> {
        let text =
            fs::read_to_string(root.join(FILE)).with_context(|| format!("reading {FILE}: run `cargo components`"))?;
        toml::from_str(&text).with_context(|| format!("reading {FILE}"))
    }

    /// Replaces the committed manifest.
    pub fn write(&self, root: &Path) -> Result<()> {
        let text = toml::to_string(self).context("writing the manifest")?;
        fs::write(root.join(FILE), format!("{HEADER}{text}")).with_context(|| format!("writing {FILE}"))
    }

    /// One line for each committed file that is not the one in the manifest.
    pub fn unlike_files(&self, root: &Path) -> Result<Vec<String>> {
        let mut unlike = Vec::new();
        for Entry { file, blake3, .. } in &self.component {
            let bytes = fs::read(root.join(file)).with_context(|| format!("reading {file}: run `cargo components`"))?;
            if blake3::hash(&bytes).to_hex().as_str() != blake3 {
                unlike.push(format!("{file} is not the file that the manifest names"));
            }
        }
        Ok(unlike)
    }

    /// Names of components whose bytes differ between two builds.
    pub fn differing(&self, other: &Self) -> Vec<&str> {
        let same = |entry: &Entry| other.component.iter().any(|b| b.name == entry.name && b.blake3 == entry.blake3);
        self.component.iter().filter(|entry| !same(entry)).map(|entry| entry.name.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchanged_file_is_not_taken_for_the_built_one() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("policies/dist")).unwrap();
        fs::write(root.path().join("policies/dist/lru.wasm"), b"built").unwrap();
        let entry = Entry {
            name: "lru".into(),
            world: "cache-policy".into(),
            file: "policies/dist/lru.wasm".into(),
            blake3: blake3::hash(b"built").to_hex().to_string(),
        };
        let manifest = Manifest { compiler: "rustc".into(), sources: "0".into(), component: vec![entry] };
        manifest.write(root.path()).unwrap();
        let read = Manifest::read(root.path()).unwrap();
        assert!(read.unlike_files(root.path()).unwrap().is_empty());
        assert!(read.differing(&manifest).is_empty());
        fs::write(root.path().join("policies/dist/lru.wasm"), b"exchanged").unwrap();
        assert_eq!(read.unlike_files(root.path()).unwrap().len(), 1);
    }
}
