//! Getting records.

use std::io;
use std::ops::Range;

use super::Store;
use crate::Buffer;
use crate::error::Miss;
use crate::payload::Slot;
use crate::record::Key;
use crate::storage::Access;

impl Store {
    /// Reads the record `key` from `slot` into `buffer`, which then holds exactly the payload as it was put.
    ///
    /// # Errors
    ///
    /// A [`Miss`] says why not; then the buffer is empty.
    pub fn get(&self, group: u8, slot: u32, key: &Key, buffer: &mut Buffer) -> Result<(), Miss> {
        self.with_slot(group, slot, key, buffer, |slot, buffer| slot.read(buffer))
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
        self.with_slot(group, slot, key, buffer, |slot, buffer| slot.read_sections(sections, buffer))
    }

    fn with_slot(
        &self,
        group: u8,
        slot: u32,
        key: &Key,
        buffer: &mut Buffer,
        read: impl FnOnce(&Slot<'_>, &mut Buffer) -> Result<(), Miss>,
    ) -> Result<(), Miss> {
        buffer.clear();
        let (class_index, class) = self.slot(group, slot).ok_or(Miss::Absent)?;
        let check = self.catalogue.check(key.namespace).ok_or(Miss::Absent)?;
        let entry = class.read_entry(slot)?;
        let wanted = entry.is_sound(&class.spec, slot)
            && entry.namespace.get() == key.namespace
            && entry.namespace_check.get() == check
            && entry.digest == key.digest.0
            && entry.position.get() == key.position;
        if !wanted {
            return Err(Miss::Absent);
        }
        let (chunk, offset) = class.geometry.place(slot);
        let id = (class_index, chunk);
        let file = self.chunks.file(id, || class.chunk_name(chunk), Access::Write, &*self.storage);
        let file = file.map_err(|error| match error.kind() {
            // A file that somebody removed is a record that is gone, not an error.
            io::ErrorKind::NotFound => Miss::Absent,
            _ => Miss::Io(error),
        })?;
        read(&Slot { class: &class.spec, file: &*file, offset, key, entry: &entry }, buffer)
    }
}
