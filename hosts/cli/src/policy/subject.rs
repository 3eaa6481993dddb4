//! The policy that a command is about: a file, or a shipped one by its name.

use std::{borrow::Cow, fs};

use anyhow::{Context, anyhow};
use reprise::PolicyChoice;

use super::Problem;

/// Shipped components that are no policies.
const NO_POLICIES: [&str; 1] = ["core"];

/// A policy's bytes.
pub struct Subject {
    /// Where they come from, for people.
    pub origin: String,
    /// What to call it where it does not say so itself: the name, or that of the file.
    pub name: String,
    /// The component, or whatever the file holds.
    pub bytes: Cow<'static, [u8]>,
    /// The settings given with it.
    pub settings: Vec<(String, String)>,
}

impl Subject {
    /// Finds and reads a policy.
    ///
    /// # Errors
    /// [`Problem::Input`] when no shipped policy has the name, or the file cannot be read.
    pub fn read(choice: &PolicyChoice) -> Result<Self, Problem> {
        let settings = choice.settings().to_vec();
        match choice {
            PolicyChoice::Shipped { name, .. } => {
                let bytes = shipped().find(|known| known == name).and_then(reprise_policies_dist::component);
                let bytes = bytes.ok_or_else(|| unknown(name)).map_err(Problem::Input)?;
                Ok(Self { origin: format!("{name} (shipped)"), name: name.clone(), bytes: bytes.into(), settings })
            }
            PolicyChoice::File { path, .. } => {
                let origin = path.display().to_string();
                let bytes = fs::read(path).with_context(|| format!("reading the policy {origin}"));
                let bytes = bytes.map_err(Problem::Input)?.into();
                let name = path.file_stem().map_or_else(|| origin.clone(), |stem| stem.to_string_lossy().into_owned());
                Ok(Self { origin, name, bytes, settings })
            }
        }
    }

    /// Reads a policy where settings would have no effect.
    ///
    /// # Errors
    /// [`Problem::Input`] as [`Subject::read`], and when there are settings.
    pub fn read_bare(choice: &PolicyChoice, command: &str) -> Result<Self, Problem> {
        let subject = Self::read(choice)?;
        if subject.settings.is_empty() {
            return Ok(subject);
        }
        Err(Problem::Input(anyhow!(
            "{command} takes no settings: leave out what stands behind the colon in `{choice}`"
        )))
    }
}

/// Names of shipped policies.
pub(super) fn shipped() -> impl Iterator<Item = &'static str> {
    reprise_policies_dist::NAMES.iter().copied().filter(|name| !NO_POLICIES.contains(name))
}

fn unknown(name: &str) -> anyhow::Error {
    let known: Vec<&str> = shipped().collect();
    anyhow!("no policy is named `{name}`; there is {}, or a component by its .wasm file", known.join(", "))
}
