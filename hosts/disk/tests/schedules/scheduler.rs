//! Schedules to try, and the small store that they are tried on.

use std::sync::Arc;

use reprise_core::Digest;
use reprise_disk::{
    Buffer, Durability, GroupClass, IoOptions, Key, NamespaceRecord, OpenReport, Options, Put, Store, StoreError,
};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner};

use crate::disk::Disk;
use crate::storage::Interleaved;

pub const GROUP: u8 = 3;
pub const SLOTS: u32 = 3;
const PAYLOAD_BYTES: usize = 4096 + 2000;

/// How many schedules of each kind a test tries: `REPRISE_DISK_SCHEDULES`, or a number that suits CI.
fn schedules() -> usize {
    match std::env::var("REPRISE_DISK_SCHEDULES") {
        Ok(number) => number.parse().expect("REPRISE_DISK_SCHEDULES is a number of schedules"),
        Err(_) => 500,
    }
}

/// Runs `test` in many schedules: half of them change threads at random, half of them at few places only. A schedule in
/// which all threads wait fails.
pub fn explore(test: impl Fn() + Send + Sync + Clone + 'static) {
    let mut config = Config::new();
    config.stack_size = 1 << 19;
    let run = |scheduler: Box<dyn Scheduler + Send>| Runner::new(scheduler, config.clone()).run(test.clone());
    run(Box::new(RandomScheduler::new_from_seed(1, schedules())));
    run(Box::new(PctScheduler::new_from_seed(2, 3, schedules())));
}

/// Two slots in the first chunk and one in the second, which are never open at the same time. One buffer for reads.
pub fn open(disk: &Disk, durability: Durability) -> (Store, OpenReport) {
    let class = GroupClass {
        group: GROUP,
        name: "window".into(),
        fingerprint: Digest([9; 32]),
        payload_bytes: PAYLOAD_BYTES as u64,
        sections: vec![4096, PAYLOAD_BYTES as u64],
        slots: SLOTS,
    };
    let options = Options {
        durability,
        chunk_bytes: 2 * class.slot_bytes(),
        direct: false,
        open_files: 1,
        io: IoOptions { depth: 2, buffer_bytes: 2 * class.slot_bytes(), threads: 2, ..IoOptions::default() },
    };
    Store::open_in(Arc::new(Interleaved(disk.clone())), &[class], &options).expect("the store opens")
}

pub fn tenant(number: u8) -> NamespaceRecord {
    NamespaceRecord {
        check: 0xabc0 + u64::from(number),
        model: "model".into(),
        revision: String::new(),
        salt_hash: Digest([number; 32]),
        adapter: String::new(),
        rank: 0,
        ranks: 1,
        block_tokens: 128,
        extensions: String::new(),
    }
}

pub fn key(namespace: u16, number: u8) -> Key {
    Key { namespace, digest: Digest([number; 32]), position: 128 * u64::from(number) }
}

/// A put of the record `key` into `slot`: each byte of the payload tells the record.
pub fn record(slot: u32, key: Key) -> Put {
    let mut buffer = Buffer::zeroed(PAYLOAD_BYTES);
    buffer.bytes_mut().fill(key.digest.0[0]);
    Put { group: GROUP, slot, key, parent: Digest([0; 32]), last_use: 1, buffer }
}

pub fn put(store: &Store, slot: u32, key: Key) -> Result<(), StoreError> {
    let Put { group, slot, key, parent, last_use, mut buffer } = record(slot, key);
    store.put(group, slot, &key, parent, last_use, &mut buffer)
}

/// Fails if these are not the bytes of the record.
pub fn check(key: Key, bytes: &[u8]) {
    assert!(
        bytes.len() == PAYLOAD_BYTES && bytes.iter().all(|byte| *byte == key.digest.0[0]),
        "wrong bytes for {key:?}"
    );
}

/// Whether the slot holds the record; fails if a read brings other bytes.
pub fn holds(store: &Store, slot: u32, key: Key) -> bool {
    let mut buffer = Buffer::new();
    match store.get(GROUP, slot, &key, &mut buffer) {
        Ok(()) => check(key, buffer.bytes()),
        Err(_) => assert!(buffer.is_empty(), "a miss left bytes in the buffer"),
    }
    !buffer.is_empty()
}
