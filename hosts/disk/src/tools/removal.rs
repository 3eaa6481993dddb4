//! What is to be taken out of a store, and what has to go with it.

use std::collections::{BTreeSet, HashSet};

use super::BLOCKS;
use super::filter::Filter;
use super::inventory::{Inventory, Place, Shelf};
use super::paths::{Paths, checkpoint_shelves};
use super::verify::{Fault, VerifyReport};
use crate::record::Recovered;

/// Records to be taken out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removal {
    /// Those that are meant.
    pub named: BTreeSet<Place>,
    /// Those that nothing would lead to any more.
    pub behind: BTreeSet<Place>,
}

/// How much of one group is to be taken out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovalCount {
    /// The group's name.
    pub group: String,
    /// Records that are meant.
    pub named: u64,
    /// Records that nothing would lead to any more.
    pub behind: u64,
    /// Bytes of the slots of both.
    pub bytes: u64,
}

impl Removal {
    /// The records that fit the filter and, with `unused_since`, were last used before that time; and what would be unreachable
    /// without them. A block counts as used when one behind it was.
    pub fn matching(inventory: &Inventory, filter: &Filter, unused_since: Option<u64>) -> Self {
        let before = Paths::new(inventory, &HashSet::new());
        let last_uses = before.last_uses(inventory);
        let is_old = |group: u8, record: &Recovered| {
            let id = before.tree.find(&record.digest).filter(|&id| group == BLOCKS && id == record.slot);
            let last_use = id.map_or(record.last_use, |id| last_uses[id as usize]);
            unused_since.is_none_or(|time| last_use < time)
        };
        let named = places(inventory, |group, record| filter.fits(group, record) && is_old(group, record));
        let after = Paths::new(inventory, &named.iter().copied().collect());
        let already: HashSet<Place> = before.unreachable.into_iter().collect();
        let behind = after.unreachable.into_iter().filter(|place| !already.contains(place)).collect();
        Self { named, behind }
    }

    /// The records used least recently, leaves first, until `slots` slots of `group` are free; what would be unreachable without
    /// them, and what is already. `None` if the group has not so many slots.
    pub fn least_recent(inventory: &Inventory, group: u8, slots: u32) -> Option<Self> {
        let shelf = inventory.shelf(group).filter(|shelf| shelf.class.slots >= slots)?;
        let mut paths = Paths::new(inventory, &HashSet::new());
        let mut named = BTreeSet::new();
        if group == BLOCKS {
            while shelf.class.slots - paths.tree.len() < slots
                && let Some(id) = paths.tree.least_recent()
                && paths.tree.remove(id).is_ok()
            {
                named.insert(Place { group, slot: id });
            }
        } else {
            // A checkpoint is in the same slot of all of its groups.
            let used = paths.tree.checkpoints().len();
            let surplus = used.saturating_sub(shelf.class.slots - slots);
            let oldest = checkpoints_by_age(inventory, shelf, &paths).into_iter().take(surplus as usize);
            named.extend(oldest.map(|slot| Place { group, slot }));
        }
        let after = Paths::new(inventory, &named.iter().copied().collect());
        Some(Self { named, behind: after.unreachable.into_iter().collect() })
    }

    /// The records that were found damaged, and what nothing leads to without them. Records that could not be read for an error of
    /// the operating system stay: it may pass.
    pub fn damaged(inventory: &Inventory, report: &VerifyReport) -> Self {
        let findings = report.findings().filter(|finding| !matches!(finding.fault, Fault::Unreadable { .. }));
        let named: BTreeSet<Place> =
            findings.map(|finding| Place { group: finding.group, slot: finding.slot }).collect();
        let after = Paths::new(inventory, &named.iter().copied().collect());
        Self { behind: after.unreachable.into_iter().collect(), named }
    }

    /// Whether nothing is to be taken out.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty() && self.behind.is_empty()
    }

    /// How much it is, by group; groups that lose nothing are left out.
    pub fn counts(&self, inventory: &Inventory) -> Vec<RemovalCount> {
        let count = |shelf: &Shelf| {
            let of = |places: &BTreeSet<Place>| {
                places.iter().filter(|place| place.group == shelf.class.group).count() as u64
            };
            let (named, behind) = (of(&self.named), of(&self.behind));
            let bytes = (named + behind) * shelf.class.slot_bytes();
            RemovalCount { group: shelf.class.name.clone(), named, behind, bytes }
        };
        inventory.shelves.iter().map(count).filter(|count| count.named + count.behind > 0).collect()
    }

    /// The slots of a group, ascending.
    pub(super) fn slots(&self, group: u8) -> BTreeSet<u32> {
        let of = |places: &BTreeSet<Place>| {
            places.range(Place { group, slot: 0 }..=Place { group, slot: u32::MAX }).map(|place| place.slot).collect()
        };
        let (named, behind): (Vec<u32>, Vec<u32>) = (of(&self.named), of(&self.behind));
        named.into_iter().chain(behind).collect()
    }
}

/// Where the records lie that are meant.
fn places(inventory: &Inventory, is_meant: impl Fn(u8, &Recovered) -> bool) -> BTreeSet<Place> {
    let of_shelf = |shelf: &Shelf| {
        let group = shelf.class.group;
        let meant = shelf.records.iter().filter(|record| is_meant(group, record));
        meant.map(|record| Place { group, slot: record.slot }).collect::<Vec<_>>()
    };
    inventory.shelves.iter().flat_map(of_shelf).collect()
}

/// The slots of the checkpoints that a path leads to, the one used least recently first, the shallower first among equals.
fn checkpoints_by_age(inventory: &Inventory, shelf: &Shelf, paths: &Paths) -> Vec<u32> {
    let lead = checkpoint_shelves(inventory).next().unwrap_or(shelf);
    let is_reachable = |record: &&Recovered| {
        paths.tree.find(&record.digest).and_then(|id| paths.tree.checkpoint_of(id)) == Some(record.slot)
    };
    let mut records: Vec<&Recovered> = lead.records.iter().filter(is_reachable).collect();
    records.sort_unstable_by_key(|record| (record.last_use, inventory.depth(record), record.slot));
    records.into_iter().map(|record| record.slot).collect()
}
