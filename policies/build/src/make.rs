//! From a core module to a component of the contract.

use thiserror::Error;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::{Resolve, SourceMap};

use crate::metadata::Metadata;

/// The contract: files of `wit/` with their text.
pub const CONTRACT: &[(&str, &str)] = &[
    ("setup.wit", include_str!("../../../wit/setup.wit")),
    ("cache.wit", include_str!("../../../wit/cache.wit")),
    ("checkpoint.wit", include_str!("../../../wit/checkpoint.wit")),
    ("core.wit", include_str!("../../../wit/core.wit")),
    ("worlds.wit", include_str!("../../../wit/worlds.wit")),
];

/// What core modules begin with, their version included.
const MODULE: &[u8] = b"\0asm\x01\0\0\0";
/// What components begin with.
const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";
/// Name of the section in which a compiler's bindings leave the world, or what it begins with.
const WORLD_SECTION: &[u8] = b"component-type";

/// Why no component was made.
#[derive(Debug, Error)]
pub enum Error {
    /// Neither a core module nor a component.
    #[error("this is no WebAssembly module: a compiler's output for wasm32 is wanted")]
    NotWasm,
    /// Nothing says which functions it exports by which types.
    #[error(
        "the module does not say which world it was made for: name the world (`cache-policy` or `checkpoint-policy`)"
    )]
    NoWorld,
    /// No world of the contract has this name.
    #[error("the contract has no world `{world}`: {reason}")]
    UnknownWorld {
        /// What was asked for.
        world: String,
        /// What the parser says.
        reason: String,
    },
    /// It does not fit its world: a function is missing, has another type, or is imported from nowhere.
    #[error("the module does not fit its world: {0}")]
    Misfit(String),
    /// A section that cannot be read or written.
    #[error("writing metadata: {0}")]
    Metadata(String),
}

/// A component made of `module`, with `metadata` in it.
///
/// `world` names a world of the contract, for a module whose compiler left none in it; a world that is there already counts. A
/// component is taken as it is and given the metadata.
///
/// # Errors
/// When the bytes are no module, belong to no world or do not fit theirs.
pub fn make(module: &[u8], world: Option<&str>, metadata: &Metadata) -> Result<Vec<u8>, Error> {
    if module.starts_with(COMPONENT) {
        return metadata.embed(module);
    }
    if !module.starts_with(MODULE) {
        return Err(Error::NotWasm);
    }
    let mut module = module.to_vec();
    if !module.windows(WORLD_SECTION.len()).any(|window| window == WORLD_SECTION) {
        name_world(&mut module, world.ok_or(Error::NoWorld)?)?;
    }
    let misfit = |error: anyhow::Error| Error::Misfit(format!("{error:#}"));
    let component = ComponentEncoder::default().validate(true).module(&module).and_then(|encoder| encoder.encode());
    metadata.embed(&component.map_err(misfit)?)
}

/// Leaves the world in a module, as bindings would have.
fn name_world(module: &mut Vec<u8>, world: &str) -> Result<(), Error> {
    let unknown = |reason: String| Error::UnknownWorld { world: world.to_owned(), reason };
    let mut sources = SourceMap::new();
    for (name, text) in CONTRACT {
        sources.push(name.as_ref(), *text);
    }
    let group = sources.parse().map_err(|(_, error)| unknown(error.to_string()))?;
    let mut resolve = Resolve::default();
    let package = resolve.push_group(group).map_err(|error| unknown(error.to_string()))?;
    let selected = resolve.select_world(&[package], Some(world)).map_err(|error| unknown(format!("{error:#}")))?;
    embed_component_metadata(module, &resolve, selected, StringEncoding::UTF8, false)
        .map_err(|error| Error::Misfit(format!("{error:#}")))
}
