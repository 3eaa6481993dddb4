//! A store with a map beside it that knows what every read may bring and what it must bring.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use reprise_core::Digest;
use reprise_disk::{
    Buffer, Durability, Get, GroupClass, IoOptions, Key, Miss, NamespaceRecord, OpenReport, Options, Put, Store,
    StoreError,
};

use crate::disk::Disk;

/// Two groups: trailers that fit behind the payload, and trailers that do not.
pub fn classes(history_slots: u32) -> Vec<GroupClass> {
    let class = |group, name: &str, payload_bytes, sections: &[u64], slots| GroupClass {
        group,
        name: name.into(),
        fingerprint: Digest([group + 1; 32]),
        payload_bytes,
        sections: sections.to_vec(),
        slots,
    };
    vec![class(0, "history", 5000, &[4096, 5000], history_slots), class(1, "window", 8192, &[4096, 8192], 3)]
}

pub fn options(durability: Durability) -> Options {
    // Three slots of history to a chunk, two of windows, and fewer handles than chunks.
    // One thread, so that a batch has one order.
    let io = IoOptions { threads: 1, ..IoOptions::default() };
    Options { durability, chunk_bytes: 3 * 8192, direct: false, open_files: 2, io }
}

pub fn tenant(number: u8) -> NamespaceRecord {
    NamespaceRecord {
        check: 0xabc0 + u64::from(number),
        model: "model".into(),
        revision: "r".repeat(usize::from(number)),
        salt_hash: Digest([number; 32]),
        adapter: String::new(),
        rank: 0,
        ranks: 1,
        block_tokens: 128,
        extensions: String::new(),
    }
}

pub fn key(namespace: u16, number: u16) -> Key {
    let mut digest = [0; 32];
    digest[..2].copy_from_slice(&number.to_le_bytes());
    Key { namespace, digest: Digest(digest), position: 128 * u64::from(number) }
}

/// The payload of the `version`-th put under a key.
fn fill(bytes: &mut [u8], group: u8, tenant: u8, key: &Key, version: u32) {
    let seed = [u64::from(group), u64::from(tenant), key.position, u64::from(version)];
    let mut state = seed.iter().fold(1, |state: u64, part| state.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ part);
    for word in bytes.chunks_mut(8) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        word.copy_from_slice(&(state ^ state >> 29).to_le_bytes()[..word.len()]);
    }
}

/// What names a record for good: the number of a namespace can change hands when the catalogue is damaged.
type Name = (u8, u8, u16);

#[derive(Clone, Copy, Debug)]
struct Held {
    name: Name,
    version: u32,
    durable: bool,
}

/// A store and what is known about it.
pub struct Model {
    pub store: Store,
    pub report: OpenReport,
    classes: Vec<GroupClass>,
    durability: Durability,
    memory: Memory,
    buffer: Buffer,
    /// Whether whole records are put and read as batches of one.
    pub batched: bool,
    /// How long a batch may take, if it has a deadline.
    pub patience: Option<Duration>,
}

/// What outlives the store.
#[derive(Default)]
pub struct Memory {
    /// How often each record was put or tried to be put.
    versions: BTreeMap<Name, u32>,
    /// The record that a slot holds, unless something went wrong since.
    held: BTreeMap<(u8, u32), Held>,
    /// The index that each tenant had when it was last asked for.
    pub tenants: BTreeMap<u8, u16>,
    pub failed_puts: u64,
    pub hits: u64,
    pub misses: u64,
    /// Whether a read that brings wrong bytes is counted instead of ending the test.
    pub counts_wrong: bool,
    pub wrong_reads: u64,
}

impl Memory {
    /// After a crash, only what was synced is owed.
    pub fn forget_volatile(&mut self) {
        self.held.retain(|_, held| held.durable);
    }

    /// After damage, nothing is owed.
    pub fn forget_all(&mut self) {
        self.held.clear();
    }

    fn names(&self) -> BTreeSet<Name> {
        self.versions.keys().copied().collect()
    }
}

impl Model {
    pub fn open(
        disk: &Disk,
        history_slots: u32,
        durability: Durability,
        mut memory: Memory,
    ) -> Result<Self, Box<(StoreError, Memory)>> {
        let classes = classes(history_slots);
        match Store::open_in(Arc::new(disk.clone()), &classes, &options(durability)) {
            Ok((store, report)) => {
                memory.held.retain(|(group, slot), _| *slot < classes[usize::from(*group)].slots);
                memory.tenants =
                    store.namespaces().iter().map(|(index, namespace)| (namespace.salt_hash.0[0], *index)).collect();
                Ok(Self {
                    store,
                    report,
                    classes,
                    durability,
                    memory,
                    buffer: Buffer::new(),
                    batched: false,
                    patience: None,
                })
            }
            Err(error) => Err(Box::new((error, memory))),
        }
    }

    /// Closes the store; it syncs.
    pub fn close(self) -> Memory {
        self.memory
    }

    pub fn memory(&mut self) -> &mut Memory {
        &mut self.memory
    }

    pub fn slots(&self, group: u8) -> u32 {
        self.classes[usize::from(group)].slots
    }

    pub fn namespace(&mut self, number: u8) -> Result<u16, StoreError> {
        let index = self.store.namespace(&tenant(number))?;
        self.memory.tenants.insert(number, index);
        Ok(index)
    }

    pub fn put(&mut self, group: u8, slot: u32, tenant: u8, number: u16) -> Result<(), StoreError> {
        let (mut put, held) = self.next_put(&(group, slot, tenant, number))?;
        if self.batched {
            return self.put_all(vec![(put, held)]).pop().expect("a put has an outcome");
        }
        let Put { key, parent, last_use, .. } = put;
        let result = self.store.put(group, slot, &key, parent, last_use, &mut put.buffer);
        self.note_put(group, slot, held, result)
    }

    /// Puts records in one batch; no two into the same slot. Says what has come of them, but of those whose namespace was not
    /// to be had.
    pub fn put_many(&mut self, records: &[(u8, u32, u8, u16)]) -> Vec<Result<(), StoreError>> {
        let puts = records.iter().filter_map(|record| self.next_put(record).ok()).collect();
        self.put_all(puts)
    }

    fn put_all(&mut self, puts: Vec<(Put, Held)>) -> Vec<Result<(), StoreError>> {
        let places: Vec<(u8, u32, Held)> = puts.iter().map(|(put, held)| (put.group, put.slot, *held)).collect();
        let puts = puts.into_iter().map(|(put, _)| put).collect();
        let batch = self.store.put_batch(puts, self.deadline());
        let mut results: Vec<_> = batch.map(|(index, outcome)| (index, outcome.result)).collect();
        results.sort_by_key(|(index, _)| *index);
        let note = |(index, result): (usize, _)| {
            let (group, slot, held) = places[index];
            self.note_put(group, slot, held, result)
        };
        results.into_iter().map(note).collect()
    }

    /// The next version of a record, and what is known once it is put. What its slot held is not owed any more.
    fn next_put(&mut self, &(group, slot, tenant, number): &(u8, u32, u8, u16)) -> Result<(Put, Held), StoreError> {
        let key = key(self.namespace(tenant)?, number);
        let name = (group, tenant, number);
        let version = self.memory.versions.entry(name).or_default();
        *version += 1;
        let version = *version;
        self.memory.held.remove(&(group, slot));
        let mut buffer = Buffer::zeroed(self.classes[usize::from(group)].payload_bytes as usize);
        fill(buffer.bytes_mut(), group, tenant, &key, version);
        let durable = self.durability == Durability::Strict;
        let put = Put { group, slot, key, parent: Digest([9; 32]), last_use: 7, buffer };
        Ok((put, Held { name, version, durable }))
    }

    fn note_put(&mut self, group: u8, slot: u32, held: Held, result: Result<(), StoreError>) -> Result<(), StoreError> {
        self.memory.failed_puts += u64::from(result.is_err());
        result?;
        self.memory.held.insert((group, slot), held);
        Ok(())
    }

    fn deadline(&self) -> Option<Instant> {
        self.patience.map(|patience| Instant::now() + patience)
    }

    fn get_payload(&mut self, group: u8, slot: u32, key: Key) -> Result<(), Miss> {
        if !self.batched {
            return self.store.get(group, slot, &key, &mut self.buffer);
        }
        let mut batch = self.store.get_batch(&[Get { group, slot, key }], self.deadline());
        let (_, got) = batch.next().expect("a read has an outcome");
        self.buffer.clear();
        let loan = got?;
        self.buffer.resize(loan.len());
        self.buffer.bytes_mut().copy_from_slice(&loan);
        Ok(())
    }

    pub fn free(&mut self, group: u8, slot: u32) -> Result<(), StoreError> {
        self.memory.held.remove(&(group, slot));
        self.store.free(group, slot)
    }

    pub fn sync(&mut self) -> Result<(), StoreError> {
        self.store.sync()?;
        self.memory.held.values_mut().for_each(|held| held.durable = true);
        Ok(())
    }

    /// Reads a record, in full or one section, and fails on wrong bytes.
    pub fn get(&mut self, group: u8, slot: u32, tenant: u8, number: u16, section: Option<usize>) -> Result<(), Miss> {
        let Some(namespace) = self.memory.tenants.get(&tenant) else { return Err(Miss::Absent) };
        let key = key(*namespace, number);
        let result = match section {
            None => self.get_payload(group, slot, key),
            Some(section) => self.store.get_sections(group, slot, &key, section..section + 1, &mut self.buffer),
        };
        let class = &self.classes[usize::from(group)];
        match &result {
            Err(_) => {
                assert!(self.buffer.is_empty());
                self.memory.misses += 1;
            }
            Ok(()) => {
                let range = match section {
                    None => 0..class.payload_bytes as usize,
                    Some(0) => 0..class.sections[0] as usize,
                    Some(section) => class.sections[section - 1] as usize..class.sections[section] as usize,
                };
                let name = (group, tenant, number);
                let versions = self.memory.versions.get(&name).copied().unwrap_or(0);
                let mut expected = vec![0; class.payload_bytes as usize];
                let right = |version: &u32| {
                    fill(&mut expected, group, tenant, &key, *version);
                    self.buffer.bytes() == &expected[range.clone()]
                };
                let found = (1..=versions).rev().find(right);
                let Some(found) = found else {
                    assert!(self.memory.counts_wrong, "wrong bytes for {name:?} in slot {slot}");
                    self.memory.wrong_reads += 1;
                    return result;
                };
                if let Some(held) = self.memory.held.get(&(group, slot)).filter(|held| held.name == name) {
                    assert_eq!(found, held.version, "an older version of {name:?} in slot {slot}");
                }
                self.memory.hits += 1;
            }
        }
        result
    }

    /// Asks every slot for every record that was ever put into its group: no wrong bytes, and what is owed is there.
    pub fn check_all(&mut self) {
        for (group, tenant, number) in self.memory.names() {
            for slot in 0..self.slots(group) {
                let result = self.get(group, slot, tenant, number, None);
                let owed =
                    self.memory.held.get(&(group, slot)).is_some_and(|held| held.name == (group, tenant, number));
                if owed {
                    result.unwrap_or_else(|miss| panic!("slot {slot} of group {group} is lost: {miss}"));
                }
            }
        }
    }

    /// Every record that the open reported can be asked for without harm, and lies in a slot of its group.
    pub fn check_recovered(&mut self) {
        for group in [0, 1] {
            let records = self.store.take_records(group);
            assert_eq!(records.len() as u64, self.report.classes[usize::from(group)].records);
            for record in records {
                assert!(record.slot < self.slots(group));
                let number = u16::from_le_bytes([record.digest.0[0], record.digest.0[1]]);
                assert_eq!(record.position, 128 * u64::from(number), "an entry was made up");
                let tenants = self.memory.tenants.clone();
                let (tenant, _) =
                    tenants.iter().find(|(_, index)| **index == record.namespace).expect("a known tenant");
                let _ = self.get(group, record.slot, *tenant, number, None);
            }
        }
    }
}
