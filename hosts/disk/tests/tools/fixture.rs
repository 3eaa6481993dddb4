//! Stores with paths of blocks and checkpoints at their ends, whose bytes follow from their names.

use std::collections::BTreeMap;
use std::path::Path;

use reprise_core::Digest;
use reprise_disk::tools::{Maintenance, Removal};
use reprise_disk::{Buffer, GroupClass, Key, Miss, NamespaceRecord, OpenReport, Options, Recovered, Store};

pub const HISTORY: u8 = 0;
pub const WINDOW: u8 = 1;
pub const DRAFT: u8 = 2;

pub fn classes(blocks: u32, checkpoints: u32) -> Vec<GroupClass> {
    let class = |group: u8, name: &str, payload_bytes, slots| GroupClass {
        group,
        name: name.into(),
        fingerprint: Digest([0x11 * (group + 1); 32]),
        payload_bytes,
        sections: vec![4096, payload_bytes],
        slots,
    };
    vec![
        class(HISTORY, "history", 6000, blocks),
        class(WINDOW, "window", 5000, checkpoints),
        class(DRAFT, "draft", 7000, checkpoints),
    ]
}

/// Four slots to a chunk.
pub fn options() -> Options {
    Options { chunk_bytes: 4 * 8192, ..Options::default() }
}

pub fn tenant(number: u8) -> NamespaceRecord {
    NamespaceRecord {
        check: 0x2000 + u64::from(number),
        model: "model".into(),
        revision: format!("r{number}"),
        salt_hash: Digest([number; 32]),
        adapter: String::new(),
        rank: 0,
        ranks: 1,
        block_tokens: 128,
        extensions: String::new(),
    }
}

/// The digest of the block at the end of a path, which `path` spells: one letter a block.
pub fn digest(tenant: u8, path: &str) -> Digest {
    let mut digest = [0; 32];
    digest[0] = tenant + 1;
    digest[1..=path.len()].copy_from_slice(path.as_bytes());
    digest[31] = path.len() as u8;
    Digest(digest)
}

pub fn key(tenant: u8, path: &str) -> Key {
    Key { namespace: u16::from(tenant), digest: digest(tenant, path), position: 128 * path.len() as u64 }
}

/// Sixteen bytes that are in every payload of a tenant and nowhere else.
pub fn mark(tenant: u8) -> [u8; 16] {
    std::array::from_fn(|at| (tenant + 3).wrapping_mul((at as u8).wrapping_mul(37) | 1))
}

pub fn payload(group: u8, tenant: u8, path: &str) -> Vec<u8> {
    let bytes = classes(1, 1)[usize::from(group)].payload_bytes as usize;
    let digest = digest(tenant, path).0;
    let body = (0..bytes).map(|at| digest[at % 31] ^ (at / 31) as u8 ^ group);
    mark(tenant).into_iter().chain(body).take(bytes).collect()
}

/// A store that is being filled: blocks by path, in slots from 0 on.
pub struct Filling {
    pub store: Store,
    next: [u32; 2],
}

impl Filling {
    pub fn new(dir: &Path, blocks: u32, checkpoints: u32, tenants: u8) -> Self {
        let (store, _) = Store::open(dir, &classes(blocks, checkpoints), &options()).unwrap();
        for number in 0..tenants {
            assert_eq!(store.namespace(&tenant(number)).unwrap(), u16::from(number));
        }
        Self { store, next: [0, 0] }
    }

    /// Puts the block at the end of `path`.
    pub fn block(&mut self, tenant: u8, path: &str, last_use: u64) -> &mut Self {
        let slot = self.next[0];
        self.next[0] += 1;
        self.put(HISTORY, slot, tenant, path, last_use)
    }

    /// Puts the checkpoint at the end of `path`.
    pub fn checkpoint(&mut self, tenant: u8, path: &str, last_use: u64) -> &mut Self {
        let slot = self.next[1];
        self.next[1] += 1;
        self.put(WINDOW, slot, tenant, path, last_use).put(DRAFT, slot, tenant, path, last_use)
    }

    pub fn put(&mut self, group: u8, slot: u32, tenant: u8, path: &str, last_use: u64) -> &mut Self {
        let bytes = payload(group, tenant, path);
        let mut buffer = Buffer::zeroed(bytes.len());
        buffer.bytes_mut().copy_from_slice(&bytes);
        let parent = if path.len() > 1 { digest(tenant, &path[..path.len() - 1]) } else { Digest::default() };
        self.store.put(group, slot, &key(tenant, path), parent, last_use, &mut buffer).unwrap();
        self
    }
}

/// A record by what it is: group, tenant, path.
pub type Name = (u8, u8, String);

pub fn name(group: u8, record: &Recovered) -> Name {
    let length = usize::from(record.digest.0[31]);
    (group, record.digest.0[0] - 1, String::from_utf8(record.digest.0[1..=length].to_vec()).unwrap())
}

/// Opens the store with as many slots as it has, reads every record that the open reports, and returns them by name. Wrong bytes and
/// records that cannot be read fail.
pub fn read_all(dir: &Path, blocks: u32, checkpoints: u32) -> (BTreeMap<Name, Recovered>, OpenReport) {
    let (store, report) = Store::open(dir, &classes(blocks, checkpoints), &options()).unwrap();
    let tenants: BTreeMap<u16, u8> =
        store.namespaces().iter().map(|(index, namespace)| (*index, namespace.salt_hash.0[0])).collect();
    let mut found = BTreeMap::new();
    for group in [HISTORY, WINDOW, DRAFT] {
        for record in store.take_records(group) {
            let name = name(group, &record);
            assert_eq!(tenants[&record.namespace], name.1, "a record of another tenant");
            let mut buffer = Buffer::new();
            let key = Key { namespace: record.namespace, digest: record.digest, position: record.position };
            let got: Result<(), Miss> = store.get(group, record.slot, &key, &mut buffer);
            got.unwrap_or_else(|miss| panic!("{name:?} in slot {}: {miss}", record.slot));
            assert!(buffer.bytes() == payload(group, name.1, &name.2), "wrong bytes for {name:?}");
            found.insert(name, record);
        }
    }
    (found, report)
}

/// Takes records out of a store that nobody has open.
pub fn remove(dir: &Path, removal: &Removal) -> u64 {
    Maintenance::open(dir).unwrap().remove(removal, &mut |_, _| {}).unwrap().returned_bytes
}

/// The names in an order that reads well: `0a` is block `a`, `1a` its window.
pub fn names(found: &BTreeMap<Name, Recovered>, tenant: u8) -> Vec<String> {
    let of_tenant = found.keys().filter(|name| name.1 == tenant);
    of_tenant.map(|(group, _, path)| format!("{group}{path}")).collect()
}

/// All bytes of all chunk files.
pub fn chunk_bytes(dir: &Path) -> Vec<u8> {
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let chunks = files.filter(|path| path.extension().is_some_and(|extension| extension == "chunk"));
    chunks.flat_map(|path| std::fs::read(path).unwrap()).collect()
}
