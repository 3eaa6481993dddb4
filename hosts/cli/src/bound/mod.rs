//! What no policy can do better: upper bounds for the tokens that a cache of a given size saves on a trace.
//!
//! [`saved_tokens`] is for typed caches, [`untyped_hit_tokens`] for the replay without types. Both hold for every policy, online or
//! offline: whatever is admitted, evicted and kept as a checkpoint, and however a budget is split, even anew at every request.
//!
//! # Why nothing can be above it
//!
//! *What a saving needs.* Let requests be numbered from 1, and let gap g lie between requests g and g + 1. A block enters a cache only
//! with a request whose prompt has it. So a block that request t finds has been there in every gap since s, the latest request before
//! t whose prompt had it: it takes its slot in the gaps s .. t - 1. The same is true of a checkpoint: only a request whose path
//! leads past its position places it, so one that request t goes on from takes its slot in all gaps since the latest use of the
//! block it ends. By the rules of a replay, request t saves k·B tokens if it finds its first k blocks and the checkpoint at their
//! end, or k·B - Z if it finds them and replays. Call the gaps that this takes, times bytes, the cost of an option of t. Different
//! requests never pay for the same thing: what t needs of a block are the gaps between two uses in sequence, the second being t's.
//!
//! *What there is.* In no gap do slots take more than the budget. Whatever a policy does, the options that its requests take
//! satisfy this in every gap.
//!
//! *The bound.* Put a price of λ(g) ≥ 0 tokens on a byte in gap g. Then, with v the saving and c the cost of the option that a
//! request takes,
//!
//! ```text
//! Σ v  ≤  Σ v + Σ λ(g)·(budget - bytes taken in g)  =  Σ λ(g)·budget + Σ (v - c at prices λ)
//!      ≤  Σ λ(g)·budget + Σ over requests of the best (v - c at prices λ), or 0
//! ```
//!
//! The last line does not speak of the policy any more: it is a bound, for *any* prices. (It is the Lagrangian dual of the packing
//! of intervals into the room that there is; with one price for all gaps it is the bound PFOO-L of Berger, Beckmann and
//! Harchol-Balter, *Practical Bounds on Optimal Caching with Variable Object Sizes*, 2018, there solved by taking intervals by value
//! per cost until the room is used up.) Prices are integers, in units of 2^-50 tokens, and the sum is exact: rounding does not
//! lower it.
//!
//! *Good prices* are looked for: one for all gaps by bisection; then one per slice of time, raised where more is asked for
//! than there is and lowered where less. Gaps where everything that will ever be asked for again fits are free from the start. A search
//! that ends early gives a bound that is higher, never one that is wrong.
//!
//! At fixed prices the bound is a line: so much, and so much more per byte of budget. [`Bound`] keeps the best lines of all budgets
//! that were asked about and answers with the lowest. So a larger budget never has a lower bound, budgets in between have one,
//! and the line at prices of 0 is the compulsory limit: what is saved if nothing is ever evicted.
//!
//! # What it leaves out
//!
//! That a block goes only after those behind it, that a checkpoint goes with its block, that a request cannot place a checkpoint where it
//! adopted, and that options are whole: a fraction of a request may be served. What a policy could do lies below the bound by that
//! much at least.

mod demand;
mod prices;
mod typed;
mod untyped;
mod uses;

#[cfg(test)]
mod freest;
#[cfg(test)]
mod tests;

use prices::Line;

pub use typed::{Terms, saved_tokens};
pub use untyped::untyped_hit_tokens;

/// Room for records, in bytes of slots; in blocks for a replay without types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// One budget for blocks and checkpoints, split as a policy likes.
    Together(u64),
    /// A quota for each.
    Apart {
        /// For blocks.
        history: u64,
        /// For checkpoints.
        window: u64,
    },
}

/// Upper bounds for what can be saved on one trace, for any room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Requests that were looked at.
    pub requests: u64,
    /// Tokens of their prompts. For a replay without types: of the measured ones, as its rules weigh blocks.
    pub prompt_tokens: u64,
    lines: Vec<Line>,
}

impl Bound {
    /// Tokens that no policy saves more of in `room`. Tight, as far as it goes, for the rooms that were asked about; valid for all.
    pub fn tokens(&self, room: Room) -> u64 {
        self.lines.iter().map(|line| line.tokens(room)).min().unwrap_or(self.prompt_tokens)
    }

    /// Tokens that are saved if nothing is ever evicted and every position has a checkpoint.
    pub fn unlimited_tokens(&self) -> u64 {
        self.tokens(Room::Together(u64::MAX))
    }
}
