//! Batches, with the threads that work them off: reads and puts, deadlines, cancelling, callbacks and closing.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use reprise_disk::{Durability, Get, Got, Miss, Put, PutOutcome, Store, StoreError};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

use crate::disk::Disk;
use crate::scheduler::{GROUP, SLOTS, check, explore, holds, key, open, put, record, tenant};

/// Every record's read, twice.
fn gets() -> Vec<Get> {
    (0..2 * SLOTS).map(|index| index % SLOTS).map(|slot| Get { group: GROUP, slot, key: key(0, slot as u8) }).collect()
}

fn puts() -> Vec<Put> {
    (0..SLOTS).map(|slot| record(slot, key(0, slot as u8 + 10))).collect()
}

fn check_got(gets: &[Get], index: usize, got: Got) {
    match got {
        Ok(loan) => check(gets[index].key, &loan),
        Err(Miss::Absent | Miss::Corrupt { .. } | Miss::TimedOut | Miss::Cancelled) => {}
        Err(error) => panic!("{error}"),
    }
}

fn check_put(outcome: PutOutcome) {
    match outcome.result {
        Ok(()) => {}
        Err(StoreError::SlotBusy { .. } | StoreError::TimedOut { .. } | StoreError::Cancelled { .. }) => {}
        Err(error) => panic!("{error}"),
    }
}

/// A deadline that has passed when anybody looks, or none.
fn any_deadline() -> Option<Instant> {
    thread_rng().gen_bool(0.3).then(Instant::now)
}

/// Reads in one of the ways there are.
fn read(store: &Store) {
    let gets = gets();
    let mut batch = store.get_batch(&gets, any_deadline());
    match thread_rng().gen_range(0..4) {
        0 => {
            let seen = batch.by_ref().take(2).map(|(index, got)| check_got(&gets, index, got)).count();
            assert_eq!(seen, 2);
        }
        1 => {
            batch.cancel();
            assert_eq!(batch.map(|(index, got)| check_got(&gets, index, got)).count(), gets.len());
        }
        2 => {
            let left = thread_rng().gen_range(1..=gets.len());
            let mut calls = 0;
            batch.on_each(move |index, got| {
                check_got(&gets, index, got);
                calls += 1;
                if calls == left { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
        }
        _ => assert_eq!(batch.map(|(index, got)| check_got(&gets, index, got)).count(), gets.len()),
    }
}

/// Puts, and waits for what comes of it.
fn write(store: &Store) {
    let done = store.put_batch(puts(), None).map(|(_, outcome)| outcome.result.unwrap()).count();
    assert_eq!(done, SLOTS as usize);
}

/// A store that holds record `slot` in each slot.
fn filled(disk: &Disk) -> Store {
    let (store, _) = open(disk, Durability::Relaxed);
    store.namespace(&tenant(0)).unwrap();
    (0..SLOTS).for_each(|slot| put(&store, slot, key(0, slot as u8)).unwrap());
    store
}

#[test]
fn batches_side_by_side_do_not_lose_an_outcome_a_buffer_or_a_slot() {
    explore(|| {
        let store = Arc::new(filled(&Disk::new()));
        let users: [fn(&Store); 3] = [read, read, write];
        let threads = users.map(|user| {
            let store = Arc::clone(&store);
            thread::spawn(move || user(&store))
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());

        assert!((0..SLOTS).all(|slot| holds(&store, slot, key(0, slot as u8 + 10))));
        write(&store);
        let gets: Vec<Get> = gets().into_iter().map(|get| Get { key: key(0, get.slot as u8 + 10), ..get }).collect();
        let read = store.get_batch(&gets, None).map(|(index, got)| check(gets[index].key, &got.unwrap())).count();
        assert_eq!(read, gets.len(), "not every buffer came back");
    });
}

#[test]
fn a_put_that_was_given_up_does_not_keep_its_slot_nor_undo_a_later_put() {
    explore(|| {
        let disk = Disk::new();
        let store = filled(&disk);
        let mut batch = store.put_batch(puts(), any_deadline());
        match thread_rng().gen_range(0..3) {
            0 => drop(batch),
            1 => {
                batch.cancel();
                batch.for_each(|(_, outcome)| check_put(outcome));
            }
            _ => batch.for_each(|(_, outcome)| check_put(outcome)),
        }
        for slot in 0..SLOTS {
            // It has its slot for as long as it is on its way.
            while put(&store, slot, key(0, slot as u8 + 20)).is_err() {
                thread::yield_now();
            }
        }
        // Closing waits for whatever is still on its way.
        drop(store);
        let (store, _) = open(&disk, Durability::Relaxed);
        assert!((0..SLOTS).all(|slot| holds(&store, slot, key(0, slot as u8 + 20))), "a record is lost");
    });
}

#[test]
fn a_store_that_is_closed_does_not_leave_a_batch_waiting_nor_lose_a_put() {
    explore(|| {
        let disk = Disk::new();
        let store = filled(&disk);
        let gets = gets();
        let reads = store.get_batch(&gets, None);
        let writes = store.put_batch(puts(), None);
        let heard: Arc<Mutex<usize>> = Arc::default();
        let called = {
            let (gets, heard) = (gets.clone(), Arc::clone(&heard));
            move |index, got| {
                check_got(&gets, index, got);
                *heard.lock().unwrap() += 1;
                ControlFlow::Continue(())
            }
        };
        store.get_batch(&gets, None).on_each(called);
        let reader = thread::spawn({
            let gets = gets.clone();
            move || reads.map(|(index, got)| check_got(&gets, index, got)).count()
        });
        drop(store);
        assert_eq!(reader.join().unwrap(), gets.len());
        assert_eq!(*heard.lock().unwrap(), gets.len());
        assert_eq!(writes.map(|(_, outcome)| outcome.result.unwrap()).count(), SLOTS as usize);
        let (store, report) = open(&disk, Durability::Relaxed);
        assert_eq!(report.dropped(), 0);
        assert!((0..SLOTS).all(|slot| holds(&store, slot, key(0, slot as u8 + 10))));
    });
}
