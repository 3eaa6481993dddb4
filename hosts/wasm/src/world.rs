//! Whether bytes are a component of the world that is wanted, and what they are instead.

use reprise_core::policy::Kind;
use wasmtime::component::Component;

use crate::{error::LoadError, inspect::Form};

/// Version of package `reprise:policy` that this host speaks; a component made for another 0.1 fits.
const VERSION: &str = "0.1.0";
/// What versions that fit begin with.
const COMPATIBLE: &str = "0.1.";
/// What the names of the contract's interfaces begin with.
const PACKAGE: &str = "reprise:policy/";

const MAGIC: &[u8] = b"\0asm";
/// Version field of core modules.
const MODULE: [u8; 4] = [1, 0, 0, 0];
/// Version and layer of components.
const COMPONENT: [u8; 4] = [0x0d, 0, 1, 0];

/// The full name of an interface of the contract.
pub(crate) fn interface(name: &str) -> String {
    format!("{PACKAGE}{name}@{VERSION}")
}

/// The world of a kind of policy.
pub(crate) const fn world(kind: Kind) -> &'static str {
    match kind {
        Kind::Checkpoint => "reprise:policy/checkpoint-policy@0.1.0",
        Kind::Cache => "reprise:policy/cache-policy@0.1.0",
    }
}

/// The interfaces that a world demands; the first is the one that tells it from others.
const fn demanded(kind: Kind) -> [&'static str; 2] {
    match kind {
        Kind::Checkpoint => ["checkpoints", "setup"],
        Kind::Cache => ["cache", "setup"],
    }
}

/// The interface by which a component is known to be of the world of this kind.
pub(crate) fn telltale(kind: Kind) -> String {
    interface(demanded(kind)[0])
}

/// The version in the name of an export, if it is of the contract.
pub(crate) fn contract(export: &str) -> Option<&str> {
    let (_, version) = export.strip_prefix(PACKAGE)?.split_once('@')?;
    // A core module names functions, with a `#` behind the version.
    version.split('#').next()
}

/// The kind of policy that exports these names.
pub(crate) fn kind_of(exports: &[String]) -> Option<Kind> {
    let exported = |wanted: &str| {
        exports.iter().filter_map(|name| name.strip_prefix(PACKAGE)?.split_once('@')).any(|(name, version)| {
            let patch = version.strip_prefix(COMPATIBLE);
            // A version before a release, such as 0.1.0-rc, fits nothing but itself.
            name == wanted && patch.is_some_and(|patch| patch.bytes().all(|byte| byte.is_ascii_digit()))
        })
    };
    [Kind::Cache, Kind::Checkpoint].into_iter().find(|&kind| demanded(kind).into_iter().all(exported))
}

/// Which layer of WebAssembly the first bytes say this is, or what they are instead.
pub(crate) fn head(bytes: &[u8]) -> Result<Form, String> {
    let head: Option<&[u8; 8]> = bytes.first_chunk();
    match head.map(|head| head.split_at(4)) {
        Some((magic, version)) if magic == MAGIC && version == COMPONENT => Ok(Form::Component),
        Some((magic, version)) if magic == MAGIC && version == MODULE => Ok(Form::Module),
        Some((magic, version)) if magic == MAGIC => {
            Err(format!("WebAssembly of the unknown version {}", hexadecimal(version)))
        }
        _ => Err(match bytes {
            [] => "it is empty".to_owned(),
            _ => format!("it begins with {}", hexadecimal(&bytes[..bytes.len().min(8)])),
        }),
    }
}

/// Refuses what is too large or no component, before anything parses it.
pub(crate) fn check_bytes(bytes: &[u8], origin: &str, kind: Kind, limit: usize) -> Result<(), LoadError> {
    let origin = || origin.to_owned();
    if bytes.len() > limit {
        return Err(LoadError::TooLarge { origin: origin(), bytes: bytes.len(), limit });
    }
    let (world, missing) = (world(kind), telltale(kind));
    match head(bytes) {
        Ok(Form::Component) => Ok(()),
        Ok(Form::Module) => Err(LoadError::Module { origin: origin(), world, missing }),
        Err(found) => Err(LoadError::NotWasm { origin: origin(), found, world, missing }),
    }
}
fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

/// Refuses imports, and exports that lack an interface.
pub(crate) fn check_interfaces(
    component: &Component,
    engine: &wasmtime::Engine,
    origin: &str,
    kind: Kind,
) -> Result<(), LoadError> {
    let ty = component.component_type();
    if let Some((import, _)) = ty.imports(engine).next() {
        return Err(LoadError::Import { origin: origin.to_owned(), import: import.to_owned() });
    }
    let missing =
        demanded(kind).map(interface).into_iter().find(|name| component.get_export_index(None, name).is_none());
    let Some(missing) = missing else { return Ok(()) };
    Err(LoadError::Missing {
        origin: origin.to_owned(),
        world: world(kind),
        missing,
        found: exports(component, engine),
    })
}

/// What a component exports, for a message.
pub(crate) fn exports(component: &Component, engine: &wasmtime::Engine) -> String {
    let ty = component.component_type();
    let names: Vec<String> = ty.exports(engine).map(|(name, _)| format!("`{name}`")).collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}
