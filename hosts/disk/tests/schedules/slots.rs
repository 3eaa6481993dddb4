//! One slot at a time, by the calls that wait: put, read, freed and touched by several threads at once.

use std::sync::Arc;

use reprise_disk::{Durability, Store, StoreError};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

use crate::disk::Disk;
use crate::scheduler::{GROUP, SLOTS, explore, holds, key, open, put, tenant};

const NUMBERS: std::ops::Range<u8> = 1..5;

/// Which records can be read, and where.
fn held(store: &Store) -> Vec<(u32, u8)> {
    let all = (0..SLOTS).flat_map(|slot| NUMBERS.map(move |number| (slot, number)));
    all.filter(|(slot, number)| holds(store, *slot, key(0, *number))).collect()
}

/// Does a few things to slots that others use as well.
fn meddle(store: &Store) {
    for _ in 0..4 {
        let mut random = thread_rng();
        let (slot, number) = (random.gen_range(0..SLOTS - 1), random.gen_range(NUMBERS));
        match random.gen_range(0..7) {
            0..3 => match put(store, slot, key(0, number)) {
                Ok(()) | Err(StoreError::SlotBusy { .. }) => {}
                Err(error) => panic!("{error}"),
            },
            3..5 => drop(holds(store, slot, key(0, number))),
            5 => store.free(GROUP, slot).expect("a slot is freed"),
            _ => {
                store.touch(GROUP, slot, 7);
                store.sync().expect("the store is synced");
            }
        }
    }
}

#[test]
fn a_slot_that_many_use_at_once_does_not_bring_wrong_bytes_nor_stay_busy() {
    explore(|| {
        let disk = Disk::new();
        let store = Arc::new(open(&disk, Durability::Relaxed).0);
        assert_eq!(store.namespace(&tenant(0)).unwrap(), 0);
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let store = Arc::clone(&store);
                thread::spawn(move || meddle(&store))
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());

        let before = held(&store);
        assert!(before.windows(2).all(|pair| pair[0].0 != pair[1].0), "two records in a slot: {before:?}");
        let usage = &store.usage().classes[0];
        assert!(usage.allocated_bytes <= usage.quota_bytes, "{usage:?}");
        drop(store);
        let (store, report) = open(&disk, Durability::Relaxed);
        assert_eq!(report.dropped(), 0, "{report}");
        let found: Vec<_> = store.take_records(GROUP).iter().map(|found| (found.slot, found.digest.0[0])).collect();
        assert_eq!(found, before);
        assert_eq!(held(&store), before);
        for slot in 0..SLOTS {
            put(&store, slot, key(0, 1)).expect("no slot is lost");
            assert!(holds(&store, slot, key(0, 1)));
        }
    });
}

#[test]
fn a_slot_is_not_left_busy_by_threads_that_put_into_it_at_once() {
    explore(|| {
        let store = Arc::new(open(&Disk::new(), Durability::Strict).0);
        store.namespace(&tenant(0)).unwrap();
        let putters = NUMBERS
            .map(|number| {
                let store = Arc::clone(&store);
                thread::spawn(move || put(&store, 0, key(0, number)).is_ok())
            })
            .collect::<Vec<_>>();
        let done: Vec<bool> = putters.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(done.contains(&true), "each was refused for the sake of another");
        let held = held(&store);
        assert_eq!(held.len(), 1, "the last put is there: {held:?}");
        put(&store, 0, key(0, 9)).unwrap();
        assert!(holds(&store, 0, key(0, 9)));
    });
}
