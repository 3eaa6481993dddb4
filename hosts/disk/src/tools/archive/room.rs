//! How much room the records of an archive get. What an archive says of itself is no reason to take memory or space: a few
//! bytes can say anything.

use reprise_core::policy::NO_PARENT;
use reprise_core::tree::{Restored, Tree};

use crate::class::GroupClass;

use super::ArchiveError;

/// Slots that a tree gets room for at the least.
const MIN_SLOTS: u32 = 1024;

/// The classes that a store lacks, with as many slots as the archive says or, if the file system has no room for all of them,
/// with the same share of that each, but one slot at least.
///
/// # Errors
///
/// [`ArchiveError::NoRoom`] if there is not room for one.
pub fn fit(missing: &[&GroupClass], free_bytes: u64) -> Result<Vec<GroupClass>, ArchiveError> {
    let wanted: u128 = missing.iter().map(|class| u128::from(class.slots) * u128::from(class.slot_bytes())).sum();
    let (free, wanted) = if wanted > u128::from(free_bytes) { (u128::from(free_bytes), wanted) } else { (1, 1) };
    let fitted = |class: &&GroupClass| {
        let slots = u128::from(class.slots) * free / wanted;
        // The share is at most 1.
        let slots = u32::try_from(slots).unwrap_or(class.slots).max(class.slots.min(1));
        if slots > 0 && class.slot_bytes() > free_bytes {
            let (group, slot_bytes) = (class.name.clone(), class.slot_bytes());
            return Err(ArchiveError::NoRoom { group, slot_bytes, free_bytes });
        }
        Ok(GroupClass { slots, ..(*class).clone() })
    };
    missing.iter().map(fitted).collect()
}

/// A tree with room for what comes: it grows with what it holds, up to what the store has slots for.
pub struct GrowingTree {
    pub tree: Tree,
    /// The most blocks and checkpoints.
    most: (u32, u32),
}

impl GrowingTree {
    /// A tree that may hold so many blocks and checkpoints in the end.
    pub fn new(tree: Tree, most_blocks: u32, most_checkpoints: u32) -> Self {
        Self { tree, most: (most_blocks, most_checkpoints) }
    }

    /// Whether there is room for one more block.
    pub fn has_block(&mut self) -> bool {
        if self.tree.vacant() == 0 && self.tree.capacity() < self.most.0 {
            self.grow(grown(self.tree.capacity(), self.most.0), self.tree.checkpoints().capacity());
        }
        self.tree.vacant() > 0
    }

    /// Whether there is room for one more checkpoint.
    pub fn has_checkpoint(&mut self) -> bool {
        let checkpoints = self.tree.checkpoints();
        let (len, capacity) = (checkpoints.len(), checkpoints.capacity());
        if len == capacity && capacity < self.most.1 {
            self.grow(self.tree.capacity(), grown(capacity, self.most.1));
        }
        let checkpoints = self.tree.checkpoints();
        checkpoints.len() < checkpoints.capacity()
    }

    /// Makes a tree of this size that holds the same in the same slots; when they were last used is not kept.
    fn grow(&mut self, blocks: u32, checkpoints: u32) {
        let old = std::mem::replace(&mut self.tree, Tree::new(blocks, checkpoints));
        let entries = old.entries();
        let restored = entries.iter().zip(0..).map(|(entry, inserted)| {
            let block = Restored {
                digest: old.digest(entry.id),
                parent: (entry.parent != NO_PARENT).then(|| old.digest(entry.parent)),
                depth: entry.depth,
                namespace: entry.namespace,
                last_use: entry.last_use,
                inserted,
            };
            (entry.id, block)
        });
        // They come each behind its parent, as they were inserted.
        let dropped = self.tree.restore(restored);
        debug_assert!(dropped.is_empty(), "a tree holds what one that is smaller held");
        let ends = entries.iter().filter_map(|entry| Some((old.checkpoint_of(entry.id)?, entry.id)));
        let mut ends: Vec<(u32, u32)> = ends.collect();
        ends.sort_unstable();
        for (slot, id) in ends {
            self.tree.restore_checkpoint(slot, id, 0);
        }
    }
}

fn grown(capacity: u32, most: u32) -> u32 {
    capacity.saturating_mul(2).max(MIN_SLOTS).min(most)
}

#[cfg(test)]
mod tests {
    use reprise_core::Digest;
    use reprise_core::tree::Placement;

    use super::*;

    fn class(name: &str, payload_bytes: u64, slots: u32) -> GroupClass {
        let sections = vec![payload_bytes];
        GroupClass { group: 0, name: name.into(), fingerprint: Digest([1; 32]), payload_bytes, sections, slots }
    }

    #[test]
    fn what_an_archive_promises_does_not_get_more_than_there_is_room_for() {
        // Of 4 KiB and of 8 KiB a slot.
        let (small, large) = (class("small", 1000, u32::MAX), class("large", 5000, u32::MAX));
        let fitted = fit(&[&small, &large], 12 << 20).unwrap();
        assert_eq!(fitted.iter().map(|class| class.slots).collect::<Vec<_>>(), [1024, 1024]);
        let fitted = fit(&[&class("small", 1000, 100), &class("large", 5000, 50)], 800 << 10).unwrap();
        assert_eq!(fitted.iter().map(|class| class.slots).collect::<Vec<_>>(), [100, 50], "it fits as it is");
        let giant = class("giant", u64::from(u32::MAX), 1 << 30);
        let error = fit(&[&small, &giant], 1 << 30).unwrap_err();
        assert!(error.to_string().contains("one takes 4294971392 bytes"), "{error}");
        assert!(fit(&[&class("none", 1000, 0)], 0).is_ok());
    }

    #[test]
    fn a_tree_that_grows_does_not_lose_what_it_holds_nor_move_it() {
        let digest = |number: u32| Digest(std::array::from_fn(|at| number.to_le_bytes()[at % 4]));
        let mut growing = GrowingTree::new(Tree::new(0, 0), 5000, 3000);
        let mut parent = NO_PARENT;
        for number in 0..5000 {
            assert!(growing.has_block());
            let id = growing.tree.insert(parent, digest(number), 7, u64::from(number), false).unwrap();
            assert_eq!(id, number);
            parent = if number % 100 == 99 { NO_PARENT } else { id };
            if number < 3000 {
                assert!(growing.has_checkpoint());
                let placed = growing.tree.place_checkpoint(id, 1, false);
                assert!(matches!(placed, Placement::Placed { slot, evicted: None } if slot == number));
            }
        }
        assert!(!growing.has_block() && !growing.has_checkpoint());
        for number in 0..5000 {
            assert_eq!(growing.tree.find(&digest(number)), Some(number));
            assert_eq!(growing.tree.depth(number), number % 100 + 1);
            assert_eq!(growing.tree.checkpoint_of(number), Some(number).filter(|number| *number < 3000));
        }
    }
}
