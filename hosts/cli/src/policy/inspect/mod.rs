//! What a policy is, and why it would be refused.

mod report;

use anyhow::anyhow;
use reprise::{
    PolicyDescription, PolicyKind,
    wasm::{Form, Inspection, Limits, LoadError, Profile, inspect},
};

pub(crate) use report::{decides, kind_name};

use super::{
    Compiler, Problem, Subject,
    text::{sentence, shown},
};

/// All that can be told of a policy.
pub struct Findings {
    origin: String,
    /// What it is pinned by where it does not say its name.
    file_name: String,
    inspection: Inspection,
    /// What it says of itself, if it could be asked.
    description: Option<PolicyDescription>,
    /// Why a host would not load it.
    refused: Option<String>,
}

impl Findings {
    /// Looks at a policy, and loads it to see whether a host would.
    ///
    /// # Errors
    /// [`Problem::Input`] when it is no WebAssembly.
    pub fn of(subject: &Subject, compiler: &Compiler) -> Result<Self, Problem> {
        let Subject { origin, name, bytes, .. } = subject;
        let mut inspection = look(subject)?;
        // A core module exports functions by the names of their interfaces.
        inspection.contract =
            inspection.contract.map(|version| version.split('#').next().unwrap_or_default().to_owned());
        let limits = Limits::of(profile(&inspection));
        let (description, refused) = match kind(&inspection) {
            Err(reason) => (None, Some(format!("{origin} {reason}"))),
            Ok(kind) => {
                let engine = compiler.engine(&limits)?;
                match engine.load(bytes, origin, kind) {
                    Ok(component) => (Some(component.description().clone()), None),
                    Err(error @ LoadError::Behaviour { .. }) => {
                        (engine.describe(bytes, origin, kind).ok(), Some(error.to_string()))
                    }
                    Err(error) => (None, Some(error.to_string())),
                }
            }
        };
        let refused = refused.map(|reason| sentence(&reason));
        Ok(Self { origin: origin.clone(), file_name: name.clone(), inspection, description, refused })
    }

    /// Why a host would not load it, in one sentence; `None` if it would.
    pub fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }
}

/// Tells what a file is without running it.
///
/// # Errors
/// [`Problem::Input`] when it is no WebAssembly.
pub(super) fn look(subject: &Subject) -> Result<Inspection, Problem> {
    inspect(&subject.bytes).map_err(|error| {
        Problem::Input(anyhow!("{} is no WebAssembly component or module: {}", subject.origin, error.found))
    })
}

/// The profile to load it under: the default one, or what it needs beyond that.
pub(super) fn profile(inspection: &Inspection) -> Profile {
    inspection.profile.as_ref().copied().unwrap_or_default().max(Profile::default())
}

/// As which kind of policy it is to be loaded: that of its world, or of the one it comes nearest to.
///
/// # Errors
/// When it is a sound component of another world; the reason lacks its subject.
pub(super) fn kind(inspection: &Inspection) -> Result<PolicyKind, String> {
    let exports = |interface: &str| inspection.exports.iter().any(|name| name.starts_with(interface));
    match inspection.kind {
        Some(kind) => Ok(kind),
        None if exports("reprise:policy/checkpoints@") => Ok(PolicyKind::Checkpoint),
        None if exports("reprise:policy/cache@") => Ok(PolicyKind::Cache),
        None if inspection.form == Form::Component && inspection.profile.is_ok() => {
            let names: Vec<String> = inspection.exports.iter().map(|name| format!("`{}`", shown(name))).collect();
            let found = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
            Err(format!(
                "is no policy: it exports {found}, and neither `reprise:policy/cache` nor `reprise:policy/checkpoints`"
            ))
        }
        None => Ok(PolicyKind::Cache),
    }
}
