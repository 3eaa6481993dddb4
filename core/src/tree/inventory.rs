//! Everything that is resident, in one go: out, for a policy that is to know it; in, from a store that kept it.

use alloc::vec::Vec;
use core::ops::Range;

use super::{
    Tree,
    node::{Identity, Links, NONE},
};
use crate::{Digest, policy::NO_PARENT};

/// What a host can tell a policy, or a store, about a resident block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Dense id.
    pub id: u32,
    /// Id of the block before it, or [`NO_PARENT`].
    pub parent: u32,
    /// Depth in blocks, from 1.
    pub depth: u32,
    /// Namespace index.
    pub namespace: u16,
    /// Last use that was marked on this block itself.
    pub last_use: u64,
    /// How many pins it holds.
    pub pins: u32,
    /// Number of its insertion, see [`Tree::insertions`]: grows from parent to child or stays equal.
    pub inserted: u64,
}

impl Entry {
    /// Orders entries as they came in, each behind its parent.
    pub fn order(&self) -> (u64, u32) {
        (self.inserted, self.depth)
    }
}

/// A block as a store kept it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Its name.
    pub digest: Digest,
    /// The name of the block before it; `None` for the first of a path.
    pub parent: Option<Digest>,
    /// Depth in blocks, from 1.
    pub depth: u32,
    /// Namespace index.
    pub namespace: u16,
    /// Last use.
    pub last_use: u64,
    /// A number that grows with every insertion.
    pub inserted: u64,
}

/// A block as [`Tree::restore`] takes it, with the checkpoint at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its id.
    pub slot: u32,
    /// What there is to know of it.
    pub block: Restored,
    /// Slot and last use of its checkpoint.
    pub checkpoint: Option<(u32, u64)>,
}

impl Tree {
    /// Resident blocks in the order they were inserted, each behind its parent: what a policy is told at a hand-over.
    pub fn entries(&self) -> Vec<Entry> {
        let mut entries: Vec<Entry> = self.entries_among(0..self.slots_used()).collect();
        entries.sort_unstable_by_key(Entry::order);
        entries
    }

    /// Resident blocks with ids in `ids`, in the order of ids: a slice of [`Tree::entries`], for a host that reads them bit by bit.
    pub fn entries_among(&self, ids: Range<u32>) -> impl Iterator<Item = Entry> + '_ {
        (ids.start..ids.end.min(self.slots_used())).filter(|&id| self.links[id as usize].resident).map(|id| {
            let (links, identity) = (&self.links[id as usize], &self.identities[id as usize]);
            Entry {
                id,
                parent: links.parent,
                depth: identity.depth,
                namespace: identity.namespace,
                last_use: links.last_use,
                pins: links.pins,
                inserted: identity.inserted,
            }
        })
    }

    /// One more than the largest id ever given out.
    pub fn slots_used(&self) -> u32 {
        self.links.len() as u32
    }

    /// Insertions so far; the next block's number is one more.
    pub fn insertions(&self) -> u64 {
        self.insertions
    }

    /// Last use that was marked on block `id` itself, or inherited from a child that went.
    pub fn last_use(&self, id: u32) -> u64 {
        self.links[id as usize].last_use
    }

    /// Resident blocks with ids in `ids` as a store would keep them, in the order of ids.
    pub fn kept_among(&self, ids: Range<u32>) -> impl Iterator<Item = Kept> + '_ {
        self.entries_among(ids).map(|entry| {
            let Entry { id, depth, namespace, last_use, inserted, .. } = entry;
            let parent = (entry.parent != NO_PARENT).then(|| self.digest(entry.parent));
            let block = Restored { digest: self.digest(id), parent, depth, namespace, last_use, inserted };
            let checkpoint = self.checkpoint_of(id).map(|slot| (slot, self.checkpoints.last_use(slot)));
            Kept { slot: id, block, checkpoint }
        })
    }

    /// Fills an empty tree with what a store kept: `(slot, block)` pairs, each block after the one before it. Returns the slots that
    /// are dropped: their path is broken, their slot is taken or beyond the capacity, or their name is there already.
    ///
    /// # Panics
    /// When the tree is not empty.
    pub fn restore(&mut self, blocks: impl IntoIterator<Item = (u32, Restored)>) -> Vec<u32> {
        assert!(self.links.is_empty(), "a tree is restored once, before its first use");
        let mut dropped = Vec::new();
        let mut newest = 0;
        for (slot, block) in blocks {
            let parent = match block.parent {
                None => Some(NO_PARENT),
                Some(digest) => self.find(&digest),
            };
            let depth = parent.map(|parent| if parent == NO_PARENT { 1 } else { self.depth(parent) + 1 });
            let taken = self.links.get(slot as usize).is_some_and(|links| links.resident);
            match parent {
                Some(parent)
                    if depth == Some(block.depth)
                        && slot < self.capacity
                        && !taken
                        && self.find(&block.digest).is_none() =>
                {
                    if self.links.len() <= slot as usize {
                        self.links.resize(slot as usize + 1, Links::VACANT);
                        self.identities.resize(slot as usize + 1, Identity::VACANT);
                    }
                    self.occupy(slot, parent, block.digest, block.namespace, block.last_use, false);
                    // A store that writes several records side by side may number a child before its parent.
                    let behind = if parent == NO_PARENT { 0 } else { self.identities[parent as usize].inserted };
                    let inserted = block.inserted.max(behind);
                    self.identities[slot as usize].inserted = inserted;
                    newest = newest.max(inserted);
                }
                _ => dropped.push(slot),
            }
        }
        self.insertions = newest;
        self.free = (0..self.links.len() as u32).rev().filter(|&id| !self.links[id as usize].resident).collect();
        dropped
    }

    /// Puts a checkpoint that a store kept back into its slot, at the end of block `id`. Returns whether it has a place: the
    /// slot is within the capacity and the block has no checkpoint yet.
    pub fn restore_checkpoint(&mut self, slot: u32, id: u32, last_use: u64) -> bool {
        let Identity { digest, depth, .. } = self.identities[id as usize];
        let links = &mut self.links[id as usize];
        let restored = links.checkpoint == NONE && self.checkpoints.restore(slot, digest.short(), id, depth, last_use);
        if restored {
            links.checkpoint = slot;
        }
        restored
    }
}
