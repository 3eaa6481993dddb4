//! Why a plan does not adopt more: a value for counters, one for each group, and a line for people.

use core::fmt;

use serde::{Deserialize, Serialize};

use super::{Candidate, Candidates, Cost, Lookup, Prices, RecordSizes};

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
    /// More could be adopted, but it would compute more, or take longer to load than to compute.
    Gate,
    /// A record that the plan counted on could not be read.
    Unreadable,
    /// The caller asked for no more.
    Limit,
}

impl Explain {
    /// All reasons, for counters.
    pub const ALL: [Self; 8] = [
        Self::Complete,
        Self::Short,
        Self::NoBlock,
        Self::Pending,
        Self::NoCheckpoint,
        Self::Gate,
        Self::Unreadable,
        Self::Limit,
    ];

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
            Self::Limit => "limit",
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
            Self::Gate => "a longer plan would cost more",
            Self::Unreadable => "a record could not be read",
            Self::Limit => "the caller asked for no more",
        })
    }
}

/// How far one group would carry a hit, and what ends it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Reach {
    /// Tokens up to which the group holds what a hit needs.
    pub tokens: u32,
    /// Why not further; [`Explain::Complete`] where another group ends the hit.
    pub why: Explain,
}

/// The exact plan that adopts the most, where it was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Refused {
    /// The plan.
    pub plan: Candidate,
    /// What it would have cost.
    pub cost: Cost,
}

/// Why a plan is not longer, by group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Explanation {
    /// What ends the hit.
    pub reason: Explain,
    /// The most that could be adopted of this prompt by anyone.
    pub may_adopt_tokens: u32,
    /// What the plan is.
    pub plan: Candidate,
    /// What it costs.
    pub cost: Cost,
    /// What computing the whole prompt would cost.
    pub prefill: Cost,
    /// The group of compressed entries.
    pub history: Reach,
    /// The group of windows; `None` for a model without.
    pub window: Option<Reach>,
    /// The group of draft windows; `None` with drafts off. Never further than `window`: a checkpoint without its drafts is none.
    pub draft: Option<Reach>,
    /// Z, the tokens that a replay computes again, if a replay may be planned.
    pub replay_tokens: Option<u32>,
    /// The longer plan that was refused because it would cost more.
    pub refused: Option<Refused>,
}

/// What [`Explanation::new`] needs beside what the planner knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Circumstances {
    /// The most that could be adopted.
    pub may_adopt_tokens: u32,
    /// What it means to adopt that much: [`Explain::Complete`], or [`Explain::Limit`] where the caller asked for no more.
    pub at_most: Explain,
    /// What is wrong with the block behind what was matched, if there could be one.
    pub beyond: Explain,
    /// Whether the model has windows.
    pub windows: bool,
    /// Whether the model has draft windows.
    pub drafts: bool,
}

impl Explanation {
    /// Explains why `taken` was planned for what `lookup` found.
    pub fn new(
        lookup: &Lookup,
        taken: &Candidate,
        circumstances: &Circumstances,
        prices: &Prices,
        sizes: &RecordSizes,
    ) -> Self {
        let Circumstances { may_adopt_tokens, at_most, beyond, windows, drafts } = *circumstances;
        let candidates = Candidates::new(lookup);
        let longest = candidates.as_slice().iter().max_by_key(|plan| plan.adopted_tokens);
        let refused = longest
            .filter(|plan| plan.adopted_tokens > taken.adopted_tokens)
            .map(|&plan| Refused { plan, cost: prices.cost(&plan, sizes) });
        let history_ends = match lookup.matched_tokens {
            _ if may_adopt_tokens == 0 && at_most == Explain::Complete => Explain::Short,
            matched if matched == may_adopt_tokens => at_most,
            _ => beyond,
        };
        let reason = match () {
            () if refused.is_some() => Explain::Gate,
            () if taken.adopted_tokens == lookup.matched_tokens => history_ends,
            () => Explain::NoCheckpoint,
        };
        let window_ends =
            if lookup.checkpoint_tokens == lookup.matched_tokens { Explain::Complete } else { Explain::NoCheckpoint };
        let window = Reach { tokens: lookup.checkpoint_tokens, why: window_ends };
        let prefill = candidates.as_slice()[0];
        Self {
            reason,
            may_adopt_tokens,
            plan: *taken,
            cost: prices.cost(taken, sizes),
            prefill: prices.cost(&prefill, sizes),
            history: Reach { tokens: lookup.matched_tokens, why: history_ends },
            window: windows.then_some(window),
            draft: drafts.then_some(window),
            replay_tokens: lookup.replay_tokens,
            refused,
        }
    }
}

/// Nanoseconds as milliseconds with one digit.
struct Milliseconds(u64);

impl fmt::Display for Milliseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = self.0.saturating_add(50_000) / 100_000;
        write!(f, "{}.{} ms", tenths / 10, tenths % 10)
    }
}

/// One line, for instance: `adopts 6400 of 19968 tokens: a longer plan would cost more; history reaches 12800, where the next block is
/// not resident; window reaches 6400, the last checkpoint; …`.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reason, may_adopt_tokens, plan, history, .. } = self;
        write!(f, "adopts {} of {may_adopt_tokens} tokens: {reason}", plan.adopted_tokens)?;
        if may_adopt_tokens == &0 {
            return Ok(());
        }
        write!(f, "; history reaches {}", history.tokens)?;
        if history.why != Explain::Complete {
            write!(f, ", where {}", history.why)?;
        }
        for (name, reach) in [("window", self.window), ("draft", self.draft)] {
            match reach {
                Some(Reach { tokens: 0, .. }) if history.tokens > 0 => write!(f, "; {name} has no checkpoint there")?,
                Some(Reach { tokens, .. }) => write!(f, "; {name} reaches {tokens}")?,
                None => {}
            }
        }
        if let Some(Refused { plan: longer, cost }) = self.refused {
            let how = if longer.replayed_tokens > 0 { "with a replay" } else { "from the checkpoint" };
            write!(
                f,
                "; adopting {} {how} would compute {} tokens in {}, this computes {} in {}",
                longer.adopted_tokens,
                longer.computed_tokens,
                Milliseconds(cost.total_ns()),
                plan.computed_tokens,
                Milliseconds(self.cost.total_ns()),
            )?;
        } else if let Some(tokens) = self.replay_tokens.filter(|_| *reason == Explain::NoCheckpoint) {
            write!(f, "; a replay computes {tokens} tokens again and pays behind more than that")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    const SIZES: RecordSizes =
        RecordSizes { block_tokens: 128, block_bytes: 644_024, checkpoint_bytes: 5_174_272, checkpoint_records: 1 };

    fn explain(matched_tokens: u32, checkpoint_tokens: u32, replay_tokens: Option<u32>) -> Explanation {
        let lookup = Lookup { prompt_tokens: 20_000, matched_tokens, checkpoint_tokens, replay_tokens };
        let taken = Candidates::new(&lookup).min_compute();
        let circumstances = Circumstances {
            may_adopt_tokens: 19_968,
            at_most: Explain::Complete,
            beyond: Explain::NoBlock,
            windows: true,
            drafts: false,
        };
        Explanation::new(&lookup, &taken, &circumstances, &Prices::default(), &SIZES)
    }

    #[test]
    fn a_short_hit_does_not_go_unexplained() {
        const Z: Option<u32> = Some(7_808);
        for (matched, checkpoint, replay, reason, history, window) in [
            (0, 0, Z, Explain::NoBlock, Explain::NoBlock, Explain::Complete),
            (6_400, 0, Z, Explain::NoCheckpoint, Explain::NoBlock, Explain::NoCheckpoint),
            (7_936, 0, Z, Explain::NoBlock, Explain::NoBlock, Explain::NoCheckpoint),
            (12_800, 6_400, Z, Explain::Gate, Explain::NoBlock, Explain::NoCheckpoint),
            (12_800, 4_864, Z, Explain::NoBlock, Explain::NoBlock, Explain::NoCheckpoint),
            (12_800, 4_864, None, Explain::NoCheckpoint, Explain::NoBlock, Explain::NoCheckpoint),
            (19_968, 19_968, Z, Explain::Complete, Explain::Complete, Explain::Complete),
        ] {
            let explanation = explain(matched, checkpoint, replay);
            let found = (explanation.reason, explanation.history.why, explanation.window.map(|window| window.why));
            assert_eq!(found, (reason, history, Some(window)), "{explanation}");
        }
    }

    #[test]
    fn a_line_does_not_leave_out_which_group_ends_the_hit() {
        for (explanation, line) in [
            (
                explain(12_800, 6_400, Some(7_808)),
                "adopts 6400 of 19968 tokens: a longer plan would cost more; history reaches 12800, where the next block is not \
                 resident; window reaches 6400; adopting 12800 with a replay would compute 15008 tokens in 375.3 ms, this computes \
                 13600 in 309.2 ms",
            ),
            (
                explain(6_400, 0, Some(7_808)),
                "adopts 0 of 19968 tokens: no checkpoint lies further on; history reaches 6400, where the next block is not \
                 resident; window has no checkpoint there; a replay computes 7808 tokens again and pays behind more than that",
            ),
            (
                explain(19_968, 19_968, None),
                "adopts 19968 of 19968 tokens: everything that may be adopted is; history reaches 19968; window reaches 19968",
            ),
        ] {
            assert_eq!(explanation.to_string(), line);
        }
    }

    #[test]
    fn a_prompt_of_one_block_is_never_adopted_whole() {
        let lookup = Lookup { prompt_tokens: 128, matched_tokens: 0, checkpoint_tokens: 0, replay_tokens: None };
        let taken = Candidates::new(&lookup).min_compute();
        let circumstances = Circumstances {
            may_adopt_tokens: 0,
            at_most: Explain::Complete,
            beyond: Explain::NoBlock,
            windows: true,
            drafts: true,
        };
        let explanation = Explanation::new(&lookup, &taken, &circumstances, &Prices::default(), &SIZES);
        assert_eq!((taken.adopted_tokens, explanation.reason), (0, Explain::Short));
        assert_eq!(
            explanation.to_string(),
            "adopts 0 of 0 tokens: the prompt has no complete block that may be adopted"
        );
    }
}
