//! In which order leaves go: by their last use, or by their next.

use super::paths::Paths;

/// An order of eviction. It gives each use of a block a *mark*; the mark of its latest use decides when a block goes.
pub(super) trait Order {
    /// Replaces `marks` by those of the next request's `blocks` blocks, first to last. Called once per request, in order.
    fn mark(&mut self, blocks: usize, marks: &mut Vec<u32>);

    /// The leaf with the smallest rank goes first.
    fn rank(block: u32, mark: u32) -> u64;

    /// Whether a leaf that is first in order may make room for a new block.
    fn yields(victim_mark: u32, new_mark: u32) -> bool;
}

/// Least recently used first. A mark is the time of a use, counted in blocks.
#[derive(Default)]
pub(super) struct LeastRecent {
    clock: u32,
}

impl Order for LeastRecent {
    fn mark(&mut self, blocks: usize, marks: &mut Vec<u32>) {
        let start = self.clock;
        self.clock += blocks as u32; // a trace has fewer than 2^32 ids
        marks.clear();
        marks.extend(start..self.clock);
    }

    fn rank(_block: u32, mark: u32) -> u64 {
        mark.into()
    }

    fn yields(_victim_mark: u32, _new_mark: u32) -> bool {
        true
    }
}

/// Furthest next use first. A mark is the number of the request that uses the block next; one beyond all if none does.
pub(super) struct FurthestUse {
    /// Along a path the next use never comes sooner further down, and seldom changes: runs of equal marks. A stack with the
    /// first request's first block on top.
    runs: Vec<Run>,
}

struct Run {
    mark: u32,
    blocks: u32,
}

impl FurthestUse {
    /// The order for exactly these paths.
    pub(super) fn new(paths: &Paths) -> Self {
        let never = paths.requests() as u32; // a trace has fewer than 2^32 requests
        let mut next = vec![never; paths.blocks() as usize];
        let mut runs: Vec<Run> = Vec::new();
        for request in (0..paths.requests()).rev() {
            let floor = runs.len();
            for block in paths.upwards(request) {
                let mark = std::mem::replace(&mut next[block as usize], request as u32);
                match runs[floor..].last_mut() {
                    Some(run) if run.mark == mark => run.blocks += 1,
                    _ => runs.push(Run { mark, blocks: 1 }),
                }
            }
        }
        Self { runs }
    }
}

impl Order for FurthestUse {
    fn mark(&mut self, blocks: usize, marks: &mut Vec<u32>) {
        marks.clear();
        while marks.len() < blocks {
            let run = self.runs.pop().expect("there are runs for every block of every request");
            marks.resize(marks.len() + run.blocks as usize, run.mark);
        }
    }

    fn rank(block: u32, mark: u32) -> u64 {
        !(u64::from(mark) << 32 | u64::from(block))
    }

    fn yields(victim_mark: u32, new_mark: u32) -> bool {
        victim_mark > new_mark
    }
}
