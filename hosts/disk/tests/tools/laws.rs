//! Removals held against a plain model: sets of names, and loops over all of them.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use reprise_disk::Recovered;
use reprise_disk::tools::{Filter, Inventory, Place, Removal, Shelf};

use crate::fixture::{DRAFT, HISTORY, Name, WINDOW, classes, digest, key, name, tenant};

/// Paths of up to four of two letters; a checkpoint has a window and a draft, or one of them only.
fn records() -> impl Strategy<Value = Vec<(String, u64, u8)>> {
    prop::collection::vec(("[ab]{1,4}", 0..40_u64, 0..8_u8), 0..30)
}

fn recovered(path: &str, slot: u32, last_use: u64) -> Recovered {
    let key = key(0, path);
    Recovered {
        slot,
        namespace: 0,
        digest: key.digest,
        parent: digest(0, &path[..path.len() - 1]),
        position: key.position,
        last_use,
        sequence: u64::from(slot),
    }
}

fn inventory(records: &[(String, u64, u8)]) -> Inventory {
    let classes = classes(32, 32);
    let mut shelves: Vec<Shelf> =
        classes.into_iter().map(|class| Shelf { class, records: Vec::new(), damaged: Vec::new() }).collect();
    let mut known = BTreeSet::new();
    let unique = records.iter().filter(|(path, ..)| known.insert(path.clone()));
    for (slot, (path, last_use, parts)) in (0..).zip(unique) {
        for (group, absent) in [(HISTORY, *parts == 0), (WINDOW, parts & 1 == 0), (DRAFT, parts & 2 == 0)] {
            if !absent {
                shelves[usize::from(group)].records.push(recovered(path, slot, last_use + u64::from(group)));
            }
        }
    }
    Inventory { namespaces: vec![tenant(0)], shelves }
}

fn all(inventory: &Inventory) -> BTreeMap<Name, Recovered> {
    let of_shelf = |shelf: &Shelf| {
        let group = shelf.class.group;
        shelf.records.iter().map(|record| (name(group, record), *record)).collect::<Vec<_>>()
    };
    inventory.shelves.iter().flat_map(of_shelf).collect()
}

fn left(inventory: &Inventory, removal: &Removal) -> BTreeSet<Name> {
    let is_left = |(name, record): &(&Name, &Recovered)| {
        let place = Place { group: name.0, slot: record.slot };
        !removal.named.contains(&place) && !removal.behind.contains(&place)
    };
    all(inventory).iter().filter(is_left).map(|(name, _)| name.clone()).collect()
}

/// What a path leads to.
fn reachable(names: &BTreeSet<Name>) -> BTreeSet<Name> {
    let has = |group, path: &str| names.contains(&(group, 0, path.to_owned()));
    let is_whole = |(group, _, path): &&Name| {
        (1..=path.len()).all(|end| has(HISTORY, &path[..end]))
            && (*group == HISTORY || has(WINDOW, path) && has(DRAFT, path))
    };
    names.iter().filter(is_whole).cloned().collect()
}

/// When a block was last used, by all that a path through it leads to.
fn last_use(all: &BTreeMap<Name, Recovered>, name: &Name) -> u64 {
    let reachable = reachable(&all.keys().cloned().collect());
    if name.0 != HISTORY || !reachable.contains(name) {
        return all[name].last_use;
    }
    let behind = reachable.iter().filter(|other| other.2.starts_with(&name.2));
    behind.map(|other| all[other].last_use).max().expect("a block is behind itself")
}

proptest! {
    #[test]
    fn a_purge_does_not_leave_more_or_less_than_the_model(
        records in records(),
        (start, blocks) in (0..4_u64, 1..4_u64),
        group in prop::option::of(0..3_u8),
        time in prop::option::of(0..45_u64),
    ) {
        let inventory = inventory(&records);
        let all = all(&inventory);
        let filter = Filter { positions: 128 * start..128 * (start + blocks), group, ..Filter::default() };
        let removal = Removal::matching(&inventory, &filter, time);
        prop_assert!(removal.named.is_disjoint(&removal.behind));

        let named = |name: &Name| {
            group.is_none_or(|group| group == name.0)
                && filter.positions.contains(&(128 * name.2.len() as u64))
                && time.is_none_or(|time| last_use(&all, name) < time)
        };
        let before: BTreeSet<Name> = all.keys().cloned().collect();
        let spared: BTreeSet<Name> = before.iter().filter(|name| !named(name)).cloned().collect();
        // What nothing led to before is left alone, unless it is meant.
        let stray = spared.difference(&reachable(&before)).cloned().collect();
        let expected: BTreeSet<Name> = reachable(&spared).union(&stray).cloned().collect();
        prop_assert_eq!(left(&inventory, &removal), expected);
    }

    #[test]
    fn an_eviction_does_not_differ_from_taking_the_oldest_end_again_and_again(
        records in records(),
        slots in 0..33_u32,
        group in 0..3_u8,
    ) {
        let inventory = inventory(&records);
        let mut uses: BTreeMap<Name, u64> = all(&inventory).iter().map(|(name, record)| (name.clone(), record.last_use)).collect();
        let mut expected = reachable(&uses.keys().cloned().collect());
        uses.retain(|name, _| expected.contains(name));
        while 32 - (expected.iter().filter(|name| name.0 == group).count() as u32) < slots {
            let is_end = |name: &&Name| {
                name.0 == group && (group != HISTORY || !expected.iter().any(|other| other.0 == HISTORY && other.2.len() > name.2.len() && other.2.starts_with(&name.2)))
            };
            let ends: Vec<&Name> = expected.iter().filter(is_end).collect();
            let oldest = ends.iter().map(|name| uses[*name]).min().unwrap();
            // Equals go in an order of their own: only what is the same for all of them is compared.
            prop_assume!(ends.iter().filter(|name| uses[**name] == oldest).count() == 1);
            let victim = (*ends.iter().find(|name| uses[**name] == oldest).unwrap()).clone();
            expected.remove(&victim);
            if group == HISTORY && victim.2.len() > 1 {
                let parent = (HISTORY, 0, victim.2[..victim.2.len() - 1].to_owned());
                let last_use = uses[&parent].max(oldest);
                uses.insert(parent, last_use);
            }
            expected = reachable(&expected);
        }
        let removal = Removal::least_recent(&inventory, group, slots).unwrap();
        prop_assert_eq!(left(&inventory, &removal), expected);
    }
}
