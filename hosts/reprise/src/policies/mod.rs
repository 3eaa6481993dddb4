//! The policies of a cache: asked, checked, replaced when they fail, swapped while the cache serves.

mod checkpoints;
mod engines;
mod eviction;
mod handover;
mod occupied;
mod offstage;
mod runner;
mod seat;
mod shadow;
mod stage;
mod standalone;

use reprise_core::policy::Kind;

pub(crate) use checkpoints::CheckpointSeat;
pub(crate) use eviction::EvictionSeat;
pub(crate) use occupied::Question;
pub use runner::PolicyError;
pub(crate) use runner::{Loader, OfferedPlan, Origin, Terms, shipped_of};
pub(crate) use seat::Script;
pub use seat::{Notice, PolicyStatus, Role};
pub(crate) use shadow::{LivePlan, Message, ShadowSeat};
pub use shadow::{Promotion, ShadowFigures, ShadowReport, Shadowing};
pub use standalone::{LoadedCachePolicy, PolicyLoader, PolicyTerms, RunningCachePolicy};

use crate::{cache::Inner, choice::PolicyChoice, division::DivisionReport};

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
            Role::Eviction => self.0.eviction.swap(self.0.loader.load(choice, Kind::Cache)?, None)?,
            Role::Checkpoints => self.0.checkpoints.swap(self.0.loader.load(choice, Kind::Checkpoint)?)?,
        }
        self.send_scouts()
    }

    /// What the scouts found was true of the policies before.
    fn send_scouts(&self) -> Result<(), PolicyError> {
        self.0.division.as_ref().map_or(Ok(()), |division| division.send_scouts(self.0))
    }

    /// How one budget is divided between the groups, and what that was learned from; `None` where each has a quota of its own.
    pub fn division(&self) -> Option<DivisionReport> {
        self.0.division.as_ref().map(|division| division.report(self.0))
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
                self.0.eviction.swap(origin, None)?;
            }
            Role::Checkpoints => {
                self.0.checkpoints.swap(self.0.loader.load_bytes(bytes, origin, settings, Kind::Checkpoint)?)?;
            }
        }
        self.send_scouts()
    }

    /// Runs candidates on the live requests, on books of their own with the same quotas, beside the policies in the seats: no I/O, no
    /// say in any request. A shadow that is at work already ends. It begins with what is resident now, and a policy that
    /// remembers more begins with what the one of its name in the seat remembers.
    ///
    /// # Errors
    /// When a candidate does not load, refuses its settings or fails at once; when a role has neither a candidate nor a running policy.
    pub fn shadow(&self, shadowing: &Shadowing) -> Result<(), PolicyError> {
        self.0.shadow.begin(shadow::Books::open(self.0, shadowing)?, self.0.config.deterministic)
    }

    /// What the shadow has found so far, all requests included that were made before; `None` without one.
    pub fn shadow_report(&self) -> Option<ShadowReport> {
        self.0.shadow.report()
    }

    /// Puts the shadow's candidates into the seats, with what they remember, as [`Policies::swap`] does. From then on the shadow stands
    /// still; its report stays until [`Policies::end_shadow`].
    ///
    /// # Errors
    /// When there is no shadow, or a candidate fails on its way in: the seat is left as it was.
    pub fn promote(&self) -> Result<(), PolicyError> {
        self.0.shadow.promote().unwrap_or(Err(PolicyError::NoShadow))
    }

    /// Ends the shadow. Returns what it found.
    pub fn end_shadow(&self) -> Option<ShadowReport> {
        self.0.shadow.end()
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
