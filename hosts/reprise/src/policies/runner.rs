//! One running policy, native or component, behind the same calls.

use std::{
    collections::HashMap,
    fs,
    sync::{Arc, Mutex},
};

use reprise_core::policy::{
    Admission, CachePolicy, CheckpointInfo, CheckpointPolicy, Description, Events, GroupInfo, Kind, Policy, Prompt,
    Settings, Span,
};
use reprise_policies as native;
use reprise_wasm::Profile;
use thiserror::Error;

use super::engines::Engines;
use crate::{cache::lock, choice::PolicyChoice, config::CompileCacheChoice, pin::Pins};

/// Why a policy does not load, or what it did wrong.
#[derive(Debug, Error)]
pub enum PolicyError {
    /// No shipped policy has this name.
    #[error("no {role} policy is named `{name}`; there is {known}, or a component by its .wasm file")]
    Unknown {
        /// `eviction` or `checkpoint`.
        role: &'static str,
        /// What was given.
        name: String,
        /// What is shipped.
        known: String,
    },
    /// The file cannot be read.
    #[error("reading the policy {path}")]
    Read {
        /// Which file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The policy does not take its settings.
    #[error("policy `{name}`: {message}")]
    Settings {
        /// Which policy.
        name: String,
        /// What the policy says.
        message: String,
    },
    /// The component does not load.
    #[error(transparent)]
    Load(#[from] reprise_wasm::LoadError),
    /// The component failed in a call.
    #[error(transparent)]
    Call(#[from] reprise_wasm::PolicyError),
    /// Another component than the one that the policy's name is pinned to.
    #[error(
        "{origin} calls itself `{name}`, which is pinned to the component with the BLAKE3 digest {wanted}; this one has {found}: use \
         the pinned file, or change the pin if the new one is meant"
    )]
    Pinned {
        /// Where it came from.
        origin: String,
        /// Its name.
        name: String,
        /// The digest pinned.
        wanted: String,
        /// Its own.
        found: String,
    },
    /// There is no policy in a seat that a shadow could copy, and no candidate for it.
    #[error("the {role} policy was retired: a shadow needs a candidate for that seat, too")]
    NoPolicy {
        /// `eviction` or `checkpoint`.
        role: &'static str,
    },
    /// There is no shadow.
    #[error("there is no shadow whose candidates could be promoted: begin one with `shadow`")]
    NoShadow,
    /// A thread could not be started.
    #[error("starting a thread for policies: too many threads or too little memory")]
    Thread {
        /// Why.
        source: std::io::Error,
    },
    /// The cache goes, and nothing is put in its seats any more.
    #[error("the cache is closing")]
    Closing,
    /// An answer that the host's checks refused.
    #[error("invalid answer: {0}")]
    Answer(String),
}

impl PolicyError {
    /// Whether the policy is one that runs, and did something wrong: hosts go on without it. Otherwise there is nothing to run, and
    /// whoever named it is told.
    pub fn is_misbehaviour(&self) -> bool {
        match self {
            Self::Load(error) => matches!(error, reprise_wasm::LoadError::Behaviour { .. }),
            Self::Call(_) | Self::Answer(_) => true,
            Self::Unknown { .. }
            | Self::Read { .. }
            | Self::Settings { .. }
            | Self::Pinned { .. }
            | Self::NoPolicy { .. }
            | Self::NoShadow
            | Self::Thread { .. }
            | Self::Closing => false,
        }
    }
}

/// Where a policy comes from: enough to make another instance of it.
#[derive(Clone)]
pub(crate) struct Origin {
    pub name: String,
    settings: Vec<(String, String)>,
    code: Code,
}

#[derive(Clone)]
enum Code {
    Native,
    Component(reprise_wasm::Component),
}

const SHIPPED_CHECKPOINTS: [Description; 5] = [
    native::Full::DESCRIPTION,
    native::Periodic::DESCRIPTION,
    native::Events::DESCRIPTION,
    native::Zero::DESCRIPTION,
    native::Adaptive::DESCRIPTION,
];
const SHIPPED_CACHES: [Description; 8] = [
    native::Lru::DESCRIPTION,
    native::Fifo::DESCRIPTION,
    native::TwoHit::DESCRIPTION,
    native::Segmented::DESCRIPTION,
    native::FlopAware::DESCRIPTION,
    native::TtlPriority::DESCRIPTION,
    native::Auto::DESCRIPTION,
    native::WriteSaver::DESCRIPTION,
];

/// On what terms policies are loaded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Terms {
    /// Shipped policies run natively.
    pub native: bool,
    /// Calls are bounded by fuel.
    pub deterministic: bool,
    pub pins: Pins,
    /// The widest profile that is taken.
    pub profile: Profile,
    pub compile_cache: CompileCacheChoice,
    /// Records that a policy ranks at most.
    pub records: u64,
}

/// Loads policies for one cache. Clones share the compiler.
#[derive(Clone)]
pub(crate) struct Loader {
    engines: Engines,
    native: bool,
    pins: Pins,
    /// Shipped components that were loaded: few, and a swap to one should not compile it again.
    shipped: Arc<Mutex<HashMap<String, reprise_wasm::Component>>>,
    /// Why there is no cache of compiled components, if one was asked for.
    pub trouble: Option<String>,
}

impl Loader {
    pub fn new(terms: Terms) -> Self {
        let Terms { native, deterministic, pins, profile, compile_cache, records } = terms;
        let (engines, trouble) = Engines::new(profile, deterministic, records, &compile_cache);
        Self { engines, native, pins, shipped: Arc::default(), trouble }
    }

    /// Finds and checks the code of a policy, without running it for this cache yet.
    pub fn load(&self, choice: &PolicyChoice, kind: Kind) -> Result<Origin, PolicyError> {
        if self.native
            && let PolicyChoice::Shipped { name, settings } = choice
        {
            shipped(name, kind)?;
            return Ok(Origin { name: name.clone(), settings: settings.clone(), code: Code::Native });
        }
        Ok(Origin::of(self.component(choice, kind)?, choice.settings()))
    }

    /// Checks the component of a policy.
    pub fn component(&self, choice: &PolicyChoice, kind: Kind) -> Result<reprise_wasm::Component, PolicyError> {
        match choice {
            PolicyChoice::Shipped { name, .. } => {
                let bytes = shipped(name, kind)?;
                if let Some(component) = lock(&self.shipped).get(name) {
                    return Ok(component.clone());
                }
                let component = self.pinned(bytes, &format!("{name} (shipped)"), kind)?;
                lock(&self.shipped).insert(name.clone(), component.clone());
                Ok(component)
            }
            PolicyChoice::File { path, .. } => {
                let path = path.display().to_string();
                let bytes = fs::read(&path).map_err(|source| PolicyError::Read { path: path.clone(), source })?;
                self.pinned(&bytes, &path, kind)
            }
        }
    }

    /// Checks a component that is in memory.
    pub fn load_bytes(
        &self,
        bytes: &[u8],
        origin: &str,
        settings: &[(String, String)],
        kind: Kind,
    ) -> Result<Origin, PolicyError> {
        Ok(Origin::of(self.pinned(bytes, origin, kind)?, settings))
    }

    /// Loads a component, unless its name is pinned to another.
    fn pinned(&self, bytes: &[u8], origin: &str, kind: Kind) -> Result<reprise_wasm::Component, PolicyError> {
        let engine = self.engines.for_component(bytes).map_err(|source| PolicyError::Thread { source })?;
        let component = engine.load(bytes, origin, kind)?;
        let (name, found) = (&component.description().name, component.digest());
        match self.pins.get(name) {
            Some(wanted) if wanted != found => Err(PolicyError::Pinned {
                origin: origin.to_owned(),
                name: name.clone(),
                wanted: wanted.to_string(),
                found: found.to_string(),
            }),
            _ => Ok(component),
        }
    }
}

/// The policies of a kind that come with the cache, in the order in which they are told of.
pub(crate) const fn shipped_of(kind: Kind) -> &'static [Description] {
    match kind {
        Kind::Checkpoint => &SHIPPED_CHECKPOINTS,
        Kind::Cache => &SHIPPED_CACHES,
    }
}

/// The component of a shipped policy.
fn shipped(name: &str, kind: Kind) -> Result<&'static [u8], PolicyError> {
    let role = match kind {
        Kind::Checkpoint => "checkpoint",
        Kind::Cache => "eviction",
    };
    let shipped = shipped_of(kind);
    shipped
        .iter()
        .find(|policy| policy.name == name)
        .and_then(|policy| reprise_policies_dist::component(policy.name))
        .ok_or_else(|| {
            let known: Vec<&str> = shipped.iter().map(|policy| policy.name).collect();
            PolicyError::Unknown { role, name: name.to_owned(), known: known.join(", ") }
        })
}

impl Origin {
    fn of(component: reprise_wasm::Component, settings: &[(String, String)]) -> Self {
        let name = component.description().name.clone();
        Self { name, settings: settings.to_vec(), code: Code::Component(component) }
    }

    /// Whether it runs as a component.
    pub fn is_component(&self) -> bool {
        matches!(self.code, Code::Component(_))
    }

    fn native<P: Policy + 'static>(&self) -> Result<P, PolicyError> {
        let settings = self.settings.iter().map(|(key, value)| (key, value));
        let settings = Settings::parse(P::DESCRIPTION.settings, settings)
            .map_err(|error| PolicyError::Settings { name: self.name.clone(), message: error.to_string() })?;
        Ok(P::new(&settings))
    }

    /// The error of a component's first call, which hands the settings over.
    fn first_call(&self, error: reprise_wasm::PolicyError) -> PolicyError {
        match error {
            reprise_wasm::PolicyError::Refused { message } => {
                PolicyError::Settings { name: self.name.clone(), message }
            }
            error => error.into(),
        }
    }

    /// A fresh eviction policy that knows `groups` and nothing else.
    pub fn cache(&self, groups: &[GroupInfo]) -> Result<CacheRunner, PolicyError> {
        fn boxed<P: Policy + CachePolicy + Send + 'static>(
            origin: &Origin,
            groups: &[GroupInfo],
        ) -> Result<CacheRunner, PolicyError> {
            let mut policy: P = origin.native()?;
            policy.attach(groups);
            let Description { admission, state_schema, .. } = P::DESCRIPTION;
            Ok(CacheRunner { admission, state_schema, running: Running::Native(Box::new(policy)) })
        }
        match &self.code {
            Code::Component(component) => {
                let description = component.description();
                Ok(CacheRunner {
                    admission: description.admission,
                    state_schema: description.state_schema,
                    running: Running::Component(
                        component.cache(&self.settings, groups).map_err(|error| self.first_call(error))?,
                    ),
                })
            }
            Code::Native if self.name == native::Fifo::DESCRIPTION.name => boxed::<native::Fifo>(self, groups),
            Code::Native if self.name == native::TwoHit::DESCRIPTION.name => boxed::<native::TwoHit>(self, groups),
            Code::Native if self.name == native::Segmented::DESCRIPTION.name => {
                boxed::<native::Segmented>(self, groups)
            }
            Code::Native if self.name == native::FlopAware::DESCRIPTION.name => {
                boxed::<native::FlopAware>(self, groups)
            }
            Code::Native if self.name == native::TtlPriority::DESCRIPTION.name => {
                boxed::<native::TtlPriority>(self, groups)
            }
            Code::Native if self.name == native::Auto::DESCRIPTION.name => boxed::<native::Auto>(self, groups),
            Code::Native if self.name == native::WriteSaver::DESCRIPTION.name => {
                boxed::<native::WriteSaver>(self, groups)
            }
            Code::Native => boxed::<native::Lru>(self, groups),
        }
    }

    /// A fresh checkpoint policy that knows what checkpoints cost.
    pub fn checkpoint(&self, info: &CheckpointInfo) -> Result<CheckpointRunner, PolicyError> {
        fn boxed<P: Policy + CheckpointPolicy + Send + 'static>(
            origin: &Origin,
            info: &CheckpointInfo,
        ) -> Result<CheckpointRunner, PolicyError> {
            let mut policy: P = origin.native()?;
            policy.attach(info);
            Ok(CheckpointRunner::Native(Box::new(policy)))
        }
        match &self.code {
            Code::Component(component) => {
                let mut running = component.checkpoint(&self.settings).map_err(|error| self.first_call(error))?;
                running.attach(info)?;
                Ok(CheckpointRunner::Component(running))
            }
            Code::Native if self.name == native::Full::DESCRIPTION.name => boxed::<native::Full>(self, info),
            Code::Native if self.name == native::Periodic::DESCRIPTION.name => boxed::<native::Periodic>(self, info),
            Code::Native if self.name == native::Zero::DESCRIPTION.name => boxed::<native::Zero>(self, info),
            Code::Native if self.name == native::Adaptive::DESCRIPTION.name => boxed::<native::Adaptive>(self, info),
            Code::Native => boxed::<native::Events>(self, info),
        }
    }
}

/// Schema and bytes of what a policy saved of its own.
pub(crate) type SavedState = (u32, Vec<u8>);

enum Running {
    Native(Box<dyn CachePolicy + Send>),
    Component(reprise_wasm::CachePolicy),
}

/// A running eviction policy.
pub(crate) struct CacheRunner {
    /// Whether it is asked for admission.
    pub admission: bool,
    state_schema: u32,
    running: Running,
}

impl CacheRunner {
    pub fn step(&mut self, words: &[u64], want: u32, victims: &mut Vec<u32>) -> Result<(), PolicyError> {
        match &mut self.running {
            Running::Native(policy) => policy.step(Events::new(words), want, victims),
            Running::Component(policy) => policy.step(words, want, victims)?,
        }
        Ok(())
    }

    /// Hands events over off the way of requests.
    pub fn tell(&mut self, words: &[u64]) -> Result<(), PolicyError> {
        match &mut self.running {
            Running::Native(policy) => policy.step(Events::new(words), 0, &mut Vec::new()),
            Running::Component(policy) => policy.tell(words)?,
        }
        Ok(())
    }

    pub fn admit(&mut self, question: &Admission<'_>, verdicts: &mut Vec<bool>) -> Result<(), PolicyError> {
        match &mut self.running {
            Running::Native(policy) => policy.admit(question, verdicts),
            Running::Component(policy) => policy.admit(question, verdicts)?,
        }
        Ok(())
    }

    /// What a successor should know, with its schema; `None` if the policy keeps nothing of its own.
    pub fn save(&mut self) -> Result<Option<SavedState>, PolicyError> {
        match &mut self.running {
            _ if self.state_schema == 0 => Ok(None),
            Running::Native(policy) => Ok(Some((self.state_schema, policy.save()))),
            Running::Component(policy) => Ok(policy.save()?),
        }
    }

    /// Takes a predecessor's state; `false` if it makes no sense to this policy.
    pub fn load(&mut self, schema: u32, bytes: &[u8]) -> Result<bool, PolicyError> {
        match &mut self.running {
            _ if self.state_schema == 0 => Ok(false),
            Running::Native(policy) => Ok(schema == self.state_schema && policy.load(bytes)),
            Running::Component(policy) => Ok(policy.load(schema, bytes)?),
        }
    }
}

/// A plan as it is offered to a policy.
pub(crate) use reprise_wasm::Candidate as OfferedPlan;

/// A running checkpoint policy.
pub(crate) enum CheckpointRunner {
    Native(Box<dyn CheckpointPolicy + Send>),
    Component(reprise_wasm::CheckpointPolicy),
}

impl CheckpointRunner {
    /// Whether it chooses among plans.
    pub fn chooses_plans(&self) -> bool {
        match self {
            Self::Native(_) => false,
            Self::Component(policy) => policy.chooses_plans(),
        }
    }

    /// The index of the plan to take, if it chooses.
    pub fn choose_plan(&mut self, offered: &[OfferedPlan]) -> Result<Option<usize>, PolicyError> {
        match self {
            Self::Native(_) => Ok(None),
            Self::Component(policy) => Ok(policy.choose_plan(offered)?),
        }
    }

    pub fn choose(&mut self, span: &Span, prompt: &Prompt<'_>, positions: &mut Vec<u32>) -> Result<(), PolicyError> {
        match self {
            Self::Native(policy) => policy.choose_for(span, prompt, positions),
            Self::Component(policy) => policy.choose_for(span, prompt, positions)?,
        }
        Ok(())
    }
}
