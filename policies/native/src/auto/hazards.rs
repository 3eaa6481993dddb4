//! What is learned of reuse: the chance that a block is used in the next turn, by class and age, and what keeping it is worth.
//!
//! The *hazard* of a cell is uses over exposure, where exposure is one for each block and turn in it, resident or not: the life table of
//! actuaries. From the hazards h of the ages ahead follows the *worth* of keeping a block of age a,
//!
//! ```text
//! worth(a) = max over T of  P(used within T turns) / E(turns until it is used or T have passed)
//! ```
//!
//! uses per turn of a place in the cache if the block is dropped after T turns without a use. It is the Gittins index of the block seen as a
//! bandit (Gittins, "Bandit Processes and Dynamic Allocation Indices", 1979), and what LHD calls hit density (Beckmann, Chen, Cidon, "LHD",
//! 2018) with the best time to give up in place of an average one. Where the hazard falls with age, blocks go in the order of LRU; where it
//! first rises, as in chats whose users read before they answer, a young block is worth keeping until its time comes and no longer.

use alloc::{vec, vec::Vec};
use core::cmp::Reverse;

use super::ages::{BUCKETS, CELLS, CLASSES, cell, width};

/// One, in the fixed point of chances and worths.
pub const ONE: u64 = 1 << 32;

/// Bits of turns behind the point: with 20 before it for the longest age and one for the sum of all, products with a chance fit 64 bits.
const TURN_BITS: u32 = 12;

/// At first, a class is looked at every so many turns, one after the other.
const TURNS_AT_FIRST: u32 = 8;

/// Turns after which the looks become rarer: by then a few more uses change little.
const FIRST_TURNS: u32 = 1024;

/// From then on, a class is looked at every so many turns.
const TURNS_LATER: u32 = 32;

/// What a class has learned loses 1/32 at each later look: half of it in about 5,000 turns, so that it follows a workload that changes.
const DECAY_SHIFT: u32 = 5;

/// Hazards and what follows from them.
#[derive(Clone, Debug)]
pub struct Hazards {
    exposed: Vec<u64>,
    used: Vec<u64>,
    worth: Vec<u64>,
    /// For a block that is new in its class and given up at the end of a bucket: the chance of a use until then, and the turns it
    /// takes a place, in 2^-32.
    prospects: Vec<(u64, u64)>,
    /// Cells by worth, lowest first; among equals the oldest.
    order: Vec<u16>,
    /// Where each cell stands in it.
    ranks: Vec<u16>,
    turns: u32,
    next_class: u8,
}

impl Default for Hazards {
    fn default() -> Self {
        let mut hazards = Self {
            exposed: vec![0; CELLS],
            used: vec![0; CELLS],
            worth: vec![0; CELLS],
            prospects: vec![(0, 0); CELLS],
            order: (0..CELLS as u16).collect(),
            ranks: vec![0; CELLS],
            turns: 0,
            next_class: 0,
        };
        (0..CLASSES as u8).for_each(|class| hazards.sort(class));
        hazards
    }
}

impl Hazards {
    /// As many blocks were in this cell when a turn began, summed over turns.
    #[inline]
    pub fn expose(&mut self, cell: usize, blocks: u64) {
        self.exposed[cell] += blocks;
    }

    /// `blocks` of them were used in it.
    #[inline]
    pub fn note_use(&mut self, cell: usize, blocks: u64) {
        self.used[cell] += blocks;
    }

    /// Uses per turn that keeping a block of this cell brings, in 2^-32.
    #[inline]
    pub fn worth(&self, cell: usize) -> u64 {
        self.worth[cell]
    }

    /// The cell at a place in the order of worth, lowest first.
    #[inline]
    pub fn cell_at(&self, rank: usize) -> usize {
        self.order[rank] as usize
    }

    /// The place of a cell in that order.
    #[inline]
    pub fn rank(&self, cell: usize) -> usize {
        self.ranks[cell] as usize
    }

    /// Uses, in 2^-32, that a new block of this class brings at best beyond those of a block worth `worth` whose place it takes. Nothing if
    /// no use was ever seen in the class.
    pub fn gain(&self, class: u8, worth: u64) -> Option<i64> {
        let prospects = &self.prospects[cell(class, 0)..cell(class, 0) + BUCKETS];
        let gains = prospects.iter().take_while(|(_, turns)| *turns > 0).map(|&(uses, turns)| {
            // Turns are fewer than 2^21, which leaves 28 bits for what each is worth.
            uses as i64 - ((turns * (worth >> 4)) >> (TURN_BITS - 4)) as i64
        });
        gains.max()
    }

    /// A turn ends. Every few turns the figures of one class are to be looked at again, so that no turn has to pay for all: which,
    /// if it is time for that.
    pub fn end_turn(&mut self) -> Option<u8> {
        self.turns = self.turns.saturating_add(1);
        let between = if self.turns < FIRST_TURNS { TURNS_AT_FIRST } else { TURNS_LATER };
        if !self.turns.is_multiple_of(between) {
            return None;
        }
        let class = self.next_class;
        self.next_class = (class + 1) % CLASSES as u8;
        Some(class)
    }

    /// Looks at the figures of a class again. Changes the order.
    pub fn review(&mut self, class: u8) {
        self.look_at(class);
        self.sort(class);
    }

    fn look_at(&mut self, class: u8) {
        let table = LifeTable::of(|bucket| {
            let cell = cell(class, bucket);
            (self.used[cell], self.exposed[cell])
        });
        let cells = cell(class, 0)..cell(class, 0) + BUCKETS;
        self.prospects[cells.clone()].fill((0, 0));
        for (prospect, (uses, turns)) in self.prospects[cells.clone()].iter_mut().zip(table.prospects(0)) {
            *prospect = (uses, turns);
        }
        for bucket in 0..BUCKETS {
            self.worth[cell(class, bucket)] = table.worth(bucket);
        }
        if self.turns >= FIRST_TURNS {
            for cell in cells {
                self.exposed[cell] -= self.exposed[cell] >> DECAY_SHIFT;
                self.used[cell] -= self.used[cell] >> DECAY_SHIFT;
            }
        }
    }

    /// Where a cell stands among others. Among equals the oldest goes first: while nothing is known that is the order of LRU.
    fn place(&self, cell: u16) -> (u64, Reverse<usize>, usize) {
        let (class, bucket) = (cell as usize / BUCKETS, cell as usize % BUCKETS);
        (self.worth[cell as usize], Reverse(bucket), class)
    }

    /// Puts the cells of a class where they belong now; the others are in order.
    fn sort(&mut self, class: u8) {
        let first = cell(class, 0) as u16;
        let cells = first..first + BUCKETS as u16;
        let mut own: Vec<u16> = cells.clone().collect();
        own.sort_unstable_by_key(|&cell| self.place(cell));
        let mut others = self.order.iter().copied().filter(|cell| !cells.contains(cell)).peekable();
        let mut order = Vec::with_capacity(CELLS);
        for cell in own {
            let place = self.place(cell);
            while let Some(other) = others.next_if(|&other| self.place(other) < place) {
                order.push(other);
            }
            order.push(cell);
        }
        order.extend(others);
        for (rank, &cell) in order.iter().enumerate() {
            self.ranks[cell as usize] = rank as u16;
        }
        self.order = order;
    }

    /// Exposures and uses, 8 bytes each, little endian.
    pub fn save(&self) -> Vec<u8> {
        self.exposed.iter().chain(&self.used).flat_map(|count| count.to_le_bytes()).collect()
    }

    /// Takes what [`Self::save`] gave; `false` if it cannot be that.
    pub fn load(&mut self, bytes: &[u8]) -> bool {
        let (counts, rest) = bytes.as_chunks::<8>();
        if !rest.is_empty() || counts.len() != 2 * CELLS {
            return false;
        }
        // A count is halved until it can grow for ever without an overflow.
        let counts: Vec<u64> = counts.iter().map(|&count| u64::from_le_bytes(count) & (u64::MAX >> 8)).collect();
        let (exposed, used) = counts.split_at(CELLS);
        if used.iter().zip(exposed).any(|(used, exposed)| used > exposed) {
            return false;
        }
        self.exposed.copy_from_slice(exposed);
        self.used.copy_from_slice(used);
        (0..CLASSES as u8).for_each(|class| self.review(class));
        true
    }
}

/// The ages ahead of a new block, until the first of which nothing is known.
///
/// Chances are in 2^-32, turns in 2^-12, so that products fit 64 bits: a guest has no wider ones.
struct LifeTable {
    /// For each bucket: the chance to get through it unused, and the turns spent in it.
    stages: [(u64, u64); BUCKETS],
    known: usize,
}

impl LifeTable {
    /// From uses and exposure by bucket.
    fn of(counts: impl Fn(usize) -> (u64, u64)) -> Self {
        let mut table = Self { stages: [(ONE, 0); BUCKETS], known: 0 };
        for bucket in 0..BUCKETS {
            let (used, exposed) = counts(bucket);
            if exposed == 0 {
                break;
            }
            let excess = (u64::BITS - exposed.leading_zeros()).saturating_sub(31);
            let hazard = ((used >> excess) << 32) / ((exposed >> excess) + 1);
            let through = power(ONE - hazard.min(ONE), width(bucket));
            // The sum of (1 - h)^i over the ages of the bucket.
            let turns = ((ONE - through) << TURN_BITS).checked_div(hazard);
            table.stages[bucket] = (through, turns.unwrap_or(u64::from(width(bucket)) << TURN_BITS));
            table.known = bucket + 1;
        }
        table
    }

    /// For a block at the start of a bucket that is given up at the end of this one, the next, …: the chance of a use until then and the
    /// turns it takes a place.
    fn prospects(&self, from: usize) -> impl Iterator<Item = (u64, u64)> {
        let (mut alive, mut uses, mut turns) = (ONE, 0_u64, 0_u64);
        self.stages.get(from..self.known).unwrap_or_default().iter().map(move |&(through, stage_turns)| {
            uses += scaled(alive, ONE - through);
            turns += scaled(alive, stage_turns);
            alive = scaled(alive, through);
            (uses, turns)
        })
    }

    /// What keeping a block is worth at the start of a bucket.
    fn worth(&self, from: usize) -> u64 {
        let (mut best, mut least_turns) = (0, 1);
        for (uses, turns) in self.prospects(from) {
            // A quotient is only worked out for the best.
            if (uses >> 2) * least_turns > (best >> 2) * turns {
                (best, least_turns) = (uses, turns);
            }
        }
        (best << TURN_BITS).checked_div(least_turns).unwrap_or_default()
    }
}

/// `base` (at most one) to the power of `exponent`.
fn power(mut base: u64, mut exponent: u32) -> u64 {
    let mut result = ONE;
    while exponent > 0 {
        if exponent % 2 == 1 {
            result = scaled(result, base);
        }
        base = scaled(base, base);
        exponent /= 2;
    }
    result
}

/// A chance times a chance or turns: at most one times less than 2^32 times.
fn scaled(chance: u64, other: u64) -> u64 {
    if chance == ONE { other } else { (chance * other) >> 32 }
}
