//! A device that gets stuck holds nobody past a deadline, and takes nothing with it.

use std::time::{Duration, Instant};

use reprise_disk::{IoOptions, Miss, ReadOnly, Store, StoreError};

use crate::device::{self, Way, engines};
use crate::fixture::{HISTORY, WINDOW, check, classes, filled, get, gets_of, key, open, options, put_of};

/// One buffer a class, one put at a time, one thread: whatever is held back is missed at once.
fn scarce() -> IoOptions {
    IoOptions { buffer_bytes: 1, depth: 1, threads: 1, patience: Duration::from_secs(60), ..IoOptions::default() }
}

/// A deadline that passes while the device is stuck, however long that takes.
fn soon() -> Option<Instant> {
    Some(Instant::now() + Duration::from_millis(30))
}

#[test]
fn a_stuck_read_does_not_hold_a_request_past_its_deadline_nor_a_buffer_for_ever() {
    for way in Way::all() {
        let dir = tempfile::tempdir().unwrap();
        drop(filled(dir.path()));
        let (store, device) = device::open(dir.path(), way, scarce());
        device.close();
        let gets = gets_of(HISTORY);
        let outcomes: Vec<_> = store.get_batch(&gets, soon()).collect();
        assert_eq!(outcomes.len(), gets.len());
        for (index, got) in outcomes {
            assert!(matches!(got, Err(Miss::TimedOut)), "{way:?}: record {index}: {got:?}");
        }
        device.wait_for_stuck(1);
        // The only buffer is with the device: a second request misses, too, and in time.
        assert!(store.get_batch(&gets, soon()).all(|(_, got)| matches!(got, Err(Miss::TimedOut))));
        device.open();
        // Without the buffer coming back, this would time out.
        store.get_batch(&gets, None).for_each(|(index, got)| check(&gets[index], got).unwrap());
    }
}

#[test]
fn what_was_not_submitted_is_not_read_for_a_batch_that_was_dropped() {
    for way in Way::all() {
        let dir = tempfile::tempdir().unwrap();
        drop(filled(dir.path()));
        let (store, device) = device::open(dir.path(), way, scarce());
        device.close();
        let batch = store.get_batch(&gets_of(HISTORY), None);
        device.wait_for_stuck(1);
        drop(batch);
        device.open();
        let gets = gets_of(WINDOW);
        store.get_batch(&gets, None).for_each(|(index, got)| check(&gets[index], got).unwrap());
        get(&store, HISTORY, 9, &key(0, 9)).unwrap();
        let reads = device.reads();
        let by_calls = if way == Way::SystemCalls { 1 + gets.len() } else { 0 };
        assert_eq!(reads, by_calls + 1, "{way:?}: one was under way, and nine were not begun");
    }
}

#[test]
fn a_cancelled_batch_does_not_leave_an_outcome_out() {
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path()));
    let (store, device) = device::open(dir.path(), Way::SystemCalls, scarce());
    device.close();
    let gets = gets_of(HISTORY);
    let mut batch = store.get_batch(&gets, None);
    device.wait_for_stuck(1);
    batch.cancel();
    device.open();
    let (mut read, mut cancelled) = (0, 0);
    for (index, got) in batch {
        match check(&gets[index], got) {
            Ok(()) => read += 1,
            Err(miss) => cancelled += usize::from(matches!(miss, Miss::Cancelled)),
        }
    }
    assert_eq!((read, cancelled), (1, 9), "the one under way ends as it would have");
}

#[test]
fn a_put_that_missed_its_deadline_is_not_found_later() {
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path()));
    let (store, device) = device::open(dir.path(), Way::SystemCalls, scarce());
    device.close();
    let puts = vec![put_of(HISTORY, 0, key(0, 100)), put_of(HISTORY, 1, key(0, 101))];
    let mut outcomes: Vec<_> = store.put_batch(puts, soon()).collect();
    outcomes.sort_by_key(|(index, _)| *index);
    for (_, outcome) in &outcomes {
        assert!(matches!(outcome.result, Err(StoreError::TimedOut { group: HISTORY, .. })), "{outcome:?}");
    }
    let came_back: Vec<bool> = outcomes.iter().map(|(_, outcome)| outcome.buffer.is_some()).collect();
    assert_eq!(came_back, [false, true], "the device has one buffer, the other was never given away");
    // The bytes of the first may still arrive, so nothing else is put there.
    let mut buffer = put_of(HISTORY, 0, key(0, 102)).buffer;
    let again = store.put(HISTORY, 0, &key(0, 102), key(0, 0).digest, 0, &mut buffer);
    assert!(matches!(again, Err(StoreError::SlotBusy { group: HISTORY, slot: 0 })), "{again:?}");
    device.open();
    // With one put at a time, this one begins after the end of the stuck one.
    let (_, outcome) = store.put_batch(vec![put_of(HISTORY, 2, key(0, 103))], None).next().unwrap();
    outcome.result.unwrap();
    for (slot, number) in [(0, 100), (0, 0), (1, 101)] {
        assert!(matches!(get(&store, HISTORY, slot, &key(0, number)), Err(Miss::Absent)), "slot {slot}");
    }
    // The put that never began has left its slot alone.
    get(&store, HISTORY, 1, &key(0, 1)).unwrap();
    get(&store, HISTORY, 2, &key(0, 103)).unwrap();
}

#[test]
fn a_record_that_is_still_being_written_is_not_found() {
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path()));
    let (store, device) = device::open(dir.path(), Way::SystemCalls, scarce());
    device.close();
    let batch = store.put_batch(vec![put_of(HISTORY, 3, key(0, 100))], None);
    device.wait_for_stuck(1);
    let listed = || {
        let inventory = ReadOnly::open(dir.path()).unwrap().inventory().unwrap();
        inventory.shelf(HISTORY).unwrap().records.iter().map(|record| (record.slot, record.digest)).collect::<Vec<_>>()
    };
    // Neither the new record nor the one that it replaces, of which part may be gone.
    assert!(!listed().iter().any(|(slot, _)| *slot == 3));
    for number in [100, 3] {
        assert!(matches!(get(&store, HISTORY, 3, &key(0, number)), Err(Miss::Absent)), "{number}");
    }
    device.open();
    assert_eq!(batch.map(|(_, outcome)| outcome.result.unwrap()).count(), 1);
    assert!(listed().contains(&(3, key(0, 100).digest)));
    get(&store, HISTORY, 3, &key(0, 100)).unwrap();
}

#[test]
fn a_store_is_not_held_open_by_a_device_that_is_stuck() {
    for way in Way::all() {
        let dir = tempfile::tempdir().unwrap();
        drop(filled(dir.path()));
        let io = IoOptions { patience: Duration::from_millis(50), ..scarce() };
        let (store, device) = device::open(dir.path(), way, io);
        device.close();
        let deadline = Some(Instant::now() + Duration::from_secs(3600));
        let batch = store.get_batch(&gets_of(HISTORY), deadline);
        device.wait_for_stuck(1);
        drop(store);
        let (mut late, mut cancelled) = (0, 0);
        for (_, got) in batch {
            late += usize::from(matches!(got, Err(Miss::TimedOut)));
            cancelled += usize::from(matches!(got, Err(Miss::Cancelled)));
        }
        assert_eq!((late, cancelled), (1, 9), "{way:?}");
        // Whoever holds the store's memory holds its lock as well.
        let again = Store::open(dir.path(), &classes(), &options());
        assert!(matches!(again, Err(StoreError::Locked { .. })), "{way:?}");
        device.open();
        let store = loop {
            match Store::open(dir.path(), &classes(), &options()) {
                Err(StoreError::Locked { .. }) => std::thread::yield_now(),
                opened => break opened.unwrap().0,
            }
        };
        get(&store, HISTORY, 0, &key(0, 0)).unwrap();
    }
}

#[test]
fn a_store_is_not_closed_before_its_puts_are_written_nor_kept_open_by_what_was_read() {
    for engine in engines() {
        let dir = tempfile::tempdir().unwrap();
        drop(filled(dir.path()));
        let io = IoOptions { engine, ..scarce() };
        let (store, _) = Store::open(dir.path(), &classes(), &reprise_disk::Options { io, ..options() }).unwrap();
        let puts = (0..10).map(|slot| put_of(HISTORY, slot, key(0, 50 + slot as u8))).collect();
        let batch = store.put_batch(puts, None);
        let (_, loan) = store.get_batch(&gets_of(WINDOW)[..1], None).next().unwrap();
        drop(store);
        assert!(batch.map(|(_, outcome)| outcome.result.unwrap()).count() == 10);
        let (store, report) = open(dir.path());
        assert_eq!(report.dropped(), 0);
        for slot in 0..10 {
            get(&store, HISTORY, slot, &key(0, 50 + slot as u8)).unwrap();
        }
        // A record can be looked at for longer than the store is open.
        check(&gets_of(WINDOW)[0], loan).unwrap();
    }
}
