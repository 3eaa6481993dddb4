//! Everything that is resident, in one go: out, for a policy that is to know it; in, from a store that kept it.

use alloc::vec::Vec;

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

impl Tree {
    /// Resident blocks in the order they were inserted, each behind its parent: what a policy is told at a hand-over.
    pub fn entries(&self) -> Vec<Entry> {
        let mut ids: Vec<u32> = (0..self.links.len() as u32).filter(|&id| self.links[id as usize].resident).collect();
        ids.sort_unstable_by_key(|&id| (self.identities[id as usize].inserted, self.identities[id as usize].depth));
        ids.into_iter()
            .map(|id| {
                let (links, identity) = (&self.links[id as usize], &self.identities[id as usize]);
                Entry {
                    id,
                    parent: links.parent,
                    depth: identity.depth,
                    namespace: identity.namespace,
                    last_use: links.last_use,
                    pins: links.pins,
                }
            })
            .collect()
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
