//! A policy that was checked and compiled, of which instances are made.

use std::{collections::HashSet, sync::Arc};

use reprise_core::{
    Digest,
    policy::{GroupInfo, Kind},
};
use wasmtime::component::InstancePre;

use crate::{
    cache::CachePolicy,
    checkpoint::CheckpointPolicy,
    engine::{Allowance, Shared},
    error::{LoadError, PolicyError},
    instance::{Bounds, Function, Instance, NoExport},
    wire, world,
};

/// Bytes that a description or the refusal of a setting may take.
const TEXT_BYTES: usize = 64 << 10;

/// Bytes that a name, a version or a key may have.
const WORD_BYTES: usize = 64;
/// Bytes that the help of a setting may have.
const HELP_BYTES: usize = 1024;
/// Characters that are kept of a message of a policy.
const MESSAGE_CHARS: usize = 1024;

/// One setting a policy takes, see [`reprise_core::policy::Setting`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// As an operator writes it.
    pub key: String,
    /// One line for a reader.
    pub help: String,
    /// Taken when the setting is not given.
    pub default: u64,
    /// Smallest value allowed.
    pub min: u64,
    /// Largest value allowed.
    pub max: u64,
}

/// What a component says of itself, see [`reprise_core::policy::Description`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// For instance `two-hit`.
    pub name: String,
    /// Semantic version of the policy.
    pub version: String,
    /// Which decisions it takes.
    pub kind: Kind,
    /// Whether admission is to be asked.
    pub admission: bool,
    /// Schema of the bytes of a saved state; 0: it saves nothing.
    pub state_schema: u32,
    /// The settings it takes.
    pub settings: Vec<Setting>,
}

/// An eligible policy. Cheap to clone.
#[derive(Clone)]
pub struct Component {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Arc<Shared>,
    linked: InstancePre<Bounds>,
    description: Description,
    digest: Digest,
}

impl Component {
    /// Checks types and description in a scratch instance.
    pub(crate) fn examine(
        engine: Arc<Shared>,
        linked: InstancePre<Bounds>,
        digest: Digest,
        origin: &str,
        kind: Kind,
    ) -> Result<Self, LoadError> {
        let misbehaved = |error| LoadError::Behaviour { origin: origin.to_owned(), error };
        let mut scratch = Instance::new(&engine, &linked).map_err(misbehaved)?;
        let mut typed = Typed { scratch: &mut scratch, linked: &linked, engine: &engine, origin, kind };
        typed.demand::<wire::Describe>()?;
        typed.demand::<wire::Configure>()?;
        match kind {
            Kind::Cache => {
                typed.demand::<wire::Attach>()?;
                typed.demand::<wire::Step>()?;
            }
            Kind::Checkpoint => {
                typed.demand::<wire::Choose>()?;
                typed.accept::<wire::AttachReuse>()?;
                typed.accept::<wire::ChooseFor>()?;
                typed.accept::<wire::ChoosePlan>()?;
            }
        }
        let describe = scratch.checked_export::<wire::Describe>();
        let allowance = Allowance { items: 0, rare: true, answer_bytes: TEXT_BYTES };
        let (description,) = scratch.call(&describe, (), allowance).map_err(misbehaved)?;
        let description = Description::check(description, kind)
            .map_err(|reason| LoadError::Description { origin: origin.to_owned(), reason })?;
        let mut typed = Typed { scratch: &mut scratch, linked: &linked, engine: &engine, origin, kind };
        if description.admission {
            typed.demand::<wire::Admit>()?;
        }
        if description.state_schema != 0 {
            typed.demand::<wire::Save>()?;
            typed.demand::<wire::Load>()?;
        }
        Ok(Self { inner: Arc::new(Inner { engine, linked, description, digest }) })
    }

    /// What it says of itself.
    pub fn description(&self) -> &Description {
        &self.inner.description
    }

    /// BLAKE3 of the component's bytes.
    pub fn digest(&self) -> Digest {
        self.inner.digest
    }

    /// A cache policy with these settings, for these groups. Keys and values of settings are as an operator wrote them.
    ///
    /// # Panics
    /// When the component was loaded as another kind.
    pub fn cache(&self, settings: &[(String, String)], groups: &[GroupInfo]) -> Result<CachePolicy, PolicyError> {
        assert_eq!(self.description().kind, Kind::Cache, "loaded as another kind");
        CachePolicy::new(self.configured(settings)?, self.description(), groups)
    }

    /// A checkpoint policy with these settings. Keys and values of settings are as an operator wrote them.
    ///
    /// # Panics
    /// When the component was loaded as another kind.
    pub fn checkpoint(&self, settings: &[(String, String)]) -> Result<CheckpointPolicy, PolicyError> {
        assert_eq!(self.description().kind, Kind::Checkpoint, "loaded as another kind");
        Ok(CheckpointPolicy::new(self.configured(settings)?))
    }

    fn configured(&self, settings: &[(String, String)]) -> Result<Instance, PolicyError> {
        let mut instance = Instance::new(&self.inner.engine, &self.inner.linked)?;
        let configure = instance.checked_export::<wire::Configure>();
        let allowance = Allowance { items: settings.len() as u64, rare: true, answer_bytes: TEXT_BYTES };
        let (taken,) = instance.call(&configure, (settings,), allowance)?;
        taken.map_err(|message| PolicyError::Refused { message: printable(&message) })?;
        Ok(instance)
    }
}

/// Checks the types of functions in a scratch instance.
struct Typed<'a> {
    scratch: &'a mut Instance,
    linked: &'a InstancePre<Bounds>,
    engine: &'a Shared,
    origin: &'a str,
    kind: Kind,
}

impl Typed<'_> {
    /// The function must be there.
    fn demand<F: Function>(&mut self) -> Result<(), LoadError> {
        self.look::<F>().and_then(|there| {
            there.then_some(()).ok_or_else(|| LoadError::Missing {
                origin: self.origin.to_owned(),
                world: world::world(self.kind),
                missing: full_name::<F>(),
                found: world::exports(self.linked.component(), &self.engine.wasmtime),
            })
        })
    }

    /// The function may be missing.
    fn accept<F: Function>(&mut self) -> Result<(), LoadError> {
        self.look::<F>().map(drop)
    }

    fn look<F: Function>(&mut self) -> Result<bool, LoadError> {
        match self.scratch.export::<F>() {
            Ok(_) => Ok(true),
            Err(NoExport::Missing) => Ok(false),
            Err(NoExport::Type(reason)) => Err(LoadError::Type {
                origin: self.origin.to_owned(),
                world: world::world(self.kind),
                export: full_name::<F>(),
                reason,
            }),
        }
    }
}

fn full_name<F: Function>() -> String {
    format!("{}#{}", world::interface(F::INTERFACE), F::NAME)
}

/// A policy's message, fit for a terminal.
fn printable(message: &str) -> String {
    message.chars().take(MESSAGE_CHARS).map(|found| if found.is_control() { ' ' } else { found }).collect()
}

/// Refuses what could not be printed in one line or typed by an operator. What is refused is not repeated: it may be long, and it
/// may be commands to a terminal.
fn check_word(what: &str, word: &str) -> Result<(), String> {
    if word.is_empty() {
        return Err(format!("{what} is empty"));
    }
    if word.len() > WORD_BYTES {
        return Err(format!("{what} has {} bytes, more than {WORD_BYTES}", word.len()));
    }
    if word.contains(|character: char| character.is_control() || character.is_whitespace()) {
        return Err(format!("{what} has spaces or control characters in it"));
    }
    Ok(())
}

impl Description {
    /// Takes what a component said, or says what is wrong with it.
    fn check(said: wire::Description, wanted: Kind) -> Result<Self, String> {
        let kind = match said.kind {
            wire::Kind::Checkpoint => Kind::Checkpoint,
            wire::Kind::Cache => Kind::Cache,
        };
        if kind != wanted {
            return Err(format!("it calls itself a policy of kind {kind:?} and exports the world of kind {wanted:?}"));
        }
        check_word("its name", &said.name)?;
        check_word("its version", &said.version)?;
        let mut keys = HashSet::new();
        for wire::Setting { key, help, default, min, max } in &said.settings {
            check_word("the key of a setting", key)?;
            if !keys.insert(key) {
                return Err(format!("setting `{key}` stands twice"));
            }
            if help.len() > HELP_BYTES || help.contains(char::is_control) {
                return Err(format!("setting `{key}`: the help is more than one line of {HELP_BYTES} bytes"));
            }
            if !(min..=max).contains(&default) {
                return Err(format!("setting `{key}`: the default {default} is not in {min} to {max}"));
            }
        }
        let wire::Description { name, version, admission, state_schema, settings, .. } = said;
        let settings = settings
            .into_iter()
            .map(|wire::Setting { key, help, default, min, max }| Setting { key, help, default, min, max })
            .collect();
        Ok(Self { name, version, kind, admission, state_schema, settings })
    }
}
