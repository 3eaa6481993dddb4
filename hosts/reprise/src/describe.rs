//! What a policy says of itself, without a cache.

use reprise_core::policy::{self, CheckpointInfo, Kind};
use reprise_wasm::{Component, Description, LoadError, Profile};

use crate::{
    choice::PolicyChoice,
    policies::{Loader, PolicyError, Role, Terms, shipped_of},
};

/// Loads a policy's component, shipped or in a file, and gives its description.
///
/// # Errors
/// When it is no policy. A component that has neither world is refused as the eviction policy that it is not.
pub fn describe(choice: &PolicyChoice) -> Result<Description, PolicyError> {
    let loader = Loader::new(Terms { profile: Profile::Interpreted, ..Terms::default() });
    match loader.component(choice, Kind::Cache) {
        Err(PolicyError::Unknown { .. } | PolicyError::Load(LoadError::Missing { .. })) => loader
            .component(choice, Kind::Checkpoint)
            .or_else(|_| loader.component(choice, Kind::Cache))
            .map(|component: Component| component.description().clone()),
        component => component.map(|component| component.description().clone()),
    }
}

/// The policies that come with the cache and can take a seat, each under the name it is asked for by.
pub const fn shipped(role: Role) -> &'static [policy::Description] {
    match role {
        Role::Eviction => shipped_of(Kind::Cache),
        Role::Checkpoints => shipped_of(Kind::Checkpoint),
    }
}

/// Whether a policy could take a seat: there is one, of that role, and it takes its settings. For hosts that want to know long before a
/// [`swap`](crate::Policies::swap). `profile` is the widest that is taken. A policy that only misbehaves passes: what it does is seen when it runs.
///
/// # Errors
/// What the swap would refuse.
pub fn check(role: Role, choice: &PolicyChoice, profile: Profile) -> Result<(), PolicyError> {
    let loader = Loader::new(Terms { profile, ..Terms::default() });
    let checked = match role {
        Role::Eviction => loader.load(choice, Kind::Cache).and_then(|origin| origin.cache(&[]).map(drop)),
        Role::Checkpoints => loader
            .load(choice, Kind::Checkpoint)
            .and_then(|origin| origin.checkpoint(&CheckpointInfo::default()).map(drop)),
    };
    match checked {
        Err(error) if error.is_misbehaviour() => Ok(()),
        checked => checked,
    }
}
