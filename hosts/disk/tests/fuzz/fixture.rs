//! The store that is damaged: two classes, small slots, payloads that follow from their keys.

use std::sync::Arc;

use reprise_core::Digest;
use reprise_disk::storage::{Access, Content, Storage};
use reprise_disk::{Buffer, GroupClass, IoOptions, Key, NamespaceRecord, OpenReport, Options, Store, StoreError};

use crate::disk::Disk;

/// Names that a file of the directory can have. The first seven are there in a store that is whole.
pub const NAMES: [&str; 12] = [
    "superblock",
    "catalogue",
    "history-11111111.table",
    "history-11111111-0000.chunk",
    "history-11111111-0001.chunk",
    "window-22222222.table",
    "window-22222222-0000.chunk",
    "history-33333333.table",
    "history-33333333-0000.chunk",
    "history-11111111-0002.chunk",
    "probe",
    "notes.txt",
];

/// The places in [`NAMES`] of each class's table and chunks.
pub const TABLES: [usize; 2] = [2, 5];
pub const CHUNKS: [&[usize]; 2] = [&[3, 4], &[6]];
pub const SLOTS_PER_CHUNK: u32 = 2;

pub fn classes() -> Vec<GroupClass> {
    let class = |group, name: &str, sections: &[u64], slots| GroupClass {
        group,
        name: name.into(),
        fingerprint: Digest([0x11 * (group + 1); 32]),
        payload_bytes: *sections.last().expect("a class has sections"),
        sections: sections.to_vec(),
        slots,
    };
    vec![class(0, "history", &[4096, 4500], 3), class(1, "window", &[100], 2)]
}

pub fn open(disk: &Disk) -> Result<(Store, OpenReport), StoreError> {
    let io = IoOptions { depth: 1, buffer_bytes: 1, threads: 1, ..IoOptions::default() };
    let options = Options { chunk_bytes: 2 * 8192, direct: false, io, ..Options::default() };
    Store::open_in(Arc::new(disk.clone()), &classes(), &options)
}

fn tenant(number: u16) -> NamespaceRecord {
    NamespaceRecord {
        check: 0x1000 + u64::from(number),
        model: "m".into(),
        revision: "r".into(),
        salt_hash: Digest([number as u8; 32]),
        adapter: String::new(),
        rank: 0,
        ranks: 1,
        block_tokens: 128,
        extensions: String::new(),
    }
}

/// The record that a whole store holds in a slot of any group: windows lie at the ends of blocks.
pub fn key(slot: u32) -> Key {
    Key { namespace: slot as u16 % 2, digest: Digest([slot as u8 + 1; 32]), position: 128 }
}

/// The payload of any record: whatever a store offers can be checked.
pub fn payload(class: &GroupClass, key: &Key) -> Vec<u8> {
    let mut state = key.digest.0.iter().fold(key.position, |state, byte| state.rotate_left(7) ^ u64::from(*byte));
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407 + u64::from(class.group));
        (state >> 33) as u8
    };
    (0..class.payload_bytes).map(|_| next()).collect()
}

/// Puts the record `key(slot)` into every slot.
pub fn fill(store: &Store) -> Result<(), StoreError> {
    let namespaces = [store.namespace(&tenant(0))?, store.namespace(&tenant(1))?];
    for class in classes() {
        for slot in 0..class.slots {
            let named = key(slot);
            let key = Key { namespace: namespaces[usize::from(named.namespace)], ..named };
            let mut buffer = Buffer::new();
            buffer.resize(class.payload_bytes as usize);
            buffer.bytes_mut().copy_from_slice(&payload(&class, &key));
            store.put(class.group, slot, &key, Digest([0; 32]), 5, &mut buffer)?;
        }
    }
    store.sync()
}

/// The files of a directory by their places in [`NAMES`]; `None` for one that is not there.
pub type Files = [Option<Vec<u8>>; NAMES.len()];

pub fn read_files(disk: &Disk) -> Files {
    NAMES.map(|name| {
        let file = disk.open(name, Access::Read, Content::Metadata).ok()?;
        let mut bytes = vec![0; file.len_bytes().expect("the disk is sound") as usize];
        file.read_at(&mut bytes, 0).expect("the disk is sound");
        Some(bytes)
    })
}

pub fn write_files(files: &Files) -> Disk {
    let disk = Disk::new();
    for (name, bytes) in NAMES.into_iter().zip(files) {
        if let Some(bytes) = bytes {
            let file = disk.open(name, Access::Create, Content::Metadata).expect("the disk is sound");
            file.write_at(bytes, 0).expect("the disk is sound");
        }
    }
    disk
}

/// The files of a store that is whole.
pub fn whole() -> Files {
    let disk = Disk::new();
    let (store, _) = open(&disk).expect("a new store opens");
    fill(&store).expect("a new store takes records");
    drop(store);
    read_files(&disk)
}
