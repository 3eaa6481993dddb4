//! What the cache would do for one prompt: a request of a trace, or tokens against a store.

mod report;
mod snapshot;
mod tokens;

use reprise::{Candidate, Cost, Plan, Prices, Shape};
use reprise_core::plan::{Candidates, Lookup};

pub use report::{Report, Source};
pub use snapshot::{Snapshot, SnapshotError};
pub use tokens::{TokenFormat, TokensError, read_tokens};

/// One exact plan and what it costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alternative {
    /// The plan.
    pub plan: Candidate,
    /// What it costs.
    pub cost: Cost,
    /// Whether it is the one taken.
    pub taken: bool,
}

/// The exact plans that `plan` was taken from, the plain prefill first, at `prices`.
pub fn alternatives(plan: &Plan, shape: &Shape, prices: &Prices) -> Vec<Alternative> {
    let explanation = plan.explain();
    let lookup = Lookup {
        prompt_tokens: plan.prompt_tokens,
        matched_tokens: plan.matched_tokens,
        checkpoint_tokens: explanation.window.map_or(plan.matched_tokens, |window| window.tokens),
        replay_tokens: explanation.replay_tokens,
    };
    let sizes = shape.record_sizes();
    let priced = |&candidate: &Candidate| Alternative {
        plan: candidate,
        cost: prices.cost(&candidate, &sizes),
        taken: candidate == explanation.plan,
    };
    Candidates::new(&lookup).as_slice().iter().map(priced).collect()
}
