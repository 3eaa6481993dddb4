//! `pricing` on top of `reprise_core::plan`.

use alloc::vec::Vec;

use reprise_core::plan;

use crate::{
    bindings::exports::reprise::policy::{
        plan::{Candidate, Lookup, PlanError},
        pricing::{Cost, Guest, Priced, Prices, PricingError, RecordSizes},
    },
    export::Core,
    plan::enumerate,
};

impl Guest for Core {
    fn default_prices() -> Prices {
        let plan::Prices { load_bytes_per_second, load_record_ns, token_ps, context_ps } = plan::Prices::default();
        Prices { load_bytes_per_second, load_record_ns, token_ps, context_ps }
    }

    fn costs(lookup: Lookup, prices: Prices, sizes: RecordSizes) -> Result<Vec<Priced>, PricingError> {
        let (candidates, prices, sizes) = checked(lookup, prices, sizes)?;
        Ok(candidates.as_slice().iter().map(|plan| priced(plan, &prices, &sizes)).collect())
    }

    fn min_time(lookup: Lookup, prices: Prices, sizes: RecordSizes) -> Result<Priced, PricingError> {
        let (candidates, prices, sizes) = checked(lookup, prices, sizes)?;
        Ok(priced(&candidates.min_time(&prices, &sizes), &prices, &sizes))
    }
}

/// What can be priced. The core trusts a layout for sizes that fit; a caller may give any.
fn checked(
    lookup: Lookup,
    prices: Prices,
    sizes: RecordSizes,
) -> Result<(plan::Candidates, plan::Prices, plan::RecordSizes), PricingError> {
    let candidates = enumerate(lookup)?;
    let RecordSizes { block_tokens, block_bytes, checkpoint_bytes, checkpoint_records } = sizes;
    let blocks = lookup.matched_tokens.checked_div(block_tokens).ok_or(PricingError::NoBlockTokens)?;
    u64::from(blocks)
        .checked_mul(block_bytes)
        .and_then(|bytes| bytes.checked_add(checkpoint_bytes))
        .ok_or(PricingError::TooManyBytes)?;
    let Prices { load_bytes_per_second, load_record_ns, token_ps, context_ps } = prices;
    Ok((
        candidates,
        plan::Prices { load_bytes_per_second, load_record_ns, token_ps, context_ps },
        plan::RecordSizes { block_tokens, block_bytes, checkpoint_bytes, checkpoint_records },
    ))
}

fn priced(plan: &plan::Candidate, prices: &plan::Prices, sizes: &plan::RecordSizes) -> Priced {
    let plan::Cost { load_bytes, load_ns, prefill_ns } = prices.cost(plan, sizes);
    Priced { plan: Candidate::from(plan), cost: Cost { load_bytes, load_ns, prefill_ns } }
}

impl From<PlanError> for PricingError {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::NoTokenLeft => Self::NoTokenLeft,
            PlanError::CheckpointPastMatch => Self::CheckpointPastMatch,
        }
    }
}
