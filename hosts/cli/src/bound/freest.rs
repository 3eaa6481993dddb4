//! The freest policy there is, by trying everything it could do: for traces of a handful of blocks.

use std::collections::HashMap;

use super::Room;

/// A request: its blocks, first to last, and how many of them may be hit.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// Numbers of blocks; a block is known by its whole path.
    pub path: Vec<usize>,
    pub usable: usize,
}

/// The rules it is bound by.
pub(super) struct Rules<'a> {
    /// The parent of each block.
    pub parents: &'a [Option<usize>],
    pub room: Room,
    pub block: u64,
    pub checkpoint: u64,
    /// Whether a block stays only while its parent does.
    pub closed: bool,
    /// What request `time`, from 0, saves with so many blocks found, of which so many end at or before a checkpoint.
    pub saves: &'a dyn Fn(usize, usize, usize) -> u64,
}

/// Sets of blocks and of checkpoints, as bits.
type Held = (u32, u32);

/// The most that can be saved. After each request any of what was there and of what it brought is kept, if it fits: more than a policy is
/// free to do, which may neither drop the path in hand nor place a checkpoint where it adopted.
pub(super) fn most_saved(requests: &[Request], rules: &Rules<'_>) -> u64 {
    let mut states = HashMap::from([((0, 0), 0_u64)]);
    for (time, request) in requests.iter().enumerate() {
        let brought = request.path.iter().fold(0, |set, &block| set | 1 << block);
        let mut next: HashMap<Held, u64> = HashMap::new();
        for (&(blocks, checkpoints), &saved) in &states {
            let found = request.path[..request.usable].iter().take_while(|&&block| blocks >> block & 1 == 1).count();
            let ends_at = |&count: &usize| checkpoints >> request.path[count - 1] & 1 == 1;
            let checkpoint = (1..=found).rev().find(ends_at).unwrap_or(0);
            let saved = saved + (rules.saves)(time, found, checkpoint);
            for kept in subsets(blocks | brought).filter(|&kept| rules.is_closed(kept)) {
                for kept_checkpoints in subsets((checkpoints | brought) & kept) {
                    if rules.fits(kept, kept_checkpoints) {
                        let best = next.entry((kept, kept_checkpoints)).or_default();
                        *best = saved.max(*best);
                    }
                }
            }
        }
        states = next;
    }
    states.into_values().max().unwrap_or(0)
}

impl Rules<'_> {
    fn fits(&self, blocks: u32, checkpoints: u32) -> bool {
        let blocks = u64::from(blocks.count_ones()) * self.block;
        let checkpoints = u64::from(checkpoints.count_ones()) * self.checkpoint;
        match self.room {
            Room::Together(bytes) => blocks + checkpoints <= bytes,
            Room::Apart { history, window } => blocks <= history && checkpoints <= window,
        }
    }

    fn is_closed(&self, blocks: u32) -> bool {
        let parent_held = |block: usize| self.parents[block].is_none_or(|parent| blocks >> parent & 1 == 1);
        !self.closed || (0..self.parents.len()).all(|block| blocks >> block & 1 == 0 || parent_held(block))
    }
}

/// All subsets, the empty one too.
fn subsets(of: u32) -> impl Iterator<Item = u32> {
    let mut next = Some(of);
    std::iter::from_fn(move || {
        let subset = next?;
        next = subset.checked_sub(1).map(|smaller| smaller & of);
        Some(subset)
    })
}
