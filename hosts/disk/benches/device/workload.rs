//! Records that are put and got in batches, without end.

use std::collections::VecDeque;
use std::path::Path;

use reprise_core::Digest;
use reprise_disk::{
    Batch, Buffer, EngineChoice, Get, Got, GroupClass, IoOptions, Key, NamespaceRecord, Options, Put, PutOutcome, Store,
};

use crate::rate::{Rate, measure};

/// Transfers at once.
pub const DEPTH: usize = 32;

pub fn class(payload_bytes: u64, sections: u64, slots: u32) -> GroupClass {
    let section = (payload_bytes / sections).next_multiple_of(4096);
    let ends = (1..sections).map(|index| index * section).chain([payload_bytes]).collect();
    GroupClass { group: 0, name: "history".into(), fingerprint: Digest([7; 32]), payload_bytes, sections: ends, slots }
}

pub fn key(slot: u32) -> Key {
    let mut digest = [0; 32];
    digest[..4].copy_from_slice(&slot.to_le_bytes());
    Key { namespace: 0, digest: Digest(digest), position: 128 * u64::from(slot) }
}

/// Opens a store of one class, and says what it found.
pub fn open(dir: &Path, class: &GroupClass, engine: EngineChoice) -> (Store, String) {
    let io = IoOptions { engine, depth: DEPTH, ..IoOptions::default() };
    let options = Options { io, ..Options::default() };
    let (store, report) = Store::open(dir, std::slice::from_ref(class), &options).unwrap();
    let namespace = NamespaceRecord {
        check: 1,
        model: "bench".into(),
        revision: String::new(),
        salt_hash: Digest([0; 32]),
        adapter: String::new(),
        rank: 0,
        ranks: 1,
        block_tokens: 128,
        extensions: String::new(),
    };
    assert_eq!(store.namespace(&namespace).unwrap(), 0);
    (store, report.to_string())
}

/// Slots in an order that jumps about, without end; none comes twice within a round. The stride is a prime that divides
/// none of the numbers of slots.
pub fn wandering(slots: u32) -> impl Iterator<Item = u32> {
    (0..).map(move |step: u64| (step * 1009 % u64::from(slots)) as u32)
}

pub fn put_of(slot: u32, payload_bytes: u64, mut buffer: Buffer) -> Put {
    buffer.resize(payload_bytes as usize);
    buffer.bytes_mut()[..4].copy_from_slice(&slot.to_le_bytes());
    Put { group: 0, slot, key: key(slot), parent: Digest([0; 32]), last_use: 0, buffer }
}

/// How many batches are under way at once, so that the device does not run dry at the end of one.
const BATCHES: usize = 3;

/// Reads records without end, and is asked again and again for the bytes that came.
pub struct Reading<'a, I> {
    store: &'a Store,
    payload_bytes: u64,
    slots: I,
    batches: VecDeque<Batch<Got>>,
}

impl<'a, I: Iterator<Item = u32>> Reading<'a, I> {
    pub fn new(store: &'a Store, payload_bytes: u64, slots: I) -> Self {
        Self { store, payload_bytes, slots, batches: VecDeque::new() }
    }

    pub fn measure(&mut self) -> Rate {
        let rate = measure(self.payload_bytes, self, Self::step);
        // What is under way would miss its deadline while the other side has its turn.
        self.batches.clear();
        rate
    }

    fn step(&mut self) -> u64 {
        while self.batches.len() < BATCHES {
            let gets: Vec<Get> =
                self.slots.by_ref().take(2 * DEPTH).map(|slot| Get { group: 0, slot, key: key(slot) }).collect();
            self.batches.push_back(self.store.get_batch(&gets, None));
        }
        let batch = self.batches.pop_front().expect("there are some");
        batch.map(|(_, got)| drop(got.expect("the record is there"))).count() as u64
    }
}

/// Writes records without end. A slot comes again long after it was written.
pub struct Writing<'a, I> {
    store: &'a Store,
    payload_bytes: u64,
    slots: I,
    batches: VecDeque<Batch<PutOutcome>>,
    spare: Vec<Buffer>,
}

impl<'a, I: Iterator<Item = u32>> Writing<'a, I> {
    pub fn new(store: &'a Store, payload_bytes: u64, slots: I) -> Self {
        Self { store, payload_bytes, slots, batches: VecDeque::new(), spare: Vec::new() }
    }

    pub fn measure(&mut self) -> Rate {
        let rate = measure(self.payload_bytes, self, Self::step);
        // A slot that is still being put into would be busy for the other side.
        let left = self.batches.drain(..).flatten();
        left.for_each(|(_, outcome)| outcome.result.expect("the record is taken"));
        rate
    }

    fn step(&mut self) -> u64 {
        while self.batches.len() < BATCHES {
            let (payload_bytes, spare) = (self.payload_bytes, &mut self.spare);
            let put = |slot| put_of(slot, payload_bytes, spare.pop().unwrap_or_default());
            let puts = self.slots.by_ref().take(2 * DEPTH).map(put).collect();
            self.batches.push_back(self.store.put_batch(puts, None));
        }
        let batch = self.batches.pop_front().expect("there are some");
        let outcomes = batch.map(|(_, outcome)| {
            outcome.result.expect("the record is taken");
            self.spare.extend(outcome.buffer);
        });
        outcomes.count() as u64
    }
}

/// Puts every record once.
pub fn fill(store: &Store, class: &GroupClass) {
    let mut spare = Vec::new();
    for first in (0..class.slots).step_by(DEPTH) {
        let range = first..class.slots.min(first + DEPTH as u32);
        let puts = range.map(|slot| put_of(slot, class.payload_bytes, spare.pop().unwrap_or_default())).collect();
        for (_, outcome) in store.put_batch(puts, None) {
            outcome.result.expect("the record is taken");
            spare.extend(outcome.buffer);
        }
    }
    store.sync().unwrap();
}
