//! Which records of a store a path leads to, as a cache that opens it would find them.

use std::collections::HashSet;

use reprise_core::Digest;
use reprise_core::policy::NO_PARENT;
use reprise_core::tree::{Restored, Tree};

use crate::record::Recovered;

use super::BLOCKS;
use super::inventory::{Inventory, Place, Shelf};

/// The tree of an inventory's blocks, with the checkpoints at their ends, and what is not in it.
///
/// A checkpoint is one record in the same slot of each group but [`BLOCKS`]; where one of them is missing there is none.
pub(super) struct Paths {
    pub tree: Tree,
    /// Records that no path leads to, or whose checkpoint is not complete, or that are there twice.
    pub unreachable: Vec<Place>,
}

impl Paths {
    /// The paths of all records but those in `gone`.
    pub fn new(inventory: &Inventory, gone: &HashSet<Place>) -> Self {
        let is_left = |group: u8, record: &&Recovered| !gone.contains(&Place { group, slot: record.slot });
        let (mut tree, dropped) = restore_blocks(inventory, &|record| is_left(BLOCKS, record));
        let mut unreachable: Vec<Place> = dropped.into_iter().map(|slot| Place { group: BLOCKS, slot }).collect();

        let shelves: Vec<&Shelf> = checkpoint_shelves(inventory).collect();
        let Some((lead, others)) = shelves.split_first() else { return Self { tree, unreachable } };
        let names = |shelf: &&Shelf| -> HashSet<(u32, Digest)> {
            let left = shelf.records.iter().filter(|record| is_left(shelf.class.group, record));
            left.map(|record| (record.slot, record.digest)).collect()
        };
        let companions: Vec<_> = others.iter().map(names).collect();
        for record in lead.records.iter().filter(|record| is_left(lead.class.group, record)) {
            let complete = companions.iter().all(|names| names.contains(&(record.slot, record.digest)));
            let block = tree.find(&record.digest).filter(|&id| complete && tree.depth(id) == inventory.depth(record));
            if !block.is_some_and(|id| tree.restore_checkpoint(record.slot, id, record.last_use)) {
                unreachable.push(Place { group: lead.class.group, slot: record.slot });
            }
        }
        for shelf in others {
            let group = shelf.class.group;
            for record in shelf.records.iter().filter(|record| is_left(group, record)) {
                let id = tree.find(&record.digest);
                if id.and_then(|id| tree.checkpoint_of(id)) != Some(record.slot) {
                    unreachable.push(Place { group, slot: record.slot });
                }
            }
        }
        Self { tree, unreachable }
    }

    /// When each block was last used, by slot: the block itself, what lies at its end, or a block behind it. Using the end of a path
    /// is using the path.
    pub fn last_uses(&self, inventory: &Inventory) -> Vec<u64> {
        let mut blocks = self.tree.entries();
        blocks.sort_unstable_by_key(|block| std::cmp::Reverse(block.depth));
        let slots = blocks.iter().map(|block| block.id as usize + 1).max().unwrap_or(0);
        let mut last_uses = vec![0; slots];
        for record in checkpoint_shelves(inventory).flat_map(|shelf| &shelf.records) {
            let id = self.tree.find(&record.digest);
            if let Some(id) = id.filter(|&id| self.tree.checkpoint_of(id) == Some(record.slot)) {
                last_uses[id as usize] = record.last_use.max(last_uses[id as usize]);
            }
        }
        for block in blocks {
            let last_use = block.last_use.max(last_uses[block.id as usize]);
            last_uses[block.id as usize] = last_use;
            if block.parent != NO_PARENT {
                let parent = &mut last_uses[block.parent as usize];
                *parent = last_use.max(*parent);
            }
        }
        last_uses
    }
}

/// The groups whose records lie at the end of blocks.
pub(super) fn checkpoint_shelves(inventory: &Inventory) -> impl Iterator<Item = &Shelf> {
    inventory.shelves.iter().filter(|shelf| shelf.class.group != BLOCKS)
}

/// The slots of a group up to the last that holds a record.
fn slots_in_use(shelf: &Shelf) -> u32 {
    shelf.records.iter().map(|record| record.slot + 1).max().unwrap_or(0)
}

/// The tree of the blocks that are left, and the slots of those that have no place in it. It has room for what there is, and no
/// more: how many slots a group has is what a file says, and it may say any number.
fn restore_blocks(inventory: &Inventory, is_left: &dyn Fn(&&Recovered) -> bool) -> (Tree, Vec<u32>) {
    let checkpoints = checkpoint_shelves(inventory).map(slots_in_use).min().unwrap_or(0);
    let Some(shelf) = inventory.shelf(BLOCKS) else { return (Tree::new(0, checkpoints), Vec::new()) };
    let mut blocks: Vec<(u32, &Recovered)> =
        shelf.records.iter().filter(is_left).map(|record| (inventory.depth(record), record)).collect();
    blocks.sort_unstable_by_key(|(depth, record)| (*depth, record.sequence));
    let mut tree = Tree::new(slots_in_use(shelf), checkpoints);
    let restored = |(depth, record): (u32, &Recovered)| {
        let block = Restored {
            digest: record.digest,
            parent: (depth > 1).then_some(record.parent),
            depth,
            namespace: record.namespace,
            last_use: record.last_use,
            inserted: record.sequence,
        };
        (record.slot, block)
    };
    let dropped = tree.restore(blocks.into_iter().map(restored));
    (tree, dropped)
}
