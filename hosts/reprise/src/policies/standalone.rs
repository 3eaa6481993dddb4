//! Cache policies outside of a cache: for simulators, which keep books of their own.

use reprise_core::policy::{Admission, GroupInfo, Kind};
use reprise_wasm::Profile;

use super::{
    PolicyError,
    runner::{CacheRunner, Loader, Origin, Terms},
};
use crate::{choice::PolicyChoice, pin::Pins};

/// On what terms a [`PolicyLoader`] takes policies.
#[derive(Clone, Debug, Default)]
pub struct PolicyTerms {
    /// Run shipped policies natively instead of as components.
    pub native: bool,
    /// The widest set of WebAssembly features that a component may use.
    pub profile: Profile,
    /// What names stand for.
    pub pins: Pins,
    /// Records that a policy has to rank at most: the bound of its memory grows with it.
    pub records: u64,
}

/// Finds, checks and compiles cache policies. Calls of what it loads are bounded by fuel instead of time, so that a run can be
/// repeated. Clones share the compiler.
#[derive(Clone)]
pub struct PolicyLoader(Loader);

/// A cache policy that was found and checked. Any number of instances can be made of it, on any thread.
#[derive(Clone)]
pub struct LoadedCachePolicy(Origin);

/// A cache policy at work, which knows what it was told and nothing else.
pub struct RunningCachePolicy(CacheRunner);

impl PolicyLoader {
    /// A loader without a cache of compiled components on disk.
    pub fn new(terms: PolicyTerms) -> Self {
        let PolicyTerms { native, profile, pins, records } = terms;
        Self(Loader::new(Terms { native, deterministic: true, pins, profile, records, ..Terms::default() }))
    }

    /// Finds and checks a cache policy.
    ///
    /// # Errors
    /// When there is none of this name, it cannot be read, is of another kind, breaks the rules for components, or is not the one
    /// that its name is pinned to. Settings are checked by [`LoadedCachePolicy::start`].
    pub fn load(&self, choice: &PolicyChoice) -> Result<LoadedCachePolicy, PolicyError> {
        self.0.load(choice, Kind::Cache).map(LoadedCachePolicy)
    }
}

impl LoadedCachePolicy {
    /// What the policy calls itself.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Whether it runs as a component.
    pub fn is_component(&self) -> bool {
        self.0.is_component()
    }

    /// A fresh instance that knows `groups`.
    ///
    /// # Errors
    /// When it refuses its settings; when it fails at once, which [`PolicyError::is_misbehaviour`] tells apart.
    pub fn start(&self, groups: &[GroupInfo]) -> Result<RunningCachePolicy, PolicyError> {
        self.0.cache(groups).map(RunningCachePolicy)
    }
}

impl RunningCachePolicy {
    /// Whether it is asked for admission.
    pub fn asks_admission(&self) -> bool {
        self.0.admission
    }

    /// Tells it what happened, as packed events, and puts up to `want` victims in the place of what `victims` held. That they may
    /// go is for the caller to check.
    ///
    /// # Errors
    /// When it fails, or names more than were asked for.
    pub fn step(&mut self, events: &[u64], want: u32, victims: &mut Vec<u32>) -> Result<(), PolicyError> {
        victims.clear();
        self.0.step(events, want, victims)?;
        match victims.len() {
            named if named > want as usize => {
                Err(PolicyError::Answer(format!("{named} victims where {want} were asked for")))
            }
            _ => Ok(()),
        }
    }

    /// How many blocks from [`Admission::first`] on may come in.
    ///
    /// # Errors
    /// When it fails, or does not answer with one verdict for each.
    pub fn admit(&mut self, question: &Admission<'_>, verdicts: &mut Vec<bool>) -> Result<usize, PolicyError> {
        verdicts.clear();
        self.0.admit(question, verdicts)?;
        let asked = question.keys.len() - question.first as usize;
        if verdicts.len() != asked {
            let given = verdicts.len();
            return Err(PolicyError::Answer(format!("{given} verdicts on {asked} blocks: there must be one for each")));
        }
        Ok(verdicts.iter().take_while(|&&admitted| admitted).count())
    }
}
