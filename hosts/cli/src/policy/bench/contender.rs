//! Who is measured: the native `lru`, or a component.

use std::{slice::from_ref, time::Duration};

use anyhow::anyhow;
use reprise::{
    PolicyKind,
    wasm::{self, Budget, Limits},
};
use reprise_core::policy::{CachePolicy, Events, GroupInfo, Policy, Settings};
use reprise_policies::Lru;

use super::super::{Compiler, Problem, Subject, inspect};

/// An eviction policy that is measured.
pub(super) enum Contender {
    Native(Lru),
    Component { policy: wasm::CachePolicy, budget: Budget, name: String, version: String },
}

/// What a call is given here: a slow one is measured, only an endless one is cut.
const PATIENCE: Budget = Budget::Deadline { per_call: Duration::from_secs(10), per_item: Duration::ZERO };

impl Contender {
    pub fn native(group: &GroupInfo) -> Self {
        let settings = Settings::parse::<&str, &str>(Lru::DESCRIPTION.settings, []);
        let mut lru = Lru::new(&settings.expect("no setting given is no setting refused"));
        lru.attach(from_ref(group));
        Self::Native(lru)
    }

    pub fn load(subject: &Subject, group: &GroupInfo, compiler: &Compiler) -> Result<Self, Problem> {
        let Subject { origin, bytes, settings, .. } = subject;
        let inspection = inspect::look(subject)?;
        let kind = inspect::kind(&inspection).map_err(|reason| Problem::Input(anyhow!("{origin} {reason}")))?;
        if kind == PolicyKind::Checkpoint {
            return Err(Problem::Input(anyhow!(
                "{origin} is a checkpoint policy, and only eviction policies are measured: `reprise policy check` says what its calls take"
            )));
        }
        let limits = Limits::of(inspect::profile(&inspection));
        let engine = compiler.engine(&Limits { budget: PATIENCE, ..limits.clone() })?;
        let component = engine.load(bytes, origin, kind).map_err(Problem::input)?;
        let made = component.cache(settings, from_ref(group));
        let policy = made.map_err(|error| Problem::Input(anyhow!("{origin}: {error}")))?;
        let description = component.description();
        Ok(Self::Component {
            policy,
            budget: limits.budget,
            name: description.name.clone(),
            version: description.version.clone(),
        })
    }

    /// Name and version.
    pub fn identity(&self) -> (String, String) {
        match self {
            Self::Native(_) => (Lru::DESCRIPTION.name.to_owned(), Lru::DESCRIPTION.version.to_owned()),
            Self::Component { name, version, .. } => (name.clone(), version.clone()),
        }
    }

    pub fn step(&mut self, words: &[u64], want: u32, victims: &mut Vec<u32>) -> anyhow::Result<()> {
        match self {
            Self::Native(policy) => policy.step(Events::new(words), want, victims),
            Self::Component { policy, .. } => policy.step(words, want, victims)?,
        }
        Ok(())
    }

    /// The time that a host gives a call with so many events and wanted victims; `None` of the native policy, which nobody cuts.
    pub fn deadline(&self, items: u64) -> Option<Duration> {
        match self {
            Self::Component { budget: Budget::Deadline { per_call, per_item }, .. } => {
                let items = u32::try_from(items).unwrap_or(u32::MAX);
                Some(per_call.saturating_add(per_item.saturating_mul(items)))
            }
            _ => None,
        }
    }

    pub fn memory_bytes(&self) -> Option<usize> {
        match self {
            Self::Native(_) => None,
            Self::Component { policy, .. } => Some(policy.memory_bytes()),
        }
    }
}
