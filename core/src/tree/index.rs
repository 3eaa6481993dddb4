//! From a name to an id: a table of fixed size without tombstones, so that no look-up, insertion or removal ever pays for moving
//! the others.
//!
//! Open addressing with linear probing; a removal shifts back what follows. An entry holds 32 bits of the hash, which give its home
//! and all but rule out looking at a node in vain. Hashes are parts of cryptographic digests and need no mixing.

use alloc::{vec, vec::Vec};

/// Ids by hash, at most as many as it was made for. Equality is the caller's: the table never sees a name.
#[derive(Clone, Debug)]
pub struct Index {
    /// High half: upper 32 bits of the hash. Low half: id + 1; 0 for an empty entry.
    entries: Vec<u64>,
    shift: u32,
}

impl Index {
    /// A table for `capacity` ids: 8 bytes for each of a power of two that is at least 3/2 of that.
    pub fn new(capacity: u32) -> Self {
        let entries = (u64::from(capacity) * 3 / 2 + 2).next_power_of_two();
        let shift = 32_u32.saturating_sub(entries.trailing_zeros());
        Self { entries: vec![0; entries as usize], shift }
    }

    fn home(&self, entry: u64) -> usize {
        let place = (entry >> 32) >> self.shift;
        place as usize & (self.entries.len() - 1)
    }

    fn next(&self, place: usize) -> usize {
        (place + 1) & (self.entries.len() - 1)
    }

    /// The id under `hash` that `is_same` says is the one.
    #[inline]
    pub fn find(&self, hash: u64, is_same: impl Fn(u32) -> bool) -> Option<u32> {
        let tag = hash >> 32;
        let mut place = self.home(hash);
        loop {
            let entry = self.entries[place];
            if entry == 0 {
                return None;
            }
            let id = (entry as u32).wrapping_sub(1);
            if entry >> 32 == tag && is_same(id) {
                return Some(id);
            }
            place = self.next(place);
        }
    }

    /// Puts `id` (any but `u32::MAX`) under `hash`. The caller keeps to the capacity and puts no name in twice.
    #[inline]
    pub fn insert(&mut self, hash: u64, id: u32) {
        let mut place = self.home(hash);
        while self.entries[place] != 0 {
            place = self.next(place);
        }
        self.entries[place] = hash >> 32 << 32 | (u64::from(id) + 1);
    }

    /// Takes `id` out from under `hash`. Nothing happens if it is not there.
    #[inline]
    pub fn remove(&mut self, hash: u64, id: u32) {
        let wanted = hash >> 32 << 32 | (u64::from(id) + 1);
        let mut hole = self.home(hash);
        while self.entries[hole] != wanted {
            if self.entries[hole] == 0 {
                return;
            }
            hole = self.next(hole);
        }
        // Whatever follows without a gap moves up, unless its home lies behind the hole.
        let mut place = self.next(hole);
        while self.entries[place] != 0 {
            let mask = self.entries.len() - 1;
            let from_home = place.wrapping_sub(self.home(self.entries[place])) & mask;
            let from_hole = place.wrapping_sub(hole) & mask;
            if from_home >= from_hole {
                self.entries[hole] = self.entries[place];
                hole = place;
            }
            place = self.next(place);
        }
        self.entries[hole] = 0;
    }

    /// The entry a look-up of `hash` starts at: read for many hashes in a row, it brings them into the processor's cache at once
    /// instead of one after the other.
    #[inline]
    pub fn first_entry(&self, hash: u64) -> u64 {
        self.entries[self.home(hash)]
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Few distinct tags and homes, so that runs are long, wrap around and are broken up.
        #[test]
        fn no_removal_hides_what_was_put_in(steps in prop::collection::vec((0..12_u64, any::<bool>()), 1..300)) {
            let mut index = Index::new(20);
            let mut model = BTreeMap::new();
            let mut next = 0;
            for (name, wrap) in steps {
                let hash = if wrap { u64::MAX - (name << 32) } else { name << 58 | name << 33 };
                match model.remove(&hash) {
                    Some(id) => index.remove(hash, id),
                    None if model.len() < 20 => {
                        index.insert(hash, next);
                        model.insert(hash, next);
                        next += 1;
                    }
                    None => {}
                }
                for (&hash, &id) in &model {
                    prop_assert_eq!(index.find(hash, |found| found == id), Some(id));
                }
                prop_assert_eq!(index.entries.iter().filter(|&&entry| entry != 0).count(), model.len());
                prop_assert_eq!(index.find(7 << 40 | 1, |_| false), None);
            }
        }
    }
}
