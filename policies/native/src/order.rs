//! The order of what may go: by rank, then by id.
//!
//! Ranks are times or numbers of insertion, so nearly every entry comes in at one of two ends: what was used just now is last, and the
//! parent of what went first is first. A list takes those in constant time, whatever the number of entries. A heap takes what
//! belongs in between: entries of a hand-over, and what was pinned for a while.

use alloc::vec::Vec;

use reprise_core::tree::RankHeap;

/// No neighbour: an end of the list.
const NONE: u32 = u32::MAX;
/// In place of `prev`: the entry is in the heap.
const IN_HEAP: u32 = u32::MAX - 1;
/// In place of `prev`: the entry is not in the order.
const ABSENT: u32 = u32::MAX - 2;

#[derive(Clone, Copy, Debug)]
struct Node {
    rank: u64,
    prev: u32,
    next: u32,
}

/// Entries by rank, lowest first; among equal ranks the lowest id. Ids are dense.
///
/// Memory: 16 bytes per id, and 20 per id that was in the heap.
#[derive(Clone, Debug)]
pub struct Order {
    nodes: Vec<Node>,
    first: u32,
    last: u32,
    between: RankHeap<u64>,
}

impl Default for Order {
    fn default() -> Self {
        Self { nodes: Vec::new(), first: NONE, last: NONE, between: RankHeap::new() }
    }
}

impl Order {
    /// Makes room for ids below `ids`, so that none of them has to wait for others to be moved.
    pub fn reserve(&mut self, ids: usize) {
        self.nodes.reserve_exact(ids.saturating_sub(self.nodes.len()));
    }

    /// Knows of `id` from now on; it has no rank yet and is not in the order.
    #[inline]
    pub fn admit(&mut self, id: u32) {
        if self.nodes.len() <= id as usize {
            self.nodes.resize(id as usize + 1, Node { rank: 0, prev: ABSENT, next: NONE });
        } else {
            self.remove(id);
        }
    }

    /// The rank of an admitted id, whether it is in the order or not.
    #[inline]
    pub fn rank(&self, id: u32) -> u64 {
        self.nodes[id as usize].rank
    }

    /// Gives an admitted id that is not in the order another rank.
    #[inline]
    pub fn note(&mut self, id: u32, rank: u64) {
        self.nodes[id as usize].rank = rank;
    }

    /// Puts an admitted id in, or gives it another rank.
    #[inline]
    pub fn set(&mut self, id: u32, rank: u64) {
        self.remove(id);
        let Self { first, last, .. } = *self;
        let (prev, next) = match last {
            NONE => (NONE, NONE),
            _ if (self.nodes[last as usize].rank, last) < (rank, id) => {
                self.nodes[last as usize].next = id;
                (last, NONE)
            }
            _ if (rank, id) < (self.nodes[first as usize].rank, first) => {
                self.nodes[first as usize].prev = id;
                (NONE, first)
            }
            _ => {
                self.nodes[id as usize] = Node { rank, prev: IN_HEAP, next: NONE };
                self.between.set(id, rank);
                return;
            }
        };
        self.nodes[id as usize] = Node { rank, prev, next };
        if prev == NONE {
            self.first = id;
        }
        if next == NONE {
            self.last = id;
        }
    }

    /// Takes an admitted id out, if it is in. It keeps its rank.
    #[inline]
    pub fn remove(&mut self, id: u32) {
        let Node { prev, next, .. } = self.nodes[id as usize];
        match prev {
            ABSENT => return,
            IN_HEAP => {
                self.between.remove(id);
            }
            _ => {
                match prev {
                    NONE => self.first = next,
                    _ => self.nodes[prev as usize].next = next,
                }
                match next {
                    NONE => self.last = prev,
                    _ => self.nodes[next as usize].prev = prev,
                }
            }
        }
        self.nodes[id as usize].prev = ABSENT;
    }

    /// The id with the lowest rank.
    #[inline]
    pub fn first(&self) -> Option<u32> {
        let between = self.between.first();
        if self.first == NONE {
            return between.map(|(_, id)| id);
        }
        let listed = (self.nodes[self.first as usize].rank, self.first);
        match between {
            Some(entry) if entry < listed => Some(entry.1),
            _ => Some(listed.1),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Ranks that mostly rise, as time does, with ties and steps back.
        #[test]
        fn no_entry_stands_elsewhere_than_by_rank_and_id(
            steps in prop::collection::vec((0..20_u32, 0..8_u8, 0..4_u64), 1..300),
        ) {
            let (mut order, mut model) = (Order::default(), BTreeSet::new());
            (0..20).for_each(|id| order.admit(id));
            let mut now = 100;
            for (id, what, step) in steps {
                model.retain(|&(_, other)| other != id);
                match what {
                    0 => order.remove(id),
                    1 => order.admit(id),
                    2 => {
                        order.remove(id);
                        order.note(id, now);
                        prop_assert_eq!(order.rank(id), now);
                    }
                    _ => {
                        now += step;
                        let rank = if what == 3 { now - 10 * step } else { now };
                        order.set(id, rank);
                        model.insert((rank, id));
                    }
                }
                prop_assert_eq!(order.first(), model.first().map(|&(_, id)| id));
            }
            while let Some((rank, id)) = model.pop_first() {
                prop_assert_eq!((order.first(), order.rank(id)), (Some(id), rank));
                order.remove(id);
            }
            prop_assert_eq!(order.first(), None);
        }
    }
}
