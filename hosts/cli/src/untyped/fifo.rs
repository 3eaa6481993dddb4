//! First in, first out: any block goes, and nothing is protected.

use std::collections::VecDeque;

use super::{Pool, Served};

/// A pool that evicts in order of insertion.
pub(super) struct Fifo {
    capacity: usize,
    /// Every resident block, the one inserted first in front.
    queue: VecDeque<u32>,
    resident: Vec<bool>,
    was_full: bool,
}

impl Fifo {
    /// An empty pool for at most `capacity` (not 0) of the blocks below `blocks`.
    pub(super) fn new(capacity: u32, blocks: u32) -> Self {
        let resident = vec![false; blocks as usize];
        Self { capacity: capacity as usize, queue: VecDeque::new(), resident, was_full: false }
    }
}

impl Pool for Fifo {
    fn serve(&mut self, path: &[u32]) -> Served {
        let found = path.iter().take_while(|&&block| self.resident[block as usize]).count();
        let mut written = 0;
        for &block in &path[found..] {
            // A block may have outlived its parent, and may be evicted by the blocks above it before its own turn comes.
            if self.resident[block as usize] {
                continue;
            }
            if self.queue.len() == self.capacity
                && let Some(victim) = self.queue.pop_front()
            {
                self.resident[victim as usize] = false;
            }
            self.queue.push_back(block);
            self.resident[block as usize] = true;
            written += 1;
            self.was_full |= self.queue.len() == self.capacity;
        }
        Served { leading: found, hits: found, written }
    }

    fn was_full(&self) -> bool {
        self.was_full
    }
}
