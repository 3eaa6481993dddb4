//! Putting and freeing records, and making both durable.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use reprise_core::Digest;
use zerocopy::IntoBytes;

use super::class::Class;
use super::{Core, Durability, Store};
use crate::Buffer;
use crate::error::StoreError;
use crate::format::table::{Entry, Fields};
use crate::format::{PAGE_BYTES, trailer};
use crate::locks::lock;
use crate::record::{Head, Key};
use crate::storage::{Access, StorageFile, write_all};

/// How many last uses of a class may wait in memory.
const MAX_TOUCHES: usize = 4096;

impl Store {
    /// Puts the first `payload_bytes` of `buffer` into `slot`, as the record `key`. What the slot held before is gone.
    ///
    /// The record can be read when this returns. The bytes behind the payload are used for the trailer; the buffer's
    /// length and payload are left as they were.
    ///
    /// # Errors
    ///
    /// On [`StoreError::Full`] and [`StoreError::Io`] the record is not owed: the slot is free or holds what it held, or,
    /// if it was a sync that failed, the record itself. On [`StoreError::Poisoned`] and [`StoreError::SlotBusy`], and on
    /// those that say the call is wrong, nothing was done.
    pub fn put(
        &self,
        group: u8,
        slot: u32,
        key: &Key,
        parent: Digest,
        last_use: u64,
        buffer: &mut Buffer,
    ) -> Result<(), StoreError> {
        let len = buffer.len();
        let prepared = self.core.prepare(Head { group, slot, key: *key, parent, last_use }, buffer, || true)?;
        let Place { file, offset, .. } = &prepared.place;
        let written = write_all(&**file, &buffer.bytes()[..prepared.slot_bytes], *offset, PAGE_BYTES);
        buffer.resize(len);
        self.core.commit(prepared, written)
    }

    /// Makes `slot` free. Its space stays reserved for the class.
    ///
    /// # Errors
    ///
    /// As for [`put`](Self::put); then the slot may still hold its record.
    pub fn free(&self, group: u8, slot: u32) -> Result<(), StoreError> {
        self.core.free(group, slot)
    }

    /// Notes when the record in `slot` was last used. It is kept in memory and written with the next
    /// [`sync`](Self::sync), or when many have come together.
    pub fn touch(&self, group: u8, slot: u32, last_use: u64) {
        self.core.touch(group, slot, last_use);
    }

    /// Makes everything that was put, freed or touched before the call durable.
    ///
    /// # Errors
    ///
    /// If a sync fails, nobody knows what reached the device: from then on the store takes no writes
    /// ([`StoreError::Poisoned`]), while reads go on.
    pub fn sync(&self) -> Result<(), StoreError> {
        self.core.sync()
    }
}

/// A put whose slot is free and whose payload and trailer can be written.
pub struct Prepared {
    pub place: Place,
    pub slot_bytes: usize,
    head: Head,
    class_index: usize,
    namespace_check: u64,
    trailer_sum: u64,
}

/// Where a record goes.
pub struct Place {
    pub file: Arc<dyn StorageFile>,
    /// Where the slot starts in the file, in bytes.
    pub offset: u64,
    chunk: u32,
    table: Arc<dyn StorageFile>,
}

impl Core {
    /// Frees the slot, makes its files, and writes the trailer into `buffer`, which becomes as long as the slot at least.
    /// Until [`commit`](Self::commit) is called, the slot takes no other put. Nothing is done if the put is not `wanted` any
    /// more, which is asked when no other put of the slot can begin: one that nobody waits for must not undo a later one.
    pub fn prepare(
        &self,
        head: Head,
        buffer: &mut Buffer,
        wanted: impl FnOnce() -> bool,
    ) -> Result<Prepared, StoreError> {
        let Head { group, slot, .. } = head;
        self.check_writable()?;
        let (class_index, class) = self.slot(group, slot).ok_or(StoreError::NoSuchSlot { group, slot })?;
        let namespace = head.key.namespace;
        let namespace_check = self.catalogue.check(namespace).ok_or(StoreError::UnknownNamespace { namespace })?;
        let (expected_bytes, got_bytes) = (class.spec.payload_bytes, buffer.len() as u64);
        if got_bytes < expected_bytes {
            return Err(StoreError::WrongLength { group, expected_bytes, got_bytes });
        }
        if !lock(&class.writing).insert(slot) {
            return Err(StoreError::SlotBusy { group, slot });
        }
        let ready = match wanted() {
            true => self.make_ready(class_index, slot),
            false => Err(StoreError::Cancelled { group, slot }),
        };
        let place = ready.inspect_err(|_| {
            lock(&class.writing).remove(&slot);
        })?;
        let slot_bytes = class.geometry.slot_bytes as usize;
        buffer.resize(buffer.len().max(slot_bytes));
        let bytes = &mut buffer.bytes_mut()[..slot_bytes];
        let trailer_sum = trailer::write(&class.spec, &head.key, namespace_check, bytes);
        Ok(Prepared { place, slot_bytes, head, class_index, namespace_check, trailer_sum })
    }

    /// Makes the table and the chunk if need be, and the slot free.
    fn make_ready(&self, class_index: usize, slot: u32) -> Result<Place, StoreError> {
        let class = &self.classes[class_index];
        let (chunk, offset) = class.geometry.place(slot);
        let table = class
            .make_table(&*self.storage, &self.directory_dirty)
            .map_err(|error| StoreError::io(doing("making the table", class, slot), error))?;
        let file = self.chunk_for_writing(class_index, chunk)?;
        self.invalidate(class, slot, &*table)?;
        Ok(Place { file, offset, chunk, table })
    }

    /// Enters the record into the table if its payload was `written`, and lets the slot go.
    pub fn commit(&self, prepared: Prepared, written: io::Result<()>) -> Result<(), StoreError> {
        let class = &self.classes[prepared.class_index];
        lock(&class.dirty_chunks).insert(prepared.place.chunk);
        let slot = prepared.head.slot;
        let result = written
            .map_err(|error| StoreError::io(doing("writing the record", class, slot), error))
            .and_then(|()| self.enter(class, &prepared));
        lock(&class.writing).remove(&slot);
        result
    }

    fn enter(&self, class: &Class, prepared: &Prepared) -> Result<(), StoreError> {
        let Prepared { head, place: Place { file, chunk, table, .. }, .. } = prepared;
        if self.durability == Durability::Strict {
            self.synced(&class.chunk_name(*chunk), file.sync())?;
        }
        let fields = Fields {
            sequence: self.sequence.fetch_add(1, Ordering::Relaxed),
            digest: head.key.digest,
            parent: head.parent,
            position: head.key.position,
            namespace: head.key.namespace,
            namespace_check: prepared.namespace_check,
            trailer_sum: prepared.trailer_sum,
            last_use: head.last_use,
        };
        let entry = Entry::new(&class.spec, head.slot, &fields);
        let bytes = entry.as_bytes().try_into().expect("an entry has the length of an entry");
        if let Err(error) = class.write_entry(&**table, head.slot, bytes) {
            // Part of it may be there; it would be counted as damage at the next open.
            let _ = class.write_entry(&**table, head.slot, &Entry::FREE);
            return Err(StoreError::io(doing("writing the table entry", class, head.slot), error));
        }
        if self.durability == Durability::Strict {
            self.synced(&class.table_name(), table.sync())?;
            self.sync_directory()?;
        }
        Ok(())
    }

    fn free(&self, group: u8, slot: u32) -> Result<(), StoreError> {
        self.check_writable()?;
        let (_, class) = self.slot(group, slot).ok_or(StoreError::NoSuchSlot { group, slot })?;
        match class.table() {
            Some(table) => self.invalidate(class, slot, &*table),
            None => Ok(()),
        }
    }

    fn touch(&self, group: u8, slot: u32, last_use: u64) {
        let Some((_, class)) = self.slot(group, slot) else { return };
        let waiting = {
            let mut touches = lock(&class.touches);
            touches.insert(slot, last_use);
            touches.len()
        };
        if waiting >= MAX_TOUCHES && self.check_writable().is_ok() {
            class.flush_touches();
        }
    }

    pub fn sync(&self) -> Result<(), StoreError> {
        self.check_writable()?;
        // A second caller must not return before the marks that the first has taken are synced.
        let _syncing = lock(&self.syncing);
        for (class_index, class) in self.classes.iter().enumerate() {
            class.flush_touches();
            let chunks: Vec<u32> = lock(&class.dirty_chunks).iter().copied().collect();
            for chunk in chunks {
                self.sync_chunk(class_index, chunk)?;
            }
            self.sync_table(class)?;
        }
        self.sync_directory()
    }

    /// Makes the slot's entry free if it is not.
    fn invalidate(&self, class: &Class, slot: u32, table: &dyn StorageFile) -> Result<(), StoreError> {
        lock(&class.touches).remove(&slot);
        // An entry that cannot be read is overwritten, too.
        if class.read_entry(slot).is_ok_and(|entry| entry.is_free()) {
            return Ok(());
        }
        class
            .write_entry(table, slot, &Entry::FREE)
            .map_err(|error| StoreError::io(format!("freeing slot {slot} of group {}", class.spec.name), error))?;
        match self.durability {
            Durability::Strict => self.synced(&class.table_name(), table.sync()),
            Durability::Relaxed => Ok(()),
        }
    }

    /// The chunk file, made and with its space reserved.
    fn chunk_for_writing(&self, class_index: usize, chunk: u32) -> Result<Arc<dyn StorageFile>, StoreError> {
        let class = &self.classes[class_index];
        let attempt = || {
            let name = || class.chunk_name(chunk);
            let file = self.chunks.file((class_index, chunk), name, Access::Create, &*self.storage)?;
            class.grow_chunk(chunk, &*file, &self.directory_dirty)?;
            Ok(file)
        };
        attempt().map_err(|error| StoreError::io(format!("making {}", class.chunk_name(chunk)), error))
    }

    fn sync_chunk(&self, class_index: usize, chunk: u32) -> Result<(), StoreError> {
        let class = &self.classes[class_index];
        let name = class.chunk_name(chunk);
        if !lock(&class.dirty_chunks).remove(&chunk) {
            return Ok(());
        }
        match self.chunks.file((class_index, chunk), || name.clone(), Access::Write, &*self.storage) {
            Ok(file) => self.synced(&name, file.sync()),
            // A file that somebody removed has nothing left to sync; its records are gone.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => {
                lock(&class.dirty_chunks).insert(chunk);
                Err(StoreError::io(format!("opening {name}"), error))
            }
        }
    }

    fn sync_table(&self, class: &Class) -> Result<(), StoreError> {
        match class.table() {
            Some(table) if class.table_dirty.swap(false, Ordering::AcqRel) => {
                self.synced(&class.table_name(), table.sync())
            }
            _ => Ok(()),
        }
    }
}

/// What is being done to a slot, for an error.
fn doing(what: &str, class: &Class, slot: u32) -> String {
    format!("{what} of slot {slot} of group {}", class.spec.name)
}
