//! What a request adopts, loads and recomputes: the exact plans there are, what each costs, which one is taken, and why it is
//! not longer.
//!
//! The rules are those of DeepSeek-V4's on-disk cache (arXiv:2606.19348 §3.5.2): adopt up to a checkpoint and go on from there,
//! or adopt everything and replay the last Z tokens to rebuild the windows. Replaying from a checkpoint to a longer match costs the
//! same forward pass as adopting the shorter one, and what lies between is resident and need not be written again either way, so
//! it is no plan of its own.

mod explanation;
mod price;

use serde::{Deserialize, Serialize};

pub use explanation::{Circumstances, Explain, Explanation, Reach, Refused};
pub use price::{Cost, Prices, RecordSizes};

/// What the look-up found for a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Tokens covered by leading resident blocks, at most the prompt less one token.
    pub matched_tokens: u32,
    /// Deepest checkpoint at or before `matched_tokens`; 0 if there is none. Equal to `matched_tokens` for a model without windows.
    pub checkpoint_tokens: u32,
    /// Z, the tokens whose replay rebuilds every window; `None` if replay is not allowed or the model has no window.
    pub replay_tokens: Option<u32>,
}

/// One exact way to serve a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// Tokens that need a forward pass, replayed ones included.
    pub computed_tokens: u32,
    /// Tokens whose compressed entries are taken from the cache.
    pub adopted_tokens: u32,
    /// Tokens computed again although adopted, to rebuild windows. Nothing they compute may overwrite stored entries.
    pub replayed_tokens: u32,
}

impl Candidate {
    /// Whether a checkpoint at the end of what is adopted is loaded (if the model has windows at all).
    pub const fn loads_checkpoint(&self) -> bool {
        self.adopted_tokens > 0 && self.replayed_tokens == 0
    }
}

/// At most three plans, the plain prefill first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidates {
    plans: [Candidate; 3],
    len: u8,
}

impl Candidates {
    /// Enumerates the exact plans for what was found.
    ///
    /// What a plan costs is concave in the tokens it adopts: loading costs the same for every token, computing costs more the
    /// further on a token lies. So of all prefixes that could be adopted with a checkpoint, or with a replay, only the longest can be
    /// cheaper than none, and the shorter ones are left out.
    pub fn new(lookup: &Lookup) -> Self {
        let Lookup { prompt_tokens, matched_tokens, checkpoint_tokens, replay_tokens } = *lookup;
        let prefill = Candidate { computed_tokens: prompt_tokens, adopted_tokens: 0, replayed_tokens: 0 };
        let mut candidates = Self { plans: [prefill; 3], len: 1 };
        if checkpoint_tokens > 0 {
            candidates.push(Candidate {
                computed_tokens: prompt_tokens - checkpoint_tokens,
                adopted_tokens: checkpoint_tokens,
                replayed_tokens: 0,
            });
        }
        if let Some(replayed_tokens) = replay_tokens.filter(|&tokens| matched_tokens > tokens) {
            candidates.push(Candidate {
                computed_tokens: prompt_tokens - matched_tokens + replayed_tokens,
                adopted_tokens: matched_tokens,
                replayed_tokens,
            });
        }
        candidates
    }

    fn push(&mut self, candidate: Candidate) {
        self.plans[usize::from(self.len)] = candidate;
        self.len += 1;
    }

    /// The plans.
    pub fn as_slice(&self) -> &[Candidate] {
        &self.plans[..usize::from(self.len)]
    }

    /// The plan that computes the fewest tokens; among equals, the one that adopts the fewest.
    pub fn min_compute(&self) -> Candidate {
        self.least(|plan| u64::from(plan.computed_tokens))
    }

    /// The plan that takes the least time, load and prefill together; among equals, the one that adopts the fewest.
    pub fn min_time(&self, prices: &Prices, sizes: &RecordSizes) -> Candidate {
        self.least(|plan| prices.cost(plan, sizes).total_ns())
    }

    fn least(&self, cost: impl Fn(&Candidate) -> u64) -> Candidate {
        *self
            .as_slice()
            .iter()
            .min_by_key(|plan| (cost(plan), plan.adopted_tokens))
            .expect("the plain prefill is always a plan")
    }
}

/// How one of several exact plans is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Planner {
    /// Least time at the prices given: what is slower to load than to compute is not adopted. Among equals, fewest adopted.
    #[default]
    MinTime,
    /// Fewest computed tokens, whatever must be loaded; among equals, fewest adopted.
    MinCompute,
}

impl Planner {
    /// The plan taken.
    pub fn choose(self, candidates: &Candidates, prices: &Prices, sizes: &RecordSizes) -> Candidate {
        match self {
            Self::MinTime => candidates.min_time(prices, sizes),
            Self::MinCompute => candidates.min_compute(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn plan(computed_tokens: u32, adopted_tokens: u32, replayed_tokens: u32) -> Candidate {
        Candidate { computed_tokens, adopted_tokens, replayed_tokens }
    }

    const SIZES: RecordSizes =
        RecordSizes { block_tokens: 128, block_bytes: 644_024, checkpoint_bytes: 5_174_272, checkpoint_records: 1 };

    #[test]
    fn no_plan_computes_more_than_a_plain_prefill_or_skips_a_window() {
        const Z: u32 = 7_808;
        for (matched_tokens, checkpoint_tokens, replay_tokens, expected) in [
            (0, 0, Some(Z), plan(20_000, 0, 0)),
            (6_400, 0, Some(Z), plan(20_000, 0, 0)),
            (Z, 0, Some(Z), plan(20_000, 0, 0)),
            (7_936, 0, Some(Z), plan(19_872, 7_936, Z)),
            (12_800, 6_400, Some(Z), plan(13_600, 6_400, 0)),
            (12_800, 4_992, Some(Z), plan(15_008, 4_992, 0)),
            (12_800, 4_864, Some(Z), plan(15_008, 12_800, Z)),
            (12_800, 4_864, None, plan(15_136, 4_864, 0)),
            (19_968, 19_968, Some(Z), plan(32, 19_968, 0)),
        ] {
            let lookup = Lookup { prompt_tokens: 20_000, matched_tokens, checkpoint_tokens, replay_tokens };
            assert_eq!(Candidates::new(&lookup).min_compute(), expected, "{lookup:?}");
        }
    }

    #[test]
    fn a_load_that_is_slower_than_a_prefill_is_not_planned() {
        let lookup =
            Lookup { prompt_tokens: 20_000, matched_tokens: 12_800, checkpoint_tokens: 12_800, replay_tokens: None };
        let candidates = Candidates::new(&lookup);
        let prices = Prices { load_bytes_per_second: 2_000_000_000, load_record_ns: 20_000, ..Prices::default() };
        assert_eq!(candidates.min_time(&prices, &SIZES).adopted_tokens, 12_800);
        // 64 MB of blocks and 5 MB of windows spare 12,800 tokens: at 17.9 µs a token, 229 ms and some for the context.
        for (load_bytes_per_second, adopted_tokens) in [(310_000_000, 12_800), (285_000_000, 0)] {
            let prices = Prices { load_bytes_per_second, ..prices };
            assert_eq!(candidates.min_time(&prices, &SIZES).adopted_tokens, adopted_tokens, "{load_bytes_per_second}");
            assert_eq!(candidates.min_compute().adopted_tokens, 12_800, "the other planner does not ask");
        }
    }

    /// Among plans that compute alike, the bytes decide: a replay from all that is resident loads more than a checkpoint.
    #[test]
    fn a_replay_is_not_taken_where_a_checkpoint_computes_as_little() {
        let lookup = Lookup {
            prompt_tokens: 20_000,
            matched_tokens: 12_800,
            checkpoint_tokens: 4_992,
            replay_tokens: Some(7_808),
        };
        let candidates = Candidates::new(&lookup);
        assert_eq!(candidates.min_time(&Prices::default(), &SIZES), plan(15_008, 4_992, 0));
    }
}
