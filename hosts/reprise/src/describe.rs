//! What a policy says of itself, without a cache.

use reprise_core::policy::Kind;
use reprise_wasm::{Component, Description, LoadError};

use crate::{
    choice::PolicyChoice,
    policies::{Loader, PolicyError},
};

/// Loads a policy's component, shipped or in a file, and gives its description.
///
/// # Errors
/// When it is no policy. A component that has neither world is refused as the eviction policy that it is not.
pub fn describe(choice: &PolicyChoice) -> Result<Description, PolicyError> {
    let loader = Loader::new(false, false).map_err(|source| PolicyError::Read { path: choice.to_string(), source })?;
    match loader.component(choice, Kind::Cache) {
        Err(PolicyError::Unknown { .. } | PolicyError::Load(LoadError::Missing { .. })) => loader
            .component(choice, Kind::Checkpoint)
            .or_else(|_| loader.component(choice, Kind::Cache))
            .map(|component: Component| component.description().clone()),
        component => component.map(|component| component.description().clone()),
    }
}
