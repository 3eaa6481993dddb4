//! What was put is what is read.

use reprise_core::Digest;
use reprise_disk::{Buffer, Durability, Miss, Options, Recovered, Store, StoreError};

use crate::fixture::{HISTORY, WINDOW, classes, filled, get, key, open, options, payload, put, tenant};

#[test]
fn a_record_is_not_lost_or_changed_by_a_reopen() {
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path()));
    let (store, report) = open(dir.path());
    assert!(!report.created);
    assert_eq!((report.dropped(), report.namespaces), (0, 1), "{report}");
    assert_eq!(store.namespaces(), [(0, tenant(0))]);
    for class in classes() {
        let records = store.take_records(class.group);
        assert_eq!(records.len() as u32, class.slots);
        for (slot, record) in records.iter().enumerate() {
            let key = key(0, slot as u8);
            let expected = Recovered {
                slot: slot as u32,
                namespace: 0,
                digest: key.digest,
                parent: Digest([0xee; 32]),
                position: key.position,
                last_use: 1000 + slot as u64,
                sequence: record.sequence,
            };
            assert_eq!(*record, expected);
            get(&store, class.group, record.slot, &key).unwrap();
        }
        assert!(records.windows(2).all(|pair| pair[0].sequence < pair[1].sequence));
        assert!(store.take_records(class.group).is_empty(), "records are given away once");
    }
}

#[test]
fn a_strict_put_is_not_different_to_read() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { durability: Durability::Strict, ..options() };
    let (store, _) = Store::open(dir.path(), &classes(), &options).unwrap();
    let namespace = store.namespace(&tenant(0)).unwrap();
    for number in [1, 2] {
        put(&store, HISTORY, 3, &key(namespace, number)).unwrap();
        get(&store, HISTORY, 3, &key(namespace, number)).unwrap();
    }
    store.free(HISTORY, 3).unwrap();
    assert!(matches!(get(&store, HISTORY, 3, &key(namespace, 2)), Err(Miss::Absent)));
}

#[test]
fn any_range_of_sections_is_not_other_bytes_than_in_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path());
    for class in classes() {
        let whole = payload(class.group, &key(0, 2));
        let start = |section: usize| if section == 0 { 0 } else { class.sections[section - 1] as usize };
        for first in 0..class.sections.len() {
            for end in first + 1..=class.sections.len() {
                let mut buffer = Buffer::new();
                store.get_sections(class.group, 2, &key(0, 2), first..end, &mut buffer).unwrap();
                assert!(buffer.bytes() == &whole[start(first)..start(end)], "group {} {first}..{end}", class.group);
            }
        }
        let mut buffer = Buffer::zeroed(1);
        for range in [1..1, 0..class.sections.len() + 1] {
            let result = store.get_sections(class.group, 2, &key(0, 2), range, &mut buffer);
            assert!(matches!(result, Err(Miss::Absent)) && buffer.is_empty());
        }
    }
}

#[test]
fn a_freed_or_replaced_record_is_not_found() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path());
    store.free(HISTORY, 4).unwrap();
    put(&store, HISTORY, 5, &key(0, 77)).unwrap();
    let check = |store: &Store| {
        assert!(matches!(get(store, HISTORY, 4, &key(0, 4)), Err(Miss::Absent)));
        assert!(matches!(get(store, HISTORY, 5, &key(0, 5)), Err(Miss::Absent)));
        get(store, HISTORY, 5, &key(0, 77)).unwrap();
    };
    check(&store);
    drop(store);
    let (store, report) = open(dir.path());
    assert_eq!((store.take_records(HISTORY).len(), report.dropped()), (9, 0));
    check(&store);
}

#[test]
fn the_last_use_is_not_forgotten_by_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path());
    store.touch(WINDOW, 3, 9_999);
    store.touch(WINDOW, 4, 8_888);
    put(&store, WINDOW, 4, &key(0, 50)).unwrap();
    store.touch(WINDOW, 1_000_000, 1);
    drop(store);
    let (store, report) = open(dir.path());
    assert_eq!(report.dropped(), 0);
    let uses: Vec<u64> = store.take_records(WINDOW).iter().map(|record| record.last_use).collect();
    // The touch of slot 4 was of the record that was there before.
    assert_eq!(uses, [1000, 1001, 1002, 9_999, 1004]);
    get(&store, WINDOW, 3, &key(0, 3)).unwrap();
}

#[test]
fn a_touch_of_a_freed_slot_does_not_make_it_look_used() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path());
    store.free(WINDOW, 0).unwrap();
    store.touch(WINDOW, 0, 77);
    drop(store);
    let (store, report) = open(dir.path());
    assert_eq!(report.dropped(), 0);
    assert_eq!(store.take_records(WINDOW).len(), 4);
}

#[test]
fn the_callers_buffer_is_not_changed_by_a_put() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    let namespace = store.namespace(&tenant(0)).unwrap();
    let key = key(namespace, 1);
    let bytes = payload(HISTORY, &key);
    for len in [bytes.len(), bytes.len() + 1, 100_000] {
        let mut buffer = Buffer::zeroed(len);
        buffer.bytes_mut()[..bytes.len()].copy_from_slice(&bytes);
        store.put(HISTORY, 0, &key, Digest([0; 32]), 0, &mut buffer).unwrap();
        assert_eq!(buffer.len(), len);
        assert!(buffer.bytes()[..bytes.len()] == bytes);
        get(&store, HISTORY, 0, &key).unwrap();
    }
}

#[test]
fn what_lies_behind_the_payload_in_the_callers_buffer_does_not_reach_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    let namespace = store.namespace(&tenant(0)).unwrap();
    let mut buffer = Buffer::zeroed(20_000);
    buffer.bytes_mut().fill(0xff);
    store.put(HISTORY, 0, &key(namespace, 1), Digest([0; 32]), 0, &mut buffer).unwrap();
    store.sync().unwrap();
    let chunk = std::fs::read(dir.path().join("history-11111111-0000.chunk")).unwrap();
    // Between the payload and the trailer, which starts at a multiple of 8, and behind the trailer.
    assert!(chunk[10_001..10_008].iter().chain(&chunk[10_008 + 72 + 3 * 8..]).all(|byte| *byte == 0));
}

#[test]
fn a_wrong_call_is_an_error_and_not_a_record() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = open(dir.path());
    assert!(matches!(put(&store, HISTORY, 0, &key(0, 1)), Err(StoreError::UnknownNamespace { namespace: 0 })));
    let namespace = store.namespace(&tenant(0)).unwrap();
    let key = key(namespace, 1);
    let mut buffer = Buffer::zeroed(100_000);
    let mut attempt = |group, slot, len| {
        buffer.resize(len);
        store.put(group, slot, &key, Digest([0; 32]), 0, &mut buffer)
    };
    assert!(matches!(attempt(HISTORY, 10, 20_000), Err(StoreError::NoSuchSlot { group: HISTORY, slot: 10 })));
    assert!(matches!(attempt(9, 0, 20_000), Err(StoreError::NoSuchSlot { group: 9, slot: 0 })));
    assert!(matches!(attempt(HISTORY, 0, 10_000), Err(StoreError::WrongLength { expected_bytes: 10_001, .. })));
    assert!(matches!(store.free(HISTORY, 10), Err(StoreError::NoSuchSlot { .. })));
    assert!(matches!(get(&store, HISTORY, 0, &key), Err(Miss::Absent)));
    assert!(matches!(get(&store, 9, 0, &key), Err(Miss::Absent)));
    assert!(matches!(get(&store, HISTORY, u32::MAX, &key), Err(Miss::Absent)));
}

#[test]
fn records_put_and_read_by_several_threads_do_not_mix() {
    let dir = tempfile::tempdir().unwrap();
    // Fewer handles than chunks, so that files close and open all the time.
    let options = Options { open_files: 2, ..options() };
    let (store, _) = Store::open(dir.path(), &classes(), &options).unwrap();
    let namespace = store.namespace(&tenant(0)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..5 {
            let store = &store;
            scope.spawn(move || {
                for round in 0..20 {
                    for slot in [thread, thread + 5] {
                        let key = key(namespace, (round * 10 + slot) as u8);
                        put(store, HISTORY, slot, &key).unwrap();
                        get(store, HISTORY, slot, &key).unwrap();
                        store.touch(HISTORY, slot, u64::from(round));
                    }
                    store.sync().unwrap();
                }
            });
        }
    });
}
