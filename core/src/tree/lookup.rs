//! Looking a path up, and walking it upwards.

use super::Tree;
use crate::{Digest, policy::NO_PARENT};

/// The deepest resident block of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Id of that block; [`NO_PARENT`] when `depth` is 0.
    pub id: u32,
    /// Resident blocks of the path, from its start.
    pub depth: u32,
}

impl Found {
    /// Nothing of the path is resident.
    pub const NOTHING: Self = Self { id: NO_PARENT, depth: 0 };
}

impl Tree {
    /// The deepest resident block of the path that `digests` name, root first.
    ///
    /// O(log n) probes: at depths 1, 2, 4, … until one misses, then by bisection.
    pub fn look_up(&self, digests: &[Digest]) -> Found {
        let mut found = Found::NOTHING;
        let mut missing = digests.len();
        let mut step = 1;
        while found.depth as usize + step <= missing {
            let depth = found.depth as usize + step;
            match self.find(&digests[depth - 1]) {
                Some(id) => found = Found { id, depth: depth as u32 },
                None => {
                    missing = depth - 1;
                    break;
                }
            }
            step *= 2;
        }
        while (found.depth as usize) < missing {
            let depth = (found.depth as usize + missing).div_ceil(2);
            match self.find(&digests[depth - 1]) {
                Some(id) => found = Found { id, depth: depth as u32 },
                None => missing = depth - 1,
            }
        }
        found
    }

    /// The id of the block with this name, if it is resident.
    #[inline]
    pub fn find(&self, digest: &Digest) -> Option<u32> {
        self.index.find(digest.short(), |id| self.identities[id as usize].digest == *digest)
    }

    /// Brings what insertions of these names will read into the processor's cache: the misses overlap, where a loop of insertions would
    /// wait for each. Changes nothing.
    pub fn warm_names(&self, digests: &[Digest]) {
        let read = digests.iter().fold(0, |read, digest| read ^ self.index.first_entry(digest.short()));
        core::hint::black_box(read);
    }

    /// The same for removals of these blocks.
    pub fn warm_blocks(&self, ids: &[u32]) {
        let read = ids
            .iter()
            .filter_map(|&id| self.links.get(id as usize).zip(self.identities.get(id as usize)))
            .fold(0, |read, (links, identity)| {
                read ^ u64::from(links.parent) ^ self.index.first_entry(identity.digest.short())
            });
        core::hint::black_box(read);
    }

    /// The resident block at `depth` of the path that `digests` name: [`Found::NOTHING`] at depth 0.
    ///
    /// # Panics
    /// When no block is resident there.
    pub fn at_depth(&self, digests: &[Digest], depth: u32) -> Found {
        if depth == 0 {
            return Found::NOTHING;
        }
        let id = self.find(&digests[depth as usize - 1]).expect("what is resident is closed under prefixes");
        Found { id, depth }
    }

    /// The block `found.depth - depth` steps above `found`.
    ///
    /// # Panics
    /// When `depth` is deeper than `found`.
    pub fn ancestor(&self, mut found: Found, depth: u32) -> Found {
        assert!(depth <= found.depth, "an ancestor is not deeper than its descendant");
        while found.depth > depth {
            found = Found { id: self.links[found.id as usize].parent, depth: found.depth - 1 };
        }
        found
    }

    /// The deepest block at or above `found` whose record can be read: what was inserted and not yet written is passed over.
    pub fn readable(&self, mut found: Found) -> Found {
        while found.depth > 0 && self.identities[found.id as usize].pending {
            found = self.ancestor(found, found.depth - 1);
        }
        found
    }

    /// The deepest readable checkpoint on the path that `digests` name: its slot, and the block that it ends.
    ///
    /// Looks through the names from the last backwards, which costs a few nanoseconds each and does not wait for memory as a walk from
    /// block to block would: a path of a million tokens has thousands.
    pub fn deepest_checkpoint(&self, digests: &[Digest]) -> Option<(u32, Found)> {
        if self.checkpoints.is_empty() {
            return None;
        }
        digests.iter().enumerate().rev().find_map(|(index, digest)| {
            let is_same = |id: u32| self.identities[id as usize].digest == *digest;
            let slot = self.checkpoints.find(digest.short(), is_same)?;
            Some((slot, Found { id: self.checkpoints.block(slot), depth: index as u32 + 1 }))
        })
    }
}
