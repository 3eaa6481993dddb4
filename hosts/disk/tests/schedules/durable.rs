//! What a sync has promised, whoever else puts, makes files and syncs at the same time.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use reprise_disk::{Durability, Store};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

use crate::disk::Disk;
use crate::medium::Crash;
use crate::scheduler::{SLOTS, explore, holds, key, open, put, record, tenant};

/// A disk whose power goes at the very moment at which so many records are owed.
struct Owed {
    disk: Disk,
    limit: usize,
    /// Slot, namespace and tenant.
    records: Mutex<BTreeSet<(u32, u16, u8)>>,
    after: Mutex<Option<Disk>>,
}

impl Owed {
    fn insert(&self, record: (u32, u16, u8)) {
        let mut records = self.records.lock().unwrap();
        let mut after = self.after.lock().unwrap();
        if after.is_none() {
            records.insert(record);
            *after = (records.len() == self.limit).then(|| self.disk.crash(Crash::LoseAll));
        }
    }
}

/// Puts a record of a tenant and makes it durable, unless the power goes.
fn put_for_good(store: &Store, durability: Durability, slot: u32, owed: &Owed) {
    // Two of the threads have the same tenant.
    let number = slot as u8 / 2;
    let Ok(namespace) = store.namespace(&tenant(number)) else { return };
    let mut done = put(store, slot, key(namespace, slot as u8 + 1)).is_ok();
    if durability == Durability::Relaxed {
        done = done && store.sync().is_ok();
    }
    if done {
        owed.insert((slot, namespace, number));
    }
}

/// Puts every record of a tenant's in one batch. What is reported is owed from that moment on.
fn put_batch_for_good(store: &Store, owed: &Owed) {
    let Ok(namespace) = store.namespace(&tenant(0)) else { return };
    let puts = (0..SLOTS).map(|slot| record(slot, key(namespace, slot as u8 + 1))).collect();
    for (slot, outcome) in store.put_batch(puts, None) {
        if outcome.result.is_ok() {
            owed.insert((slot as u32, namespace, 0));
        }
    }
}

fn crash_while_a_batch_is_put() {
    let disk = Disk::new();
    let store = Arc::new(open(&disk, Durability::Strict).0);
    let limit = thread_rng().gen_range(1..=SLOTS as usize);
    let owed = Arc::new(Owed { disk, limit, records: Mutex::default(), after: Mutex::default() });
    // Somebody else syncs meanwhile, and takes marks away.
    let other = thread::spawn({
        let store = Arc::clone(&store);
        move || drop(store.sync())
    });
    put_batch_for_good(&store, &owed);
    other.join().unwrap();
    drop(store);
    check_owed(&owed, Durability::Strict);
}

fn crash_while_threads_put(durability: Durability) {
    let disk = Disk::new();
    let store = Arc::new(open(&disk, durability).0);
    let limit = thread_rng().gen_range(1..=SLOTS as usize);
    let owed = Arc::new(Owed { disk, limit, records: Mutex::default(), after: Mutex::default() });
    let putters: Vec<_> = (0..SLOTS)
        .map(|slot| {
            let (store, owed) = (Arc::clone(&store), Arc::clone(&owed));
            thread::spawn(move || put_for_good(&store, durability, slot, &owed))
        })
        .collect();
    putters.into_iter().for_each(|thread| thread.join().unwrap());
    let checks: Vec<u64> = store.namespaces().iter().map(|(_, namespace)| namespace.check).collect();
    assert!(checks.iter().collect::<BTreeSet<_>>().len() == checks.len(), "a tenant has two numbers: {checks:x?}");
    drop(store);
    check_owed(&owed, durability);
}

/// Opens what the crash has left, and fails if a record that was owed is not there.
fn check_owed(owed: &Owed, durability: Durability) {
    let after = owed.after.lock().unwrap().take().expect("every record is owed in the end");
    let (store, _) = open(&after, durability);
    let namespaces = store.namespaces();
    for &(slot, namespace, number) in owed.records.lock().unwrap().iter() {
        assert_eq!(namespaces[usize::from(namespace)].1, tenant(number), "the tenant's number is another's");
        assert!(holds(&store, slot, key(namespace, slot as u8 + 1)), "the record in slot {slot} is lost");
    }
}

#[test]
fn what_a_sync_has_made_durable_is_not_lost_because_another_thread_syncs() {
    explore(|| crash_while_threads_put(Durability::Relaxed));
}

#[test]
fn what_a_strict_put_has_promised_is_not_lost_because_another_thread_makes_the_files() {
    explore(|| crash_while_threads_put(Durability::Strict));
}

#[test]
fn what_a_strict_batch_has_promised_is_not_lost_because_another_thread_syncs() {
    explore(crash_while_a_batch_is_put);
}
