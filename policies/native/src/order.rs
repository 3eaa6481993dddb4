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

/// Where the class of a rank begins: two bits, which leaves room for nanoseconds since 1970.
const CLASS_SHIFT: u32 = 62;
/// What is not class in a rank.
const WITHIN_CLASS: u64 = (1 << CLASS_SHIFT) - 1;

/// The rank that stands at `within` in a class from 0 to 3: every rank of a class is below those of the next.
#[inline]
pub const fn ranked(class: u64, within: u64) -> u64 {
    class << CLASS_SHIFT | if within < WITHIN_CLASS { within } else { WITHIN_CLASS }
}

/// The class of a rank, and where it stands in it.
#[inline]
pub const fn unranked(rank: u64) -> (u64, u64) {
    (rank >> CLASS_SHIFT, rank & WITHIN_CLASS)
}

/// The entries of one class.
#[derive(Clone, Debug)]
struct Row {
    first: u32,
    last: u32,
    between: RankHeap<u64>,
}

/// Entries by rank, lowest first; among equal ranks the lowest id. Ids are dense. With more than one class, each has a first of its
/// own.
///
/// Memory: 16 bytes per id, and for each class 4 per id and 16 per entry that was in its heap.
#[derive(Clone, Debug)]
pub struct Order<const CLASSES: usize = 1> {
    nodes: Vec<Node>,
    rows: [Row; CLASSES],
}

impl<const CLASSES: usize> Default for Order<CLASSES> {
    fn default() -> Self {
        let empty = || Row { first: NONE, last: NONE, between: RankHeap::new() };
        Self { nodes: Vec::new(), rows: core::array::from_fn(|_| empty()) }
    }
}

impl<const CLASSES: usize> Order<CLASSES> {
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
        let row = &mut self.rows[class_of::<CLASSES>(rank)];
        let Row { first, last, .. } = *row;
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
                row.between.set(id, rank);
                return;
            }
        };
        self.nodes[id as usize] = Node { rank, prev, next };
        if prev == NONE {
            row.first = id;
        }
        if next == NONE {
            row.last = id;
        }
    }

    /// Takes an admitted id out, if it is in. It keeps its rank.
    #[inline]
    pub fn remove(&mut self, id: u32) {
        let Node { rank, prev, next } = self.nodes[id as usize];
        let row = &mut self.rows[class_of::<CLASSES>(rank)];
        match prev {
            ABSENT => return,
            IN_HEAP => {
                row.between.remove(id);
            }
            _ => {
                match prev {
                    NONE => row.first = next,
                    _ => self.nodes[prev as usize].next = next,
                }
                match next {
                    NONE => row.last = prev,
                    _ => self.nodes[next as usize].prev = prev,
                }
            }
        }
        self.nodes[id as usize].prev = ABSENT;
    }

    /// The id with the lowest rank of a class.
    #[inline]
    pub fn first_of(&self, class: usize) -> Option<u32> {
        let row = &self.rows[class];
        let between = row.between.first();
        if row.first == NONE {
            return between.map(|(_, id)| id);
        }
        let listed = (self.nodes[row.first as usize].rank, row.first);
        match between {
            Some(entry) if entry < listed => Some(entry.1),
            _ => Some(listed.1),
        }
    }

    /// The id with the lowest rank.
    #[inline]
    pub fn first(&self) -> Option<u32> {
        (0..CLASSES).find_map(|class| self.first_of(class))
    }
}

/// Where the entries of a rank stand. Without classes all bits of a rank are its place.
#[inline]
const fn class_of<const CLASSES: usize>(rank: u64) -> usize {
    if CLASSES == 1 { 0 } else { (rank >> CLASS_SHIFT) as usize % CLASSES }
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
            let (mut order, mut model) = (Order::<1>::default(), BTreeSet::new());
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
