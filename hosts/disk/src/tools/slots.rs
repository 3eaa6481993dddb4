//! Reading the records of one class, wherever they lie.

use std::io;

use zerocopy::FromBytes;

use crate::Buffer;
use crate::class::{Geometry, GroupClass};
use crate::error::Miss;
use crate::format::names;
use crate::format::table::{Entry, entry_offset};
use crate::payload::{Expected, Slot};
use crate::record::Key;
use crate::storage::{Access, Content, Storage, StorageFile, read_exact};
use reprise_core::Digest;

use super::reader::{Layout, ReadOnly};

/// The table of a class and the chunk used last.
pub(super) struct Slots<'a> {
    storage: &'a dyn Storage,
    stem: &'a str,
    pub class: &'a GroupClass,
    geometry: Geometry,
    pub table: Box<dyn StorageFile>,
    chunk: Option<(u32, Box<dyn StorageFile>)>,
}

impl<'a> Slots<'a> {
    pub fn open(store: &'a ReadOnly, layout: &Layout<'a>) -> io::Result<Self> {
        let Layout { stem, class, .. } = *layout;
        let table = store.storage.open(&names::table(stem), Access::Read, Content::Metadata)?;
        Ok(Self { storage: &*store.storage, stem, class, geometry: layout.geometry(), table, chunk: None })
    }

    /// The table entry of a slot as it is now.
    pub fn entry(&self, slot: u32) -> io::Result<Entry> {
        let mut bytes = Entry::FREE;
        read_exact(&*self.table, &mut bytes, entry_offset(slot), 1)?;
        Ok(Entry::read_from_bytes(&bytes).expect("an entry can be any bytes of its length"))
    }

    /// Reads the record that a sound entry names and checks every byte of it. Its payload is in `buffer` then, and shows with
    /// its trailer when the buffer is made as long as a slot.
    pub fn read(&mut self, slot: u32, entry: &Entry, buffer: &mut Buffer) -> Result<(), Miss> {
        let (chunk, offset) = self.geometry.place(slot);
        if !matches!(&self.chunk, Some((open, _)) if *open == chunk) {
            let file = self.storage.open(&names::chunk(self.stem, chunk), Access::Read, Content::Payload);
            let file = file.map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => Miss::Absent,
                _ => Miss::Io(error),
            })?;
            self.chunk = Some((chunk, file));
        }
        let (_, file) = self.chunk.as_ref().expect("the chunk was opened above");
        let key =
            Key { namespace: entry.namespace.get(), digest: Digest(entry.digest), position: entry.position.get() };
        let expected = Expected { class: self.class, key: &key, entry };
        Slot { expected, file: &**file, offset }.read(buffer)
    }

    /// The name of the chunk file that a slot lies in.
    pub fn chunk_name(&self, slot: u32) -> String {
        names::chunk(self.stem, self.geometry.place(slot).0)
    }
}
