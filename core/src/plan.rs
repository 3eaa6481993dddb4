//! What a request adopts, loads and recomputes: the exact plans there are, what each costs, which one is taken, and why it is
//! not longer.
//!
//! The rules are those of DeepSeek-V4's on-disk cache (arXiv:2606.19348 §3.5.2): adopt up to a checkpoint and go on from there,
//! or adopt everything and replay the last Z tokens to rebuild the windows. Replaying from a checkpoint to a longer match costs the
//! same forward pass as adopting the shorter one, so it is no plan of its own.

use core::fmt;

use serde::{Deserialize, Serialize};

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
}

/// How one of several exact plans is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Planner {
    /// Fewest computed tokens; among equals, fewest adopted.
    #[default]
    MinCompute,
}

impl Planner {
    /// The plan taken.
    pub fn choose(self, candidates: &Candidates) -> Candidate {
        match self {
            Self::MinCompute => *candidates
                .as_slice()
                .iter()
                .min_by_key(|plan| (plan.computed_tokens, plan.adopted_tokens))
                .expect("the plain prefill is always a plan"),
        }
    }
}

/// Why a plan does not adopt more of the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Explain {
    /// Everything that may be adopted is: every complete block, less the one that holds the last token.
    Complete,
    /// The prompt has no complete block besides the one with its last token.
    Short,
    /// The next block is not resident: it was never saved, or it was evicted.
    NoBlock,
    /// The next block is being written and cannot be read yet.
    Pending,
    /// Blocks are resident behind the adopted ones, without a checkpoint to go on from.
    NoCheckpoint,
    /// More could be adopted, by a replay that computes more than it spares.
    Gate,
    /// A record that the plan counted on could not be read.
    Unreadable,
}

impl Explain {
    /// All reasons, for counters.
    pub const ALL: [Self; 7] =
        [Self::Complete, Self::Short, Self::NoBlock, Self::Pending, Self::NoCheckpoint, Self::Gate, Self::Unreadable];

    /// The reason for the plan `taken`, given what was found. `may_hit_tokens` is the most that could ever be adopted; `beyond` says what
    /// is wrong with the block behind what was matched: [`Explain::NoBlock`], [`Explain::Pending`] or [`Explain::Unreadable`].
    pub fn of(lookup: &Lookup, taken: &Candidate, may_hit_tokens: u32, beyond: Self) -> Self {
        if may_hit_tokens == 0 {
            Self::Short
        } else if taken.adopted_tokens == may_hit_tokens {
            Self::Complete
        } else if taken.adopted_tokens == lookup.matched_tokens {
            beyond
        } else if lookup.replay_tokens.is_some_and(|tokens| lookup.matched_tokens > tokens) {
            Self::Gate
        } else {
            Self::NoCheckpoint
        }
    }

    /// As written in reports and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Short => "short",
            Self::NoBlock => "no-block",
            Self::Pending => "pending",
            Self::NoCheckpoint => "no-checkpoint",
            Self::Gate => "gate",
            Self::Unreadable => "unreadable",
        }
    }
}

impl fmt::Display for Explain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Complete => "everything that may be adopted is",
            Self::Short => "the prompt has no complete block that may be adopted",
            Self::NoBlock => "the next block is not resident",
            Self::Pending => "the next block is being written",
            Self::NoCheckpoint => "no checkpoint lies further on",
            Self::Gate => "a longer plan would compute more",
            Self::Unreadable => "a record could not be read",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn plan(computed_tokens: u32, adopted_tokens: u32, replayed_tokens: u32) -> Candidate {
        Candidate { computed_tokens, adopted_tokens, replayed_tokens }
    }

    #[test]
    fn no_plan_computes_more_than_a_plain_prefill_or_skips_a_window() {
        const Z: u32 = 7_808;
        for (matched_tokens, checkpoint_tokens, replay_tokens, expected, why) in [
            (0, 0, Some(Z), plan(20_000, 0, 0), Explain::NoBlock),
            (6_400, 0, Some(Z), plan(20_000, 0, 0), Explain::NoCheckpoint),
            (Z, 0, Some(Z), plan(20_000, 0, 0), Explain::NoCheckpoint),
            (7_936, 0, Some(Z), plan(19_872, 7_936, Z), Explain::NoBlock),
            (12_800, 6_400, Some(Z), plan(13_600, 6_400, 0), Explain::Gate),
            (12_800, 4_992, Some(Z), plan(15_008, 4_992, 0), Explain::Gate),
            (12_800, 4_864, Some(Z), plan(15_008, 12_800, Z), Explain::NoBlock),
            (12_800, 4_864, None, plan(15_136, 4_864, 0), Explain::NoCheckpoint),
            (19_968, 19_968, Some(Z), plan(32, 19_968, 0), Explain::Complete),
        ] {
            let lookup = Lookup { prompt_tokens: 20_000, matched_tokens, checkpoint_tokens, replay_tokens };
            let taken = Planner::MinCompute.choose(&Candidates::new(&lookup));
            assert_eq!(taken, expected, "{lookup:?}");
            assert_eq!(Explain::of(&lookup, &taken, 19_968, Explain::NoBlock), why, "{lookup:?}");
        }
    }

    #[test]
    fn a_prompt_of_one_block_is_never_adopted_whole() {
        let lookup = Lookup { prompt_tokens: 128, matched_tokens: 0, checkpoint_tokens: 0, replay_tokens: None };
        let taken = Planner::MinCompute.choose(&Candidates::new(&lookup));
        assert_eq!((taken, Explain::of(&lookup, &taken, 0, Explain::NoBlock)), (plan(128, 0, 0), Explain::Short));
    }
}
