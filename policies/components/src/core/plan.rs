//! `plan` on top of `reprise_core::plan`.

use alloc::vec::Vec;

use reprise_core::plan;

use crate::{
    bindings::exports::reprise::policy::plan::{Candidate, Guest, Lookup, PlanError},
    export::Core,
};

impl Guest for Core {
    fn candidates(lookup: Lookup) -> Result<Vec<Candidate>, PlanError> {
        Ok(enumerate(lookup)?.as_slice().iter().map(Candidate::from).collect())
    }

    fn min_compute(lookup: Lookup) -> Result<Candidate, PlanError> {
        Ok(Candidate::from(&enumerate(lookup)?.min_compute()))
    }
}

/// The exact plans for a look-up that can be.
pub(super) fn enumerate(lookup: Lookup) -> Result<plan::Candidates, PlanError> {
    let Lookup { prompt_tokens, matched_tokens, checkpoint_tokens, replay_tokens } = lookup;
    if matched_tokens >= prompt_tokens {
        return Err(PlanError::NoTokenLeft);
    }
    if checkpoint_tokens > matched_tokens {
        return Err(PlanError::CheckpointPastMatch);
    }
    Ok(plan::Candidates::new(&plan::Lookup { prompt_tokens, matched_tokens, checkpoint_tokens, replay_tokens }))
}

impl From<&plan::Candidate> for Candidate {
    fn from(plan: &plan::Candidate) -> Self {
        let &plan::Candidate { computed_tokens, adopted_tokens, replayed_tokens } = plan;
        Self { computed_tokens, adopted_tokens, replayed_tokens }
    }
}
