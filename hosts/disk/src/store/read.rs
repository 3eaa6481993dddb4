//! Getting records.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::{Core, Store};
use crate::Buffer;
use crate::error::Miss;
use crate::format::table::Entry;
use crate::payload::{Expected, Slot};
use crate::record::{Get, Key};
use crate::storage::{Access, StorageFile};

impl Store {
    /// Reads the record `key` from `slot` into `buffer`, which then holds exactly the payload as it was put.
    ///
    /// # Errors
    ///
    /// A [`Miss`] says why not; then the buffer is empty.
    pub fn get(&self, group: u8, slot: u32, key: &Key, buffer: &mut Buffer) -> Result<(), Miss> {
        self.core.with_slot(&Get { group, slot, key: *key }, buffer, |slot, buffer| slot.read(buffer))
    }

    /// Reads only some sections of a record, one behind the other. They are checked like the whole.
    ///
    /// # Errors
    ///
    /// As for [`get`](Self::get); an empty range, or one beyond the record's sections, is [`Miss::Absent`].
    pub fn get_sections(
        &self,
        group: u8,
        slot: u32,
        key: &Key,
        sections: Range<usize>,
        buffer: &mut Buffer,
    ) -> Result<(), Miss> {
        let get = Get { group, slot, key: *key };
        self.core.with_slot(&get, buffer, |slot, buffer| slot.read_sections(sections, buffer))
    }
}

/// Where a record lies, as its table entry says; whether it is there shows when it is read.
pub struct Located {
    pub file: Arc<dyn StorageFile>,
    /// Where the slot starts in the file, in bytes.
    pub offset: u64,
    pub entry: Entry,
}

impl Core {
    /// Finds the record by its table entry and opens its chunk.
    pub fn locate(&self, get: &Get) -> Result<Located, Miss> {
        let Get { group, slot, key } = get;
        let (class_index, class) = self.slot(*group, *slot).ok_or(Miss::Absent)?;
        let check = self.catalogue.check(key.namespace).ok_or(Miss::Absent)?;
        let entry = class.read_entry(*slot)?;
        let wanted = entry.is_sound(&class.spec, *slot)
            && entry.namespace.get() == key.namespace
            && entry.namespace_check.get() == check
            && entry.digest == key.digest.0
            && entry.position.get() == key.position;
        if !wanted {
            return Err(Miss::Absent);
        }
        let (chunk, offset) = class.geometry.place(*slot);
        let id = (class_index, chunk);
        let file = self.chunks.file(id, || class.chunk_name(chunk), Access::Write, &*self.storage);
        let file = file.map_err(|error| match error.kind() {
            // A file that somebody removed is a record that is gone, not an error.
            io::ErrorKind::NotFound => Miss::Absent,
            _ => Miss::Io(error),
        })?;
        Ok(Located { file, offset, entry })
    }

    fn with_slot(
        &self,
        get: &Get,
        buffer: &mut Buffer,
        read: impl FnOnce(&Slot<'_>, &mut Buffer) -> Result<(), Miss>,
    ) -> Result<(), Miss> {
        buffer.clear();
        let Located { file, offset, entry } = self.locate(get)?;
        let (_, class) = self.slot(get.group, get.slot).ok_or(Miss::Absent)?;
        let expected = Expected { class: &class.spec, key: &get.key, entry: &entry };
        read(&Slot { expected, file: &*file, offset }, buffer)
    }
}
