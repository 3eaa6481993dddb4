//! A pool that is closed under prefixes: only leaves go, in some order, and what was found of the request in hand stays.

use reprise_core::tree::RankHeap;

use super::{Pool, Served, order::Order, paths::ROOT};

/// A pool that evicts leaves in the order `O`.
pub(super) struct Leaves<'a, O> {
    capacity: u32,
    resident: u32,
    was_full: bool,
    parents: &'a [u32],
    blocks: Vec<Block>,
    /// Every resident leaf that may go, by rank.
    leaves: RankHeap<u64>,
    order: O,
    marks: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Block {
    /// Resident children; [`Block::ABSENT`] if the block itself is not resident.
    children: u32,
    mark: u32,
}

impl Block {
    const ABSENT: u32 = u32::MAX;

    fn is_resident(self) -> bool {
        self.children != Self::ABSENT
    }
}

impl<'a, O: Order> Leaves<'a, O> {
    /// An empty pool for at most `capacity` (not 0) of the blocks that `parents` tells of.
    pub(super) fn new(capacity: u32, parents: &'a [u32], order: O) -> Self {
        let blocks = vec![Block { children: Block::ABSENT, mark: 0 }; parents.len()];
        let (leaves, marks) = (RankHeap::new(), Vec::new());
        Self { capacity, resident: 0, was_full: false, parents, blocks, leaves, order, marks }
    }

    /// Inserts the blocks of `path` behind `tip`, the last that was found ([`ROOT`] if none was). Stops at the first for which no leaf
    /// makes room. Returns how many came in.
    ///
    /// The simulator protects what was found, not what is being inserted. So if the block inserted just before is the only leaf that
    /// may go, it does go, and as the new block has lost its parent, insertion ends with one block less than there was
    /// room for. (Furthest-use order never comes to this: a child is not used before its parent.)
    fn insert(&mut self, path: &[u32], found: usize, mut tip: u32) -> usize {
        let mut written = 0;
        for (index, &block) in path.iter().enumerate().skip(found) {
            let mark = self.marks[index];
            if self.resident == self.capacity {
                match self.evict(mark) {
                    Some(victim) if victim != tip => {}
                    _ => break,
                }
            }
            self.blocks[block as usize] = Block { children: 0, mark };
            self.resident += 1;
            self.was_full |= self.resident == self.capacity;
            if tip != ROOT {
                self.blocks[tip as usize].children += 1;
            }
            // The tip is a leaf no more. If it is the root or the protected block, it was not among the leaves, unless the
            // eviction just now took its last child.
            self.leaves.replace(tip, block, O::rank(block, mark));
            tip = block;
            written += 1;
        }
        written
    }

    /// Evicts the first leaf in order for a block marked `new_mark`, and returns which it was.
    fn evict(&mut self, new_mark: u32) -> Option<u32> {
        let (_, victim) = self.leaves.first()?;
        if !O::yields(self.blocks[victim as usize].mark, new_mark) {
            return None;
        }
        self.blocks[victim as usize].children = Block::ABSENT;
        self.resident -= 1;
        let parent = self.parents[victim as usize];
        let becomes_leaf = parent != ROOT && {
            let children = &mut self.blocks[parent as usize].children;
            *children -= 1;
            *children == 0
        };
        if becomes_leaf {
            self.leaves.replace(victim, parent, O::rank(parent, self.blocks[parent as usize].mark));
        } else {
            self.leaves.remove(victim);
        }
        Some(victim)
    }
}

impl<O: Order> Pool for Leaves<'_, O> {
    fn serve(&mut self, path: &[u32]) -> Served {
        let found = path.iter().take_while(|&&block| self.blocks[block as usize].is_resident()).count();
        self.order.mark(path.len(), &mut self.marks);
        for (&block, &mark) in path[..found].iter().zip(&self.marks) {
            self.blocks[block as usize].mark = mark;
        }
        // Of what was found only the end can be a leaf. Keeping it out of the order until the path is in protects all of it.
        let protected = path[..found].last().copied().unwrap_or(ROOT);
        self.leaves.remove(protected);
        let written = self.insert(path, found, protected);
        if protected != ROOT && self.blocks[protected as usize].children == 0 {
            self.leaves.set(protected, O::rank(protected, self.blocks[protected as usize].mark));
        }
        Served { leading: found, hits: found, written }
    }

    fn was_full(&self) -> bool {
        self.was_full
    }
}
