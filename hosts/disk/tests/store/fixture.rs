//! A small store and records whose bytes follow from their key.

use std::path::Path;

use reprise_core::Digest;
use reprise_disk::{
    Buffer, Get, Got, GroupClass, Key, Miss, NamespaceRecord, OpenReport, Options, Put, Store, StoreError,
};

/// Group 0: three sections, and a trailer that fits behind the payload.
pub const HISTORY: u8 = 0;
/// Group 1: two sections that fill their pages, so that the trailer needs a page of its own.
pub const WINDOW: u8 = 1;

pub fn classes() -> Vec<GroupClass> {
    vec![
        GroupClass {
            group: HISTORY,
            name: "history".into(),
            fingerprint: Digest([0x11; 32]),
            payload_bytes: 10_001,
            sections: vec![4096, 8192, 10_001],
            slots: 10,
        },
        GroupClass {
            group: WINDOW,
            name: "window".into(),
            fingerprint: Digest([0x22; 32]),
            payload_bytes: 8192,
            sections: vec![4096, 8192],
            slots: 5,
        },
    ]
}

/// Chunks of four slots of 12 KiB.
pub fn options() -> Options {
    Options { chunk_bytes: 4 * 12_288, ..Options::default() }
}

pub fn open(dir: &Path) -> (Store, OpenReport) {
    Store::open(dir, &classes(), &options()).expect("the store opens")
}

pub fn tenant(number: u64) -> NamespaceRecord {
    NamespaceRecord {
        check: 0x1000 + number,
        model: "deepseek-v4-flash".into(),
        revision: "r1".into(),
        salt_hash: Digest([number as u8; 32]),
        adapter: String::new(),
        rank: 0,
        ranks: 1,
        block_tokens: 128,
        extensions: String::new(),
    }
}

pub fn key(namespace: u16, number: u8) -> Key {
    Key { namespace, digest: Digest([number; 32]), position: 128 * (u64::from(number) + 1) }
}

/// The payload of a record: different in every byte from that of its neighbours.
pub fn payload(group: u8, key: &Key) -> Vec<u8> {
    let class = classes().into_iter().find(|class| class.group == group).expect("a group of the fixture");
    let mut state = u64::from(key.digest.0[0]) << 32 | u64::from(key.namespace) << 16 | key.position ^ u64::from(group);
    let words = (0..class.payload_bytes.div_ceil(8)).flat_map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state ^ state >> 33).to_le_bytes()
    });
    words.take(class.payload_bytes as usize).collect()
}

pub fn put(store: &Store, group: u8, slot: u32, key: &Key) -> Result<(), StoreError> {
    let bytes = payload(group, key);
    let mut buffer = Buffer::zeroed(bytes.len());
    buffer.bytes_mut().copy_from_slice(&bytes);
    store.put(group, slot, key, Digest([0xee; 32]), 1000 + u64::from(slot), &mut buffer)
}

/// What a read of the record brings; fails if it brings wrong bytes.
pub fn get(store: &Store, group: u8, slot: u32, key: &Key) -> Result<(), Miss> {
    let mut buffer = Buffer::new();
    let result = store.get(group, slot, key, &mut buffer);
    match &result {
        Ok(()) => assert!(buffer.bytes() == payload(group, key), "wrong bytes in slot {slot} of group {group}"),
        Err(_) => assert!(buffer.is_empty(), "a miss left bytes in the buffer"),
    }
    result
}

/// A record to be put, and the same to be read.
pub fn put_of(group: u8, slot: u32, key: Key) -> Put {
    let bytes = payload(group, &key);
    let mut buffer = Buffer::zeroed(bytes.len());
    buffer.bytes_mut().copy_from_slice(&bytes);
    Put { group, slot, key, parent: Digest([0xee; 32]), last_use: 1000, buffer }
}

/// Reads of the records of [`filled`], of one group.
pub fn gets_of(group: u8) -> Vec<Get> {
    let slots = classes()[usize::from(group)].slots;
    (0..slots).map(|slot| Get { group, slot, key: key(0, slot as u8) }).collect()
}

/// Fails if what came of a read is other bytes than the record's.
pub fn check(get: &Get, got: Got) -> Result<(), Miss> {
    let loan = got?;
    assert!(*loan == payload(get.group, &get.key)[..], "wrong bytes for {get:?}");
    Ok(())
}

/// A store with a tenant and records 0 to 9 of group 0 and 0 to 4 of group 1, each in the slot of its number.
pub fn filled(dir: &Path) -> Store {
    filled_with(dir, &classes())
}

/// Like [`filled`], with other numbers of slots.
pub fn filled_with(dir: &Path, classes: &[GroupClass]) -> Store {
    let (store, _) = Store::open(dir, classes, &options()).expect("the store opens");
    let namespace = store.namespace(&tenant(0)).expect("a namespace is taken");
    assert_eq!(namespace, 0);
    for class in classes {
        for slot in 0..class.slots {
            put(&store, class.group, slot, &key(namespace, slot as u8)).expect("a record is taken");
        }
    }
    store
}
