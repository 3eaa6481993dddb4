//! The policies of a cache: asked, checked, replaced when they fail, swapped while the cache serves.

mod checkpoints;
mod eviction;
mod runner;
mod seat;

use reprise_core::policy::Kind;

pub(crate) use checkpoints::CheckpointSeat;
pub(crate) use eviction::{EvictionSeat, Question};
pub(crate) use runner::Loader;
pub use runner::PolicyError;
pub use seat::{Notice, PolicyStatus, Role};

use crate::{cache::Inner, choice::PolicyChoice};

/// The running policies of a cache, as an operator handles them.
pub struct Policies<'a>(pub(crate) &'a Inner);

impl Policies<'_> {
    /// Puts another policy in a seat. It is loaded, checked and told everything resident beside the running one; requests go on
    /// and meet the new one at their next call. If it fails on the way in, the old one stays.
    ///
    /// # Errors
    /// When the policy does not load, is of another kind, refuses its settings, or fails while it is told what there is.
    pub fn swap(&self, role: Role, choice: &PolicyChoice) -> Result<(), PolicyError> {
        match role {
            Role::Eviction => self.0.eviction.swap(self.0.loader.load(choice, Kind::Cache)?, &self.0.ledger),
            Role::Checkpoints => self.0.checkpoints.swap(self.0.loader.load(choice, Kind::Checkpoint)?),
        }
    }

    /// Like [`Policies::swap`], with a component that is in memory. `origin` names it in messages.
    ///
    /// # Errors
    /// As [`Policies::swap`].
    pub fn swap_bytes(
        &self,
        role: Role,
        bytes: &[u8],
        origin: &str,
        settings: &[(String, String)],
    ) -> Result<(), PolicyError> {
        match role {
            Role::Eviction => {
                let origin = self.0.loader.load_bytes(bytes, origin, settings, Kind::Cache)?;
                self.0.eviction.swap(origin, &self.0.ledger)
            }
            Role::Checkpoints => {
                self.0.checkpoints.swap(self.0.loader.load_bytes(bytes, origin, settings, Kind::Checkpoint)?)
            }
        }
    }

    /// How the policies are doing.
    pub fn status(&self) -> [PolicyStatus; 2] {
        [self.0.eviction.status(), self.0.checkpoints.status()]
    }

    /// What an operator should see and has not seen yet.
    pub fn take_notices(&self) -> Vec<Notice> {
        let mut notices = self.0.eviction.take_notices();
        notices.extend(self.0.checkpoints.take_notices());
        notices
    }
}
