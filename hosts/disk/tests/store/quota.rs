//! Space: never more than was given, and nothing lost that still has a place.

use std::path::Path;

use reprise_core::Digest;
use reprise_disk::{Buffer, GroupClass, IoOptions, Miss, Options, RemovedLayout, Store, StoreError};

use crate::device::{self, Way};
use crate::fixture::{HISTORY, WINDOW, classes, filled, filled_with, get, key, open, options, put, put_of, tenant};

/// Bytes of all chunk files, as their lengths say.
fn chunk_bytes(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let chunks = entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(".chunk"));
    chunks.map(|entry| entry.metadata().unwrap().len()).sum()
}

fn with_slots(slots: u32) -> Vec<GroupClass> {
    let mut classes = classes();
    classes[0].slots = slots;
    classes
}

#[test]
fn a_full_store_is_not_longer_than_its_slots() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path());
    let usage = store.usage();
    assert_eq!(usage.classes.iter().map(|class| class.quota_bytes).collect::<Vec<_>>(), [10 * 12_288, 5 * 12_288]);
    assert_eq!(chunk_bytes(dir.path()), 15 * 12_288);
    for class in &usage.classes {
        assert!(class.allocated_bytes <= class.quota_bytes.next_multiple_of(4096), "{class:?}");
    }
    // The trailer of a window does not fit behind its payload.
    assert_eq!(usage.classes.iter().map(|class| class.overhead_bytes).collect::<Vec<_>>(), [0, 5 * 4096]);
    assert!(usage.table_bytes <= 4 * 4096 && usage.catalogue_bytes <= 4 * 4096, "{usage:?}");
}

#[test]
fn space_is_not_taken_before_it_is_needed() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    assert_eq!(store.usage().classes[0].allocated_bytes, 0);
    let namespace = store.namespace(&tenant(0)).unwrap();
    put(&store, HISTORY, 9, &key(namespace, 0)).unwrap();
    // The last chunk has two slots only.
    assert_eq!(chunk_bytes(dir.path()), 2 * 12_288);
    put(&store, HISTORY, 0, &key(namespace, 1)).unwrap();
    assert_eq!(chunk_bytes(dir.path()), 6 * 12_288);
}

#[test]
fn another_quota_does_not_cost_the_records_that_still_have_a_slot() {
    for (slots, left) in [(7, 7), (8, 8), (3, 3), (0, 0), (11, 10), (40, 10)] {
        let dir = tempfile::tempdir().unwrap();
        drop(filled(dir.path()));
        let (store, report) = Store::open(dir.path(), &with_slots(slots), &options()).unwrap();
        assert_eq!(report.classes[0].records, left);
        assert_eq!((report.classes[0].slots_before, report.classes[0].dropped.beyond_quota), (Some(10), 10 - left));
        assert!(chunk_bytes(dir.path()) <= (u64::from(slots) + 5) * 12_288);
        for slot in 0..left {
            get(&store, HISTORY, slot as u32, &key(0, slot as u8)).unwrap();
        }
        for slot in 0..slots {
            put(&store, HISTORY, slot, &key(0, 100 + slot as u8)).unwrap();
        }
        assert_eq!(chunk_bytes(dir.path()), (u64::from(slots) + 5) * 12_288);
        drop(store);
        let (store, report) = Store::open(dir.path(), &with_slots(slots), &options()).unwrap();
        assert_eq!((report.classes[0].slots_before, report.dropped()), (None, 0));
        for slot in 0..slots {
            get(&store, HISTORY, slot, &key(0, 100 + slot as u8)).unwrap();
        }
        for slot in 0..5 {
            get(&store, WINDOW, slot, &key(0, slot as u8)).unwrap();
        }
    }
}

#[test]
fn another_chunk_size_does_not_move_records_that_are_there() {
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path()));
    for chunk_bytes in [1, 7 * 12_288, u64::MAX] {
        let options = Options { chunk_bytes, ..options() };
        let (store, report) = Store::open(dir.path(), &classes(), &options).unwrap();
        assert_eq!(report.dropped(), 0);
        for slot in 0..10 {
            get(&store, HISTORY, slot, &key(0, slot as u8)).unwrap();
        }
    }
}

#[test]
fn another_layout_does_not_keep_the_space_of_the_old() {
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path()));
    let mut changed = classes();
    changed[1].fingerprint = Digest([0x23; 32]);
    let (store, report) = Store::open(dir.path(), &changed, &options()).unwrap();
    let [RemovedLayout { stem, records, bytes }] = &report.removed[..] else { panic!("{report}") };
    assert_eq!((stem.as_str(), *records), ("window-22222222", 5));
    assert!(*bytes >= 5 * 8192, "{bytes}");
    assert_eq!(report.dropped(), 5);
    assert_eq!(chunk_bytes(dir.path()), 10 * 12_288);
    for slot in 0..10 {
        get(&store, HISTORY, slot, &key(0, slot as u8)).unwrap();
    }
    drop(store);
    // A group that is not asked for any more goes the same way.
    let (_, report) = Store::open(dir.path(), &classes()[1..], &options()).unwrap();
    assert_eq!((report.removed.len(), report.dropped()), (1, 10));
    assert_eq!(chunk_bytes(dir.path()), 0);
}

#[test]
fn the_same_fingerprint_with_other_sections_is_not_read_as_if_it_were_the_same() {
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path()));
    let mut changed = classes();
    changed[0].sections = vec![4096, 10_001];
    let (store, report) = Store::open(dir.path(), &changed, &options()).unwrap();
    assert_eq!((report.removed.len(), report.classes[0].records, report.classes[1].records), (1, 0, 5));
    put(&store, HISTORY, 0, &key(0, 50)).unwrap();
    get(&store, HISTORY, 0, &key(0, 50)).unwrap();
}

#[test]
fn the_trailer_of_a_v4_record_costs_no_page() {
    // (payload bytes, sections) of V4-Pro: a block's history and a window.
    for (payload_bytes, sections, slot_bytes) in [(644_024, 9, 647_168), (5_174_272, 61, 5_177_344)] {
        let part = (payload_bytes / sections / 4096) * 4096;
        let ends = (1..sections).map(|section| section * part).chain([payload_bytes]).collect();
        let class = GroupClass {
            group: 0,
            name: "history".into(),
            fingerprint: Digest([0; 32]),
            payload_bytes,
            sections: ends,
            slots: 1,
        };
        assert_eq!((class.slot_bytes(), class.overhead_bytes()), (slot_bytes, 0));
    }
}

#[test]
fn a_chunk_for_which_there_is_no_space_leaves_nothing_behind() {
    // Only a file system in memory says at once that it has no such space, without taking what it has.
    let Ok(dir) = tempfile::tempdir_in("/dev/shm") else { return };
    let huge = GroupClass {
        group: 2,
        name: "huge".into(),
        fingerprint: Digest([3; 32]),
        payload_bytes: 16 << 20,
        sections: vec![16 << 20],
        slots: 100_000,
    };
    let all: Vec<GroupClass> = classes().into_iter().chain([huge]).collect();
    let options = Options { chunk_bytes: u64::MAX, ..options() };
    let (store, _) = Store::open(dir.path(), &all, &options).unwrap();
    let namespace = store.namespace(&tenant(0)).unwrap();
    let mut buffer = Buffer::zeroed(16 << 20);
    let mut attempt = || store.put(2, 0, &key(namespace, 1), Digest([0; 32]), 0, &mut buffer);
    for error in [attempt().unwrap_err(), attempt().unwrap_err()] {
        assert!(matches!(error, StoreError::Full { .. }), "{error}");
        assert!(error.to_string().contains("making huge-03030303-0000.chunk"), "{error}");
    }
    assert_eq!(chunk_bytes(dir.path()), 0);
    assert!(matches!(store.get(2, 0, &key(namespace, 1), &mut buffer), Err(Miss::Absent)));
    // Another group is not concerned.
    put(&store, HISTORY, 0, &key(namespace, 1)).unwrap();
    get(&store, HISTORY, 0, &key(namespace, 1)).unwrap();
}

#[test]
fn writes_in_flight_do_not_take_more_than_the_quota() {
    let dir = tempfile::tempdir().unwrap();
    let (store, device) = device::open(dir.path(), Way::SystemCalls, IoOptions { threads: 20, ..IoOptions::default() });
    let namespace = store.namespace(&tenant(0)).unwrap();
    let quota = 15 * 12_288;
    let all = |number: u8| {
        let history = (0..10).map(move |slot| put_of(HISTORY, slot, key(namespace, number + slot as u8)));
        history.chain((0..5).map(move |slot| put_of(WINDOW, slot, key(namespace, number + slot as u8))))
    };
    for number in [0, 100] {
        device.close();
        let batch = store.put_batch(all(number).collect(), None);
        device.wait_for_stuck(15);
        assert_eq!(chunk_bytes(dir.path()), quota, "every record is on its way");
        // There is no slot to put more into.
        let more = store
            .put_batch(vec![put_of(HISTORY, 0, key(namespace, 99)), put_of(HISTORY, 10, key(namespace, 99))], None);
        assert_eq!(more.filter(|(_, outcome)| outcome.result.is_err()).count(), 2);
        device.open();
        assert_eq!(batch.map(|(_, outcome)| outcome.result.unwrap()).count(), 15);
        assert_eq!(chunk_bytes(dir.path()), quota);
    }
}

#[test]
fn a_restart_does_not_forget_what_is_used() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path());
    store.sync().unwrap();
    let before = store.usage();
    assert!(before.classes.iter().all(|class| class.allocated_bytes > 0));
    drop(store);
    let (store, _) = open(dir.path());
    assert_eq!(store.usage(), before);
    // What somebody took away is not counted as used.
    std::fs::remove_file(dir.path().join("history-11111111-0001.chunk")).unwrap();
    let after = store.usage();
    assert_eq!(before.classes[0].allocated_bytes - after.classes[0].allocated_bytes, 4 * 12_288);
}

#[test]
fn a_store_does_not_make_a_file_for_each_record() {
    let dir = tempfile::tempdir().unwrap();
    let mut many = with_slots(250);
    many.truncate(1);
    let store = filled_with(dir.path(), &many);
    drop(store);
    let (_, report) = Store::open(dir.path(), &many, &Options::default()).unwrap();
    assert_eq!(report.classes[0].records, 250);
    let files = std::fs::read_dir(dir.path()).unwrap().count();
    // Four slots to a chunk; superblock, catalogue, lock and table.
    assert_eq!(files, 250_usize.div_ceil(4) + 4);
}
