//! What is expected of every policy: the short run at load, and the long one with a report.

mod caches;
mod checkpoints;
mod endurance;
mod report;
mod trial;

use reprise_core::policy::{GroupInfo, Kind};

pub use report::{Calls, Check, Report};
use trial::Trial;

use crate::{
    compiled::CompileCache,
    component::Component,
    engine::Engine,
    error::{LoadError, PolicyError},
    limits::Limits,
};

const BLOCK_TOKENS: u32 = 128;

/// How a policy is checked.
#[derive(Clone)]
pub struct CheckOptions {
    /// The limits it has to keep to.
    pub limits: Limits,
    /// Where compiled components are kept, if anywhere.
    pub cache: Option<CompileCache>,
    /// Events of the long run. 2^20 unless a test is in a hurry.
    pub events: u64,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self { limits: Limits::default(), cache: None, events: 1 << 20 }
    }
}

/// The run of a few hundred operations that every policy passes before it is eligible, with its default settings.
pub(crate) fn at_load(component: &Component) -> Result<(), PolicyError> {
    match component.description().kind {
        Kind::Cache => [true, false].into_iter().try_for_each(|tree| {
            let mut trial = Trial::run(component, tree)?;
            caches::hand_over(component, &mut trial, tree)
        }),
        Kind::Checkpoint => checkpoints::spans(component).map(drop),
    }
}

/// Checks all that is expected of a policy and measures it. Takes seconds, with an interpreter inside minutes.
///
/// # Errors
/// When it does not load at all: no component, of another world, with another type or a description that makes no sense. All
/// else is in the report.
///
/// # Panics
/// As [`Engine::new`], and when the machine refuses a thread.
pub fn check(bytes: &[u8], origin: &str, kind: Kind, options: &CheckOptions) -> Result<Report, LoadError> {
    let engine = |limits: &Limits| {
        match &options.cache {
            Some(cache) => Engine::with_cache(limits, cache.clone()),
            None => Engine::new(limits),
        }
        .expect("the machine has a thread to spare")
    };
    let timed = engine(&options.limits).load_untried(bytes, origin, kind)?;
    // Fuel is counted in code that is compiled for it.
    let fuelled = engine(&options.limits.clone().fuelled()).load_untried(bytes, origin, kind)?;
    let mut report = Report::of(&timed);
    match kind {
        Kind::Cache => caches::check(&timed, &fuelled, options.events, &mut report),
        Kind::Checkpoint => checkpoints::check(&timed, &fuelled, options.events, &mut report),
    }
    Ok(report)
}

/// The group that policies of these runs are told of.
fn group(capacity_records: u64, tree: bool) -> GroupInfo {
    GroupInfo {
        group: 0,
        name: "history".to_owned(),
        record_bytes: 4096,
        capacity_records,
        recompute_tokens: BLOCK_TOKENS,
        tree,
    }
}

/// A key and a value, as an operator writes them.
type Given = (String, String);

/// Settings that a policy must take, and such as it must refuse.
fn settings(component: &Component) -> [Vec<Given>; 2] {
    let (mut taken, mut refused) = (Vec::new(), vec![("no such setting".to_owned(), "1".to_owned())]);
    for setting in &component.description().settings {
        let given = |value: u64| (setting.key.clone(), value.to_string());
        taken.extend([setting.min, setting.default, setting.max].map(given));
        refused.push((setting.key.clone(), "x".to_owned()));
        refused.extend(setting.max.checked_add(1).map(given));
        refused.extend(setting.min.checked_sub(1).map(given));
    }
    [taken, refused]
}

/// Whether a policy takes what it declares and refuses the rest. `made` makes one with these settings.
fn takes_its_settings(component: &Component, made: impl Fn(&[Given]) -> Result<(), PolicyError>) -> Result<(), String> {
    let [taken, refused] = settings(component);
    for (key, value) in taken {
        made(&[(key.clone(), value.clone())])
            .map_err(|error| format!("it declares that `{key}` may be {value}, and: {error}"))?;
    }
    for (key, value) in refused {
        match made(&[(key.clone(), value.clone())]) {
            Err(PolicyError::Refused { .. }) => {}
            Ok(()) => {
                return Err(format!(
                    "it takes `{key}={value}`, which it does not declare: an operator's slip goes unseen"
                ));
            }
            Err(error) => return Err(format!("`{key}={value}` is to be refused with a sentence, and: {error}")),
        }
    }
    Ok(())
}
