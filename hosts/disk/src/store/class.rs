//! One class of an open store: its table, its chunks, and what has to be synced.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use zerocopy::{FromBytes, IntoBytes};

use crate::class::{Geometry, GroupClass};
use crate::format::names;
use crate::format::table::{self, ENTRY_BYTES, Entry};
use crate::locks::{lock, read, write};
use crate::record::Recovered;
use crate::storage::{Access, Content, Storage, StorageFile, read_up_to, write_all};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, Mutex, RwLock};

/// One class of an open store.
pub struct Class {
    pub spec: GroupClass,
    pub geometry: Geometry,
    pub recovered: Mutex<Vec<Recovered>>,
    stem: String,
    /// The table file; there is none before the first put.
    table: RwLock<Option<Arc<dyn StorageFile>>>,
    /// How long each chunk file is, in bytes.
    chunk_lens: Vec<AtomicU64>,
    /// Held while a file is made or grows.
    growth: Mutex<()>,
    /// Chunks written to since they were synced. A chunk is marked after the write, so that a sync at the same time
    /// cannot take the mark and miss the bytes.
    pub dirty_chunks: Mutex<BTreeSet<u32>>,
    pub table_dirty: AtomicBool,
    /// Slots that are being put into.
    pub writing: Mutex<BTreeSet<u32>>,
    /// Last uses to be written, by slot.
    pub touches: Mutex<BTreeMap<u32, u64>>,
}

impl Class {
    /// A class as the scan found it.
    pub fn new(
        spec: GroupClass,
        geometry: Geometry,
        table: Option<Arc<dyn StorageFile>>,
        chunk_lens: Vec<u64>,
        recovered: Vec<Recovered>,
    ) -> Self {
        Self {
            stem: spec.stem(),
            spec,
            geometry,
            recovered: Mutex::new(recovered),
            table: RwLock::new(table),
            chunk_lens: chunk_lens.into_iter().map(AtomicU64::new).collect(),
            growth: Mutex::new(()),
            dirty_chunks: Mutex::default(),
            table_dirty: AtomicBool::new(false),
            writing: Mutex::default(),
            touches: Mutex::default(),
        }
    }

    pub fn table_name(&self) -> String {
        names::table(&self.stem)
    }

    pub fn chunk_name(&self, chunk: u32) -> String {
        names::chunk(&self.stem, chunk)
    }

    /// The table, if there is one.
    pub fn table(&self) -> Option<Arc<dyn StorageFile>> {
        read(&self.table).clone()
    }

    /// The table, made in full length if there is none; `made` says so.
    pub fn make_table(&self, storage: &dyn Storage, made: &AtomicBool) -> io::Result<Arc<dyn StorageFile>> {
        if let Some(table) = self.table() {
            return Ok(table);
        }
        let _growth = lock(&self.growth);
        if let Some(table) = self.table() {
            return Ok(table);
        }
        let file: Arc<dyn StorageFile> =
            Arc::from(storage.open(&self.table_name(), Access::Create, Content::Metadata)?);
        made.store(true, Ordering::Release);
        // With its full length reserved, a full disk cannot come between a payload and its entry.
        file.allocate(table::entry_offset(self.spec.slots))?;
        let header = table::encode_header(&self.spec, self.geometry.slots_per_chunk);
        write_all(&*file, &header[..], 0, 1)?;
        self.table_dirty.store(true, Ordering::Release);
        *write(&self.table) = Some(Arc::clone(&file));
        Ok(file)
    }

    /// Reserves the space of a chunk whose `file` is open; `made` says if it was empty.
    pub fn grow_chunk(&self, chunk: u32, file: &dyn StorageFile, made: &AtomicBool) -> io::Result<()> {
        let known = &self.chunk_lens[chunk as usize];
        let wanted = self.geometry.chunk_len_bytes(chunk);
        if known.load(Ordering::Acquire) >= wanted {
            return Ok(());
        }
        let _growth = lock(&self.growth);
        if known.load(Ordering::Acquire) < wanted {
            made.fetch_or(known.load(Ordering::Acquire) == 0, Ordering::AcqRel);
            file.allocate(wanted)?;
            known.store(wanted, Ordering::Release);
        }
        Ok(())
    }

    /// The entry of `slot`, sound or not; free if the table does not reach so far.
    pub fn read_entry(&self, slot: u32) -> io::Result<Entry> {
        let mut bytes = Entry::FREE;
        if let Some(table) = self.table() {
            read_up_to(&*table, &mut bytes, table::entry_offset(slot))?;
        }
        Ok(Entry::read_from_bytes(&bytes).expect("an entry can be any bytes of its length"))
    }

    /// Writes the entry of `slot`.
    pub fn write_entry(&self, table: &dyn StorageFile, slot: u32, bytes: &[u8; ENTRY_BYTES]) -> io::Result<()> {
        let result = write_all(table, bytes, table::entry_offset(slot), 1);
        self.table_dirty.store(true, Ordering::Release);
        result
    }

    /// Writes the last uses that are waiting.
    pub fn flush_touches(&self) {
        let touches = std::mem::take(&mut *lock(&self.touches));
        let Some(table) = self.table().filter(|_| !touches.is_empty()) else { return };
        for (slot, last_use) in touches {
            // Advisory: one that is lost makes a record look older than it is.
            let _ = write_all(
                &*table,
                zerocopy::little_endian::U64::new(last_use).as_bytes(),
                table::entry_offset(slot) + table::LAST_USE_OFFSET,
                1,
            );
        }
        self.table_dirty.store(true, Ordering::Release);
    }
}
