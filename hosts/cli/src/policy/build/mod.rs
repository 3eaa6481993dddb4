//! A component made of a folder's sources, or of a core module.

mod rust;
mod script;

use std::{
    fs::{self, Permissions},
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use reprise::{
    Digest, PolicyDescription,
    wasm::{self, Form, Limits, LoadError, Profile},
};
use reprise_components_build::{Metadata, make};
use serde_json::{Value, json};

use super::{
    Compiler, Problem, Subject,
    inspect::{self, decides, kind_name},
    terms::allowed_by,
    text::{sentence, shown},
};
use crate::figures::{grouped, human_bytes};

/// Where the output goes in a folder that is built.
const OUTPUT: &str = "build";

/// What takes longer to load than anybody waits without a word: components with an interpreter inside.
const LARGE_BYTES: usize = 1 << 20;

/// What a compiler left, and what is known of it.
struct Compiled {
    /// A core module or a component.
    bytes: Vec<u8>,
    metadata: Metadata,
    /// Where the component goes if nothing else is said; `None` for a lone module.
    output: Option<PathBuf>,
}

/// A component that was written.
pub struct Built {
    path: PathBuf,
    bytes: usize,
    digest: Digest,
    description: Option<PolicyDescription>,
    /// The profile that hosts have to be given for it.
    profile: Profile,
    refused: Option<String>,
}

/// Builds what `source` is, a folder or a core module, and writes the component. `say` is told what is done.
///
/// # Errors
/// [`Problem::Input`] when there is nothing to build; [`Problem::Work`] when it does not build, a tool is missing, or nothing can be
/// written. That hosts would refuse the component is in the result.
pub fn build(source: &Path, output: Option<&Path>, compiler: &Compiler, say: impl Fn(&str)) -> Result<Built, Problem> {
    let found =
        fs::metadata(source).with_context(|| format!("looking at {}", source.display())).map_err(Problem::Input)?;
    let compiled = if found.is_file() {
        module(source).map_err(Problem::Input)?
    } else if source.join("Cargo.toml").is_file() {
        rust::compile(source, &say)?
    } else if source.join(script::SCRIPT).is_file() {
        script::run(source, &say)?
    } else {
        return Err(Problem::Input(anyhow!(
            "{} holds neither Cargo.toml nor {}, so there is nothing to build: `reprise policy new` writes a folder that has one",
            source.display(),
            script::SCRIPT
        )));
    };
    let output = output.map(Path::to_owned).or(compiled.output).ok_or_else(|| {
        Problem::Input(anyhow!("{} is a lone file: say with -o FILE where the component goes", source.display()))
    })?;
    if compiled.bytes.len() > LARGE_BYTES {
        say(&format!("compiling {} to see whether hosts would load it", output.display()));
    }
    finish(&compiled.bytes, compiled.metadata, output, compiler)
}

/// A file that some compiler wrote.
fn module(path: &Path) -> anyhow::Result<Compiled> {
    let bytes = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    Ok(Compiled { bytes, metadata: Metadata::default(), output: None })
}

/// Makes a component, looks whether a host would load it, and writes it.
fn finish(compiled: &[u8], mut metadata: Metadata, output: PathBuf, compiler: &Compiler) -> Result<Built, Problem> {
    let making = || format!("making the component {}", output.display());
    let bare = make(compiled, world(compiled), &Metadata::default()).with_context(making).map_err(Problem::Work)?;
    let (description, refused) = load(&bare, &output, compiler)?;
    if let Some(PolicyDescription { name, version, .. }) = &description {
        metadata.name.get_or_insert_with(|| name.clone());
        metadata.version.get_or_insert_with(|| version.clone());
    }
    let bytes = make(&bare, None, &metadata).with_context(making).map_err(Problem::Work)?;
    write(&output, &bytes).with_context(|| format!("writing {}", output.display())).map_err(Problem::Work)?;
    let digest = Digest(blake3::hash(&bytes).into());
    let profile = wasm::inspect(&bytes).map_or_else(|_| Profile::default(), |found| inspect::profile(&found));
    Ok(Built { path: output, bytes: bytes.len(), digest, description, profile, refused })
}

/// The world of a module whose compiler did not say: the one that its exports are of.
fn world(module: &[u8]) -> Option<&'static str> {
    let exports = wasm::inspect(module).ok().filter(|found| found.form == Form::Module)?.exports;
    let exported = |interface: &str| exports.iter().any(|name| name.starts_with(interface));
    let [checkpoints, reuse, caches, admission, state] = ["checkpoints", "reuse", "cache", "admission", "state"]
        .map(|name| exported(&format!("reprise:policy/{name}@")));
    match (checkpoints, caches) {
        (true, _) if reuse => Some("learning-checkpoint-policy"),
        (true, _) => Some("checkpoint-policy"),
        (false, true) if admission && state => Some("cache-policy-complete"),
        (false, true) => Some("cache-policy"),
        (false, false) => None,
    }
}

/// What it says of itself, and why a host would not load it.
fn load(
    component: &[u8],
    output: &Path,
    compiler: &Compiler,
) -> Result<(Option<PolicyDescription>, Option<String>), Problem> {
    let origin = output.display().to_string();
    let subject = Subject {
        origin: origin.clone(),
        name: String::new(),
        bytes: component.to_owned().into(),
        settings: Vec::new(),
    };
    let inspection = inspect::look(&subject)?;
    let kind = match inspect::kind(&inspection) {
        Ok(kind) => kind,
        Err(reason) => return Ok((None, Some(format!("{origin} {reason}")))),
    };
    let engine = compiler.engine(&Limits::of(inspect::profile(&inspection)))?;
    Ok(match engine.load(component, &origin, kind) {
        Ok(loaded) => (Some(loaded.description().clone()), None),
        Err(error @ LoadError::Behaviour { .. }) => {
            (engine.describe(component, &origin, kind).ok(), Some(error.to_string()))
        }
        Err(error) => (None, Some(error.to_string())),
    })
}

/// Writes a file that takes its name when it is complete.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    // The umask applies, as to any file.
    let mut file = tempfile::Builder::new().permissions(Permissions::from_mode(0o666)).tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}

impl Built {
    /// Why a host would not load it, in one sentence; `None` if it would.
    pub fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// One object.
    pub fn json(&self) -> Value {
        let Self { path, bytes, digest, description, refused, .. } = self;
        json!({
            "file": path.display().to_string(),
            "bytes": bytes,
            "digest": digest.to_string(),
            "policy": description.as_ref().map(|policy| {
                json!({ "name": policy.name, "version": policy.version, "kind": kind_name(policy.kind) })
            }),
            "refused": refused,
        })
    }

    /// Lines for a person.
    pub fn table(&self) -> String {
        let Self { path, bytes, digest, description, profile, refused } = self;
        let bytes = *bytes as u64;
        let mut lines = vec![format!("{}: {} bytes ({})", path.display(), grouped(bytes), human_bytes(bytes))];
        lines.extend(
            description.as_ref().map(|policy| {
                format!("policy  {} {}: {}", shown(&policy.name), shown(&policy.version), decides(policy))
            }),
        );
        lines.push(format!("digest  {digest}"));
        if *profile > Profile::default() {
            lines.push(format!("profile {profile}: hosts take it with {}", allowed_by(*profile)));
        }
        lines.extend(refused.as_ref().map(|reason| format!("REFUSED: {}", sentence(reason))));
        lines.join("\n") + "\n"
    }
}
