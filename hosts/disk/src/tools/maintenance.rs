//! Taking records out of a store that nobody else has open.

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::path::Path;

use crate::Buffer;
use crate::class::GroupClass;
use crate::error::StoreError;
use crate::format::table::{ENTRY_BYTES, entry_offset};
use crate::format::{PAGE_BYTES, names};
use crate::report::OpenReport;
use crate::storage::{Access, Content, LockGuard, Storage, StorageFile, write_all};
use crate::store::{Batches, Options, Store, entries, open_locked, take_lock};
use crate::sync::Arc;

use super::reader::{Layout, ReadOnly, existing};
use super::removal::Removal;

/// Bytes of zeros written at once over what cannot be given back.
const ZEROS_BYTES: usize = 1 << 18;

/// A store that is locked, to be looked at and to have records taken out.
///
/// Nothing is changed by opening it: unlike [`Store::open`], it mends and drops nothing.
pub struct Maintenance {
    reader: ReadOnly,
    lock: Box<dyn LockGuard>,
}

/// What was taken out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Records whose slots are free now.
    pub records: u64,
    /// Bytes that the chunk files take less of the device than before.
    pub returned_bytes: u64,
}

impl Maintenance {
    /// Locks the store in `dir`.
    ///
    /// # Errors
    ///
    /// As for [`ReadOnly::open`], and [`StoreError::Locked`] if somebody has the store open.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        Self::open_in(Arc::new(existing(dir)?))
    }

    /// Like [`open`](Self::open), on any storage.
    pub fn open_in(storage: Arc<dyn Storage>) -> Result<Self, StoreError> {
        // What is no store is not locked; what it holds is looked at under the lock.
        ReadOnly::open_in(Arc::clone(&storage))?;
        let lock = take_lock(&*storage)?;
        Ok(Self { reader: ReadOnly::open_in(storage)?, lock })
    }

    /// The store, to be looked at.
    pub fn reader(&self) -> &ReadOnly {
        &self.reader
    }

    /// Frees the slots of a removal and gives the space of all free slots back to the file system: files of chunks without a record
    /// are removed, elsewhere holes are punched, and where that is not possible free slots are overwritten with zeros.
    /// Everything is durable when this returns. `progress` is told how many records of how many have been freed.
    ///
    /// A crash on the way leaves some of the records; doing it again does the rest. The entries are durable before payload is
    /// touched, so a crash makes no record look damaged.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] and [`StoreError::Full`]; then a part is done.
    pub fn remove(&self, removal: &Removal, progress: &mut dyn FnMut(u64, u64)) -> Result<Removed, StoreError> {
        let before = self.allocated_bytes();
        let layouts = self.reader.layouts();
        let slots: Vec<BTreeSet<u32>> = layouts.iter().map(|layout| removal.slots(layout.class.group)).collect();
        let total = slots.iter().map(|slots| slots.len() as u64).sum();
        let mut done = 0;
        for (layout, slots) in layouts.iter().zip(&slots) {
            self.free(layout, slots, &mut |count| {
                done += u64::from(count);
                progress(done, total);
            })?;
        }
        layouts.iter().try_for_each(|layout| self.give_back(layout))?;
        self.storage().sync_directory().map_err(|error| StoreError::io("syncing the directory", error))?;
        Ok(Removed { records: total, returned_bytes: before.saturating_sub(self.allocated_bytes()) })
    }

    /// Opens the store for writing with the classes that it has and those of `missing`, which it has no table for.
    pub(super) fn into_store(
        self,
        storage: Arc<dyn Storage>,
        missing: Vec<GroupClass>,
        options: &Options,
    ) -> Result<(Store, Vec<GroupClass>, OpenReport), StoreError> {
        let mut classes: Vec<GroupClass> =
            self.reader.layouts().iter().map(|layout| self.reader.class_of_table(layout)).collect();
        classes.extend(missing);
        let (store, report) = open_locked(storage, self.lock, &classes, options)?;
        Ok((store, classes, report))
    }

    fn storage(&self) -> &dyn Storage {
        &*self.reader.storage
    }

    /// Writes zeros over the entries and makes them durable.
    fn free(
        &self,
        layout: &Layout<'_>,
        slots: &BTreeSet<u32>,
        progress: &mut dyn FnMut(u32),
    ) -> Result<(), StoreError> {
        if slots.is_empty() {
            return Ok(());
        }
        let name = names::table(layout.stem);
        let failed = |error| StoreError::io(format!("freeing slots of group {}", layout.class.name), error);
        let table = self.storage().open(&name, Access::Write, Content::Metadata).map_err(failed)?;
        for run in runs(slots.iter().copied()) {
            let zeros = vec![0; run.len() * ENTRY_BYTES];
            write_all(&*table, &zeros, entry_offset(run.start), 1).map_err(failed)?;
            progress(run.len() as u32);
        }
        table.sync().map_err(|error| StoreError::io(format!("syncing {name}"), error))
    }

    fn give_back(&self, layout: &Layout<'_>) -> Result<(), StoreError> {
        let taken = self.taken(layout)?;
        let geometry = layout.geometry();
        for &chunk in self.reader.survey.chunks.get(layout.stem).into_iter().flatten() {
            let name = names::chunk(layout.stem, chunk);
            let first = chunk.saturating_mul(geometry.slots_per_chunk).min(layout.class.slots);
            let end = first.saturating_add(geometry.slots_per_chunk).min(layout.class.slots);
            let slots = first..end;
            let result = match taken.range(slots.clone()).next() {
                None => self.storage().remove(&name),
                Some(_) => self.clear(layout, &name, slots, &taken),
            };
            match result {
                // A file that somebody removed has no space to give back.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                result => result
                    .map_err(|error| StoreError::io(format!("giving the space of free slots in {name} back"), error))?,
            }
        }
        Ok(())
    }

    /// Which slots are not free.
    fn taken(&self, layout: &Layout<'_>) -> Result<BTreeSet<u32>, StoreError> {
        let name = names::table(layout.stem);
        let failed = |error| StoreError::io(format!("reading {name}"), error);
        let table = self.storage().open(&name, Access::Read, Content::Metadata).map_err(failed)?;
        let mut taken = BTreeSet::new();
        let mut batches = Batches::new(table.len_bytes().map_err(failed)?);
        while let Some(batch) = batches.next(&*table) {
            let entries = entries(batch.first, batch.bytes.map_err(failed)?);
            taken.extend(entries.filter(|(_, entry)| !entry.is_free()).map(|(slot, _)| slot));
        }
        Ok(taken)
    }

    /// Gives the space of the free slots of one chunk back, or overwrites it.
    fn clear(&self, layout: &Layout<'_>, name: &str, slots: Range<u32>, taken: &BTreeSet<u32>) -> io::Result<()> {
        let geometry = layout.geometry();
        let file = self.storage().open(name, Access::Write, Content::Payload)?;
        for run in runs(slots.filter(|slot| !taken.contains(slot))) {
            let (_, offset) = geometry.place(run.start);
            let len_bytes = run.len() as u64 * geometry.slot_bytes;
            match file.punch(offset, len_bytes) {
                Err(error) if error.kind() == io::ErrorKind::Unsupported => overwrite(&*file, offset, len_bytes)?,
                result => result?,
            }
        }
        file.sync()
    }

    fn allocated_bytes(&self) -> u64 {
        let chunks = self.reader.survey.chunks.iter();
        let names = chunks.flat_map(|(stem, chunks)| chunks.iter().map(|chunk| names::chunk(stem, *chunk)));
        names.filter_map(|name| self.storage().size(&name).ok()).map(|size| size.allocated_bytes).sum()
    }
}

/// Writes zeros over a range, as far as the file reaches.
fn overwrite(file: &dyn StorageFile, offset: u64, len_bytes: u64) -> io::Result<()> {
    let zeros = Buffer::zeroed(ZEROS_BYTES);
    let end = file.len_bytes()?.min(offset + len_bytes);
    let mut at = offset;
    while at < end {
        let count = (end - at).min(ZEROS_BYTES as u64);
        write_all(file, &zeros.bytes()[..count as usize], at, PAGE_BYTES)?;
        at += count;
    }
    Ok(())
}

/// Ascending slots as ranges without gaps.
fn runs(slots: impl IntoIterator<Item = u32>) -> Vec<Range<u32>> {
    let mut runs: Vec<Range<u32>> = Vec::new();
    for slot in slots {
        match runs.last_mut() {
            Some(run) if run.end == slot => run.end += 1,
            _ => runs.push(slot..slot + 1),
        }
    }
    runs
}
