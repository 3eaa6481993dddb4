//! Looking at a file without running it: what it is, what it says of its making, and why it would be refused.

mod metadata;

use reprise_core::{Digest, policy::Kind};
use thiserror::Error;
use wasmparser::{Encoding, Parser, Payload, Validator};

pub use metadata::{Metadata, Tool};

use crate::{profile::Profile, world};

/// Not WebAssembly at all.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("this is no WebAssembly: {found}")]
pub struct NotWasm {
    /// What it is instead.
    pub found: String,
}

/// Which layer of WebAssembly a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// What compilers write before it is made a component.
    Module,
    /// What a policy is.
    Component,
}

/// What can be told of a file without running it. A damaged file is told of up to where the damage is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// Module or component.
    pub form: Form,
    /// Size of the file in bytes.
    pub bytes: usize,
    /// BLAKE3 of the file.
    pub digest: Digest,
    /// Which kind of policy it is by its exports, if it is one that this host can load.
    pub kind: Option<Kind>,
    /// Version of package `reprise:policy` that its exports name; of several, the first.
    pub contract: Option<String>,
    /// Full names of what it imports. A policy imports nothing.
    pub imports: Vec<String>,
    /// Full names of what it exports, with versions.
    pub exports: Vec<String>,
    /// Core modules inside; 1 for a module.
    pub modules: u32,
    /// Linear memory in bytes that its modules demand from the start, all of them together.
    pub memory_bytes: u64,
    /// What it says of its making.
    pub metadata: Metadata,
    /// The strictest profile under which it is valid, or what is not valid under the widest.
    pub profile: Result<Profile, String>,
}

impl Inspection {
    /// The world that a component of its kind fits.
    pub fn world(&self) -> Option<&'static str> {
        self.kind.map(world::world)
    }
}

/// Tells what `bytes` are. Nothing of them is compiled or run.
///
/// # Errors
/// When they are not WebAssembly.
pub fn inspect(bytes: &[u8]) -> Result<Inspection, NotWasm> {
    let form = match world::head(bytes) {
        Ok(form) => form,
        Err(found) => return Err(NotWasm { found }),
    };
    let mut found = Inspection {
        form,
        bytes: bytes.len(),
        digest: Digest(blake3::hash(bytes).into()),
        kind: None,
        contract: None,
        imports: Vec::new(),
        exports: Vec::new(),
        modules: 0,
        memory_bytes: 0,
        metadata: Metadata::default(),
        profile: strictest(bytes),
    };
    let mut depth = 0_u32;
    // Where parsing ends, the validator has said why.
    for payload in Parser::new(0).parse_all(bytes).map_while(Result::ok) {
        found.take(&payload, depth);
        match payload {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    found.contract = found.exports.iter().find_map(|name| world::contract(name)).map(str::to_owned);
    found.kind = world::kind_of(&found.exports);
    Ok(found)
}

/// The strictest profile under which `bytes` are valid.
fn strictest(bytes: &[u8]) -> Result<Profile, String> {
    let mut reason = String::new();
    for profile in Profile::ALL {
        match Validator::new_with_features(profile.features()).validate_all(bytes) {
            Ok(_) => return Ok(profile),
            Err(error) => reason = error.to_string(),
        }
    }
    Err(reason)
}

impl Inspection {
    /// Takes what one section tells; `depth` counts the modules and components around it.
    fn take(&mut self, payload: &Payload<'_>, depth: u32) {
        match payload {
            Payload::Version { encoding: Encoding::Module, .. } => self.modules += 1,
            Payload::MemorySection(memories) => {
                for memory in memories.clone().into_iter().map_while(Result::ok) {
                    let page = 1_u64.checked_shl(memory.page_size_log2.unwrap_or(16)).unwrap_or(u64::MAX);
                    self.memory_bytes = self.memory_bytes.saturating_add(memory.initial.saturating_mul(page));
                }
            }
            Payload::CustomSection(section) => self.metadata.take(section, depth),
            _ if depth > 0 => {}
            Payload::ComponentImportSection(imports) => {
                let names = imports.clone().into_iter().map_while(Result::ok).map(|import| import.name.name.to_owned());
                self.imports.extend(names);
            }
            Payload::ComponentExportSection(exports) => {
                let names = exports.clone().into_iter().map_while(Result::ok).map(|export| export.name.name.to_owned());
                self.exports.extend(names);
            }
            Payload::ImportSection(imports) => {
                let imports = imports.clone().into_imports().map_while(Result::ok);
                self.imports.extend(imports.map(|import| format!("{}#{}", import.module, import.name)));
            }
            Payload::ExportSection(exports) => {
                let exports = exports.clone().into_iter().map_while(Result::ok);
                self.exports.extend(exports.map(|export| export.name.to_owned()));
            }
            _ => {}
        }
    }
}
