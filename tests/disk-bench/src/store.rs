//! The store of Reprise, by batches.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use reprise_core::Digest;
use reprise_disk::{Buffer, Get, GroupClass, IoOptions, Key, NamespaceRecord, Options, Put, Store};

use crate::contender::{Closing, Contender, Reader};
use crate::interrupt;
use crate::records::{Records, Tally};

/// Batches under way at once, each as long as the depth, so that the device does not run dry at the end of one.
const BATCHES: usize = 3;

/// Bytes of a section: what can be read and checked by itself.
const SECTION_BYTES: u64 = 80 << 10;

/// The store with its defaults, but for the depth.
#[derive(Clone, Copy)]
pub struct Reprise {
    /// The most records that are with the device at once.
    pub depth: usize,
}

fn class(records: &Records) -> GroupClass {
    let payload_bytes = records.bytes as u64;
    let inner = (1..payload_bytes.div_ceil(SECTION_BYTES)).map(|section| section * SECTION_BYTES);
    GroupClass {
        group: 0,
        name: "history".to_owned(),
        fingerprint: Digest([7; 32]),
        payload_bytes,
        sections: inner.chain([payload_bytes]).collect(),
        slots: u32::try_from(records.count).expect("fewer than 2^32 records"),
    }
}

fn key(index: usize) -> Key {
    let mut digest = [0; 32];
    digest[..16].copy_from_slice(&Records::key(index).to_le_bytes());
    Key { namespace: 0, digest: Digest(digest), position: 128 * index as u64 }
}

fn get(index: usize) -> Get {
    Get { group: 0, slot: index as u32, key: key(index) }
}

impl Reprise {
    fn store(self, place: &Path, records: &Records) -> Result<Store> {
        // Room for as many reads as the depth allows.
        let buffer_bytes = (64 << 20).max(self.depth as u64 * class(records).slot_bytes());
        let io = IoOptions { depth: self.depth, buffer_bytes, ..IoOptions::default() };
        let (store, _) = Store::open(place, &[class(records)], &Options { io, ..Options::default() })?;
        store.namespace(&NamespaceRecord {
            check: 1,
            model: "bench".to_owned(),
            revision: String::new(),
            salt_hash: Digest([0; 32]),
            adapter: String::new(),
            rank: 0,
            ranks: 1,
            block_tokens: 128,
            extensions: String::new(),
        })?;
        Ok(store)
    }
}

fn put(index: usize, records: &Records, mut buffer: Buffer) -> Put {
    buffer.resize(records.bytes);
    buffer.bytes_mut().copy_from_slice(records.payload(index));
    Put { group: 0, slot: index as u32, key: key(index), parent: Digest([0; 32]), last_use: 0, buffer }
}

impl Contender for Reprise {
    fn name(&self) -> String {
        "Reprise".to_owned()
    }

    fn write(&self, place: &Path, records: &Records) -> Result<Closing> {
        let store = self.store(place, records)?;
        let mut spare: Vec<Buffer> = Vec::new();
        let mut batches = VecDeque::new();
        let mut firsts = (0..records.count).step_by(self.depth);
        loop {
            interrupt::check()?;
            while batches.len() < BATCHES
                && let Some(first) = firsts.next()
            {
                let range = first..records.count.min(first + self.depth);
                let puts = range.map(|index| put(index, records, spare.pop().unwrap_or_default())).collect();
                batches.push_back(store.put_batch(puts, None));
            }
            let Some(batch) = batches.pop_front() else { break };
            for (_, outcome) in batch {
                outcome.result.context("putting a record")?;
                spare.extend(outcome.buffer);
            }
        }
        Ok(Box::new(move || store.sync().context("syncing the store")))
    }

    fn open(&self, place: &Path, records: &Records) -> Result<Box<dyn Reader>> {
        let store = self.store(place, records)?;
        Ok(Box::new(StoreReader { store, depth: self.depth, buffer: Buffer::new() }))
    }
}

struct StoreReader {
    store: Store,
    depth: usize,
    buffer: Buffer,
}

impl Reader for StoreReader {
    fn read_all(&mut self, order: &Arc<[usize]>, tally: &Arc<Tally>) -> Result<()> {
        let mut batches = VecDeque::new();
        let mut parts = order.chunks(self.depth);
        loop {
            interrupt::check()?;
            while batches.len() < BATCHES
                && let Some(part) = parts.next()
            {
                let gets: Vec<Get> = part.iter().map(|index| get(*index)).collect();
                batches.push_back((part, self.store.get_batch(&gets, None)));
            }
            let Some((part, batch)) = batches.pop_front() else { return Ok(()) };
            for (at, got) in batch {
                if let Ok(loan) = got {
                    tally.check(part[at], &loan);
                }
            }
        }
    }

    fn read_one(&mut self, index: usize, tally: &Tally) -> Result<()> {
        let Get { group, slot, key } = get(index);
        if self.store.get(group, slot, &key, &mut self.buffer).is_ok() {
            tally.check(index, self.buffer.bytes());
        }
        Ok(())
    }
}
