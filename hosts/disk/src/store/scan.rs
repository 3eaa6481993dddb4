//! One pass over a slot table: what is there, and what has to go.

use std::io;

use reprise_core::Digest;
use zerocopy::FromBytes;

use crate::class::{Geometry, GroupClass};
use crate::format::table::{self, ENTRY_BYTES, Entry};
use crate::record::{NamespaceRecord, Recovered};
use crate::report::Dropped;
use crate::storage::{StorageFile, read_up_to, write_all};

/// Entries that are read at once: 1 MiB of table.
const BATCH_SLOTS: u32 = 8192;

/// A table, read in batches of slots.
pub struct Batches {
    next: u32,
    end: u32,
    bytes: Vec<u8>,
}

impl Batches {
    /// All slots that lie in a file of `len_bytes`.
    pub fn new(len_bytes: u64) -> Self {
        let end = table::slots_in(len_bytes);
        Self { next: 0, end, bytes: vec![0; ENTRY_BYTES * end.min(BATCH_SLOTS) as usize] }
    }

    /// The next batch, or `None` at the end.
    pub fn next(&mut self, file: &dyn StorageFile) -> Option<Batch<'_>> {
        let first = self.next;
        let end = first.saturating_add(BATCH_SLOTS).min(self.end);
        if first == end {
            return None;
        }
        self.next = end;
        let bytes = &mut self.bytes[..(end - first) as usize * ENTRY_BYTES];
        let read = read_up_to(file, bytes, table::entry_offset(first));
        Some(Batch { first, end, bytes: read.map(|count| &mut bytes[..count - count % ENTRY_BYTES]) })
    }
}

/// Some slots of a table, one behind the other.
pub struct Batch<'a> {
    pub first: u32,
    /// The slot behind the last.
    pub end: u32,
    /// Their entries, or why they cannot be read.
    pub bytes: io::Result<&'a mut [u8]>,
}

/// The entries of a batch with their slots.
pub fn entries(first: u32, bytes: &[u8]) -> impl Iterator<Item = (u32, &Entry)> {
    let entries = bytes.chunks_exact(ENTRY_BYTES).map(|bytes| Entry::ref_from_bytes(bytes).expect("an entry's length"));
    (first..).zip(entries)
}

/// How many slots of a table hold something, whoever it belongs to. What cannot be read counts as nothing.
pub fn count_records(file: &dyn StorageFile) -> u64 {
    let mut batches = Batches::new(file.len_bytes().unwrap_or(0));
    let mut records = 0;
    while let Some(batch) = batches.next(file) {
        let Ok(bytes) = batch.bytes else { continue };
        records += entries(batch.first, bytes).filter(|(_, entry)| !entry.is_free()).count() as u64;
    }
    records
}

/// What a table holds.
#[derive(Default)]
pub struct Scanned {
    pub recovered: Vec<Recovered>,
    pub dropped: Dropped,
    /// The highest sequence seen, of records that are gone, too.
    pub last_sequence: u64,
}

/// What a table's entries are held against.
pub struct Scan<'a> {
    pub class: &'a GroupClass,
    pub geometry: &'a Geometry,
    pub chunk_lens: &'a [u64],
    pub namespaces: &'a [NamespaceRecord],
}

impl Scan<'_> {
    /// Reads the whole table and frees the entries of records that are gone, so that they are counted once.
    pub fn run(&self, file: &dyn StorageFile, notes: &mut Vec<String>) -> io::Result<Scanned> {
        let mut scanned = Scanned::default();
        let mut batches = Batches::new(file.len_bytes()?);
        while let Some(Batch { first, end, bytes }) = batches.next(file) {
            match bytes {
                Ok(bytes) => self.batch(first, bytes, file, &mut scanned, notes),
                Err(error) => {
                    scanned.dropped.unreadable_slots += u64::from(end.min(self.class.slots).saturating_sub(first));
                    notes.push(format!("the table of group {} cannot be read in part: {error}", self.class.name));
                }
            }
        }
        Ok(scanned)
    }

    fn batch(
        &self,
        first: u32,
        bytes: &mut [u8],
        file: &dyn StorageFile,
        scanned: &mut Scanned,
        notes: &mut Vec<String>,
    ) {
        let mut gone = Vec::new();
        for (slot, entry) in entries(first, bytes) {
            if entry.is_free() {
                continue;
            }
            let sound = entry.is_sound(self.class, slot);
            if sound {
                scanned.last_sequence = scanned.last_sequence.max(entry.sequence.get());
            }
            let reason = if slot >= self.class.slots {
                // Slots that are cut off below: what was damaged there is no loss.
                scanned.dropped.beyond_quota += u64::from(sound);
                continue;
            } else if !sound {
                &mut scanned.dropped.damaged_entries
            } else if !self.knows_namespace(entry) {
                &mut scanned.dropped.unknown_namespace
            } else if !self.has_chunk(slot) {
                &mut scanned.dropped.missing_chunk
            } else {
                scanned.recovered.push(recovered(slot, entry));
                continue;
            };
            *reason += 1;
            gone.push(slot);
        }
        for slot in &gone {
            bytes[(slot - first) as usize * ENTRY_BYTES..][..ENTRY_BYTES].copy_from_slice(&Entry::FREE);
        }
        if let (Some(low), Some(high)) = (gone.first(), gone.last()) {
            let range = (low - first) as usize * ENTRY_BYTES..(high - first + 1) as usize * ENTRY_BYTES;
            if let Err(error) = write_all(file, &bytes[range], table::entry_offset(*low), 1) {
                notes.push(format!("dropped entries of group {} cannot be cleared: {error}", self.class.name));
            }
        }
    }

    fn knows_namespace(&self, entry: &Entry) -> bool {
        let namespace = self.namespaces.get(usize::from(entry.namespace.get()));
        namespace.is_some_and(|record| record.check == entry.namespace_check.get())
    }

    fn has_chunk(&self, slot: u32) -> bool {
        let (chunk, offset) = self.geometry.place(slot);
        offset + self.geometry.slot_bytes <= self.chunk_lens[chunk as usize]
    }
}

/// The record that a sound entry of `slot` names.
pub fn recovered(slot: u32, entry: &Entry) -> Recovered {
    Recovered {
        slot,
        namespace: entry.namespace.get(),
        digest: Digest(entry.digest),
        parent: Digest(entry.parent),
        position: entry.position.get(),
        last_use: entry.last_use.get(),
        sequence: entry.sequence.get(),
    }
}
