//! The last so many distinct keys, first in first out.
//!
//! Keys stand in a ring in order of first sight; a table says where. An entry of the table is 32 bits: how far it stands from its home,
//! as many bits of the key as are left, and the place in the ring plus one. The distance rules out most keys of other homes without a
//! look at the ring, and lets a removal close the gap without one, too.

use alloc::{vec, vec::Vec};

/// Bits for the distance from home.
const DISTANCE_BITS: u32 = 4;
const DISTANCE_SHIFT: u32 = 32 - DISTANCE_BITS;
/// Stands for itself and everything further away.
const FAR: usize = (1 << DISTANCE_BITS) - 1;
/// Keys that a place in the ring plus one has bits for.
const MOST_KEYS: u32 = (1 << DISTANCE_SHIFT) - 1;

/// Keys are parts of cryptographic digests and need no mixing.
///
/// Memory: 14 bytes per key of the limit, all of it taken at once: growing later would cost one unlucky request the move of all.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    limit: usize,
    /// A ring once it has `limit` keys.
    keys: Vec<u64>,
    /// Place in the ring of the oldest key.
    oldest: usize,
    /// Half as many entries again as keys: see the module. 0 is empty.
    table: Vec<u32>,
    place_bits: u32,
}

impl Seen {
    /// Remembers up to `limit` keys, 2^28 - 1 at most.
    pub fn new(limit: u32) -> Self {
        let limit = limit.min(MOST_KEYS) as usize;
        let table = vec![0; limit + limit / 2 + 1];
        let place_bits = usize::BITS - limit.leading_zeros();
        Self { limit, keys: Vec::with_capacity(limit), oldest: 0, table, place_bits }
    }

    /// The keys, the oldest first.
    pub fn keys(&self) -> impl Iterator<Item = u64> {
        let (newer, older) = self.keys.split_at(self.oldest);
        older.iter().chain(newer).copied()
    }

    /// Whether `key` is among the last ones.
    #[inline]
    pub fn contains(&self, key: u64) -> bool {
        if self.limit == 0 {
            return false;
        }
        let tag = self.tag(key);
        let (mut at, mut distance) = (self.home(key), 0);
        loop {
            let entry = self.table[at];
            if entry == 0 {
                return false;
            }
            if entry & !self.place_mask() == tag | stored(distance) && self.key_of(entry) == key {
                return true;
            }
            at = self.next(at);
            distance += 1;
        }
    }

    /// Remembers `key`, and forgets the oldest if there are too many.
    #[inline]
    pub fn insert(&mut self, key: u64) {
        if self.limit == 0 || self.contains(key) {
            return;
        }
        let place = if self.keys.len() < self.limit {
            self.keys.push(key);
            self.keys.len() - 1
        } else {
            let place = self.oldest;
            self.forget(place);
            self.keys[place] = key;
            self.oldest = if place + 1 == self.limit { 0 } else { place + 1 };
            place
        };
        let (mut at, mut distance) = (self.home(key), 0);
        while self.table[at] != 0 {
            at = self.next(at);
            distance += 1;
        }
        self.table[at] = stored(distance) | self.tag(key) | (place as u32 + 1);
    }

    /// Takes the key at `place` out of the table.
    fn forget(&mut self, place: usize) {
        let mut hole = self.home(self.keys[place]);
        while self.table[hole] & self.place_mask() != place as u32 + 1 {
            hole = self.next(hole);
        }
        // Whatever follows without a gap moves up, unless its home lies behind the hole.
        let (mut at, mut from_hole) = (self.next(hole), 1);
        loop {
            let entry = self.table[at];
            if entry == 0 {
                break;
            }
            let distance = self.distance(entry, at);
            if distance >= from_hole {
                self.table[hole] = stored(distance - from_hole) | entry << DISTANCE_BITS >> DISTANCE_BITS;
                hole = at;
                from_hole = 0;
            }
            at = self.next(at);
            from_hole += 1;
        }
        self.table[hole] = 0;
    }

    /// How far an entry that stands at `at` is from its home.
    fn distance(&self, entry: u32, at: usize) -> usize {
        match (entry >> DISTANCE_SHIFT) as usize {
            FAR => {
                let home = self.home(self.key_of(entry));
                if at >= home { at - home } else { at + self.table.len() - home }
            }
            distance => distance,
        }
    }

    #[inline]
    fn home(&self, key: u64) -> usize {
        (((key >> 32) * self.table.len() as u64) >> 32) as usize
    }

    #[inline]
    fn next(&self, at: usize) -> usize {
        if at + 1 == self.table.len() { 0 } else { at + 1 }
    }

    #[inline]
    fn place_mask(&self) -> u32 {
        (1 << self.place_bits) - 1
    }

    /// Bits of the key that its home does not tell, where an entry holds them.
    #[inline]
    fn tag(&self, key: u64) -> u32 {
        key as u32 >> self.place_bits << self.place_bits << DISTANCE_BITS >> DISTANCE_BITS
    }

    #[inline]
    fn key_of(&self, entry: u32) -> u64 {
        self.keys[(entry & self.place_mask()) as usize - 1]
    }
}

/// A distance from home, where an entry holds it.
#[inline]
fn stored(distance: usize) -> u32 {
    (distance.min(FAR) as u32) << DISTANCE_SHIFT
}

#[cfg(test)]
mod tests {
    use alloc::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Few homes, so that runs are long, wrap around and are broken up.
        #[test]
        fn nothing_is_forgotten_too_early_or_too_late(
            limit in 0..70_usize,
            names in prop::collection::vec((0..150_u64, 0..3_u64), 1..600),
        ) {
            let (mut seen, mut model) = (Seen::new(limit as u32), VecDeque::new());
            for (name, homes) in names {
                let key = match homes {
                    0 => name,
                    1 => u64::MAX - name,
                    _ => name.wrapping_mul(0x9e37_79b9_7f4a_7c15),
                };
                prop_assert_eq!(seen.contains(key), model.contains(&key));
                seen.insert(key);
                if !model.contains(&key) && limit > 0 {
                    if model.len() == limit {
                        model.pop_front();
                    }
                    model.push_back(key);
                }
                prop_assert!(seen.keys().eq(model.iter().copied()));
                prop_assert_eq!(seen.table.iter().filter(|&&entry| entry != 0).count(), model.len());
            }
            for name in 0..150 {
                for key in [name, u64::MAX - name] {
                    prop_assert_eq!(seen.contains(key), model.contains(&key));
                }
            }
        }
    }

    #[test]
    fn a_limit_of_all_bits_does_not_leave_a_place_without_a_number() {
        for limit in [1, 2, 3, 4, 255, 256, 257] {
            let mut seen = Seen::new(limit);
            for key in 0..u64::from(limit) + 5 {
                seen.insert(key.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            }
            assert_eq!(seen.keys().count(), limit as usize);
        }
    }
}
