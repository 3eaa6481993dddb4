//! How one budget is divided between `history` and `window`.
//!
//! The share of windows is searched for, per policy and budget, in thousandths of the budget. The eight shares of [`COARSE`] come first. Then,
//! round by round, the middle between the best share so far and each of its neighbours, until both are nearer than
//! [`resolution`]. The best saves most tokens; among equals it writes fewer bytes, and among equals again leaves more to the history. What
//! is tried next depends on nothing but what earlier rounds gave: not on threads, and not on what a journal holds already.
//!
//! `auto` is not searched for: the cache divides its budget while it runs ([`reprise::DivisionReport`]), and nobody tells it how.
//!
//! Saved tokens are not promised to have one peak, so this may miss a narrow one between two coarse shares. It never reports less than the
//! best it tried, and says which that was.

use std::{cmp::Reverse, collections::BTreeMap};

use reprise::Shape;
use serde::{Deserialize, Serialize};

/// Shares of windows that are tried first, in thousandths of the budget.
pub const COARSE: [u32; 8] = [0, 20, 50, 100, 200, 400, 600, 800];

/// Thousandths of a whole.
const WHOLE: u32 = 1000;

/// How the share of a cell is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Division {
    /// There is one group only, or nothing is kept in the other.
    Undivided,
    /// This share of windows, in thousandths.
    Given(u32),
    /// Searched for.
    Searched,
    /// Learned by the cache while it runs, which takes one replay.
    Learned,
}

/// What a share is worth: more saved tokens, then fewer bytes written.
pub type Worth = (u64, Reverse<u64>);

impl Division {
    /// Shares to try next, ascending, when `tried` is what all rounds before gave; none when the search is over. `admits` says whether a
    /// share leaves room for a record in each part.
    pub fn next(self, tried: &BTreeMap<u32, Worth>, admits: impl Fn(u32) -> bool) -> Vec<u32> {
        match self {
            Self::Undivided | Self::Learned if tried.is_empty() => vec![0],
            Self::Given(share) if tried.is_empty() => vec![share],
            Self::Undivided | Self::Learned | Self::Given(_) => Vec::new(),
            Self::Searched if tried.is_empty() => COARSE.into_iter().filter(|&share| admits(share)).collect(),
            Self::Searched => {
                let Some(best) = best(tried) else { return Vec::new() };
                let below = tried.range(..best).next_back().map(|(&share, _)| share);
                let above = tried.range(best + 1..).next().map(|(&share, _)| share);
                let middle = |other: u32| {
                    (best.abs_diff(other) > resolution(best))
                        .then_some(best.midpoint(other))
                        .filter(|&share| admits(share))
                };
                [below, above].into_iter().flatten().filter_map(middle).collect()
            }
        }
    }
}

/// The best of the shares tried.
pub fn best(tried: &BTreeMap<u32, Worth>) -> Option<u32> {
    tried.iter().max_by_key(|&(&share, &worth)| (worth, Reverse(share))).map(|(&share, _)| share)
}

/// How near a neighbour of the best share has to be: an eighth of it, and never under a hundredth of the budget.
pub fn resolution(best: u32) -> u32 {
    (best / 8).max(10)
}

/// The quotas of both groups: windows have `share` thousandths of `budget_bytes`, the drafts beside them included.
pub fn quotas(budget_bytes: u64, share: u32, shape: &Shape) -> (u64, u64) {
    let part = (u128::from(budget_bytes) * u128::from(share) / u128::from(WHOLE)) as u64;
    let Some(window) = &shape.window else { return (budget_bytes, 0) };
    let draft_slot = shape.draft.as_ref().map_or(0, |draft| draft.slot_bytes);
    let checkpoints = part / (window.slot_bytes + draft_slot);
    (budget_bytes - part, checkpoints * window.slot_bytes)
}

/// Whether a share leaves room for a record in each part; windows may also have nothing at all.
pub fn admits(budget_bytes: u64, share: u32, shape: &Shape) -> bool {
    let (history, window) = quotas(budget_bytes, share, shape);
    history >= shape.history.slot_bytes && (share == 0 || window > 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use reprise::Config;

    use super::*;

    fn shape(model: &str) -> Shape {
        Shape::new(&Config::new(model).unwrap().model, 128, 0, 0).unwrap()
    }

    /// Searches with `worth` for what a share gives. Returns the best and all that was tried.
    fn search(worth: impl Fn(u32) -> Worth) -> (u32, BTreeMap<u32, Worth>) {
        let mut tried = BTreeMap::new();
        loop {
            let next = Division::Searched.next(&tried, |_| true);
            if next.is_empty() {
                return (best(&tried).unwrap(), tried);
            }
            for share in next {
                assert_eq!(tried.insert(share, worth(share)), None, "{share} was tried before");
            }
        }
    }

    proptest! {
        #[test]
        fn a_lone_peak_is_not_missed(peak in 0..=800_u32) {
            let (found, tried) = search(|share| (1_000 - u64::from(share.abs_diff(peak)), Reverse(0)));
            prop_assert!(found.abs_diff(peak) <= resolution(found), "{} for {}", found, peak);
            prop_assert!(tried.len() <= 24, "{} replays", tried.len());
        }

        #[test]
        fn no_share_that_was_tried_is_better_than_the_one_reported(values in prop::collection::vec((0..4_u64, 0..4_u64), 1001)) {
            let worth = |share: u32| (values[share as usize].0, Reverse(values[share as usize].1));
            let (found, tried) = search(worth);
            prop_assert!(tried.iter().all(|(_, &other)| other <= worth(found)));
        }
    }

    #[test]
    fn equal_tokens_are_not_bought_with_more_writes() {
        let (found, _) = search(|share| (7, Reverse(u64::from(share.abs_diff(200)))));
        assert_eq!(found, 200);
        let (found, _) = search(|_| (7, Reverse(7)));
        assert_eq!(found, 0, "all equal: everything to the history");
    }

    #[test]
    fn a_share_without_room_for_a_record_is_not_replayed() {
        let shape = shape("v4-pro");
        let window = shape.window.as_ref().unwrap().slot_bytes;
        let budget = 4 * window;
        assert!(admits(budget, 0, &shape) && admits(budget, 500, &shape));
        assert!(!admits(budget, 200, &shape), "less than one checkpoint");
        assert!(!admits(budget, 1000, &shape), "no block");
        let next = Division::Searched.next(&BTreeMap::new(), |share| admits(budget, share, &shape));
        assert_eq!(next, [0, 400, 600, 800]);
    }

    #[test]
    fn drafts_do_not_come_on_top_of_the_budget() {
        let shape = shape("v4-flash:draft=on");
        let (window, draft) = (shape.window.as_ref().unwrap().slot_bytes, shape.draft.as_ref().unwrap().slot_bytes);
        let budget = 1 << 30;
        for share in [0, 1, 250, 999, 1000] {
            let (history_quota, window_quota) = quotas(budget, share, &shape);
            let checkpoints = window_quota / window;
            assert_eq!(window_quota % window, 0);
            assert!(history_quota + checkpoints * (window + draft) <= budget, "{share}");
        }
        assert_eq!(quotas(budget, 300, &shape).0, budget - 300 * budget / 1000);
    }
}
