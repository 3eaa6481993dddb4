//! A store opened for reading only.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::class::{Geometry, GroupClass};
use crate::error::StoreError;
use crate::format::names::{self, FileKind};
use crate::format::superblock;
use crate::format::table::{self, Entry};
use crate::record::NamespaceRecord;
use crate::report::{ClassUsage, Usage};
use crate::storage::{Access, Content, Directory, IoMode, Storage, read_up_to};
use crate::store::{Batches, Identity, Survey, entries, identify, load_catalogue, recovered};
use crate::sync::Arc;

use super::Found;

/// Bytes copied at once.
const COPY_BYTES: usize = 1 << 20;

/// A store opened for reading only. It takes no lock, so the store may be in use; it makes and changes nothing.
pub struct ReadOnly {
    pub(super) storage: Arc<dyn Storage>,
    pub(super) survey: Survey,
    namespaces: Vec<NamespaceRecord>,
}

/// What a store says of its own format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// The version.
    pub version: u32,
    /// Features that a reader must know, as bits.
    pub required_features: u64,
    /// Features that a reader may ignore, as bits.
    pub optional_features: u64,
}

/// A class as it lies in the files.
#[derive(Clone, Copy)]
pub(super) struct Layout<'a> {
    pub stem: &'a str,
    pub class: &'a GroupClass,
    pub slots_per_chunk: u32,
}

impl Layout<'_> {
    pub fn geometry(&self) -> Geometry {
        let Self { class, slots_per_chunk, .. } = *self;
        Geometry { slot_bytes: class.slot_bytes(), slots_per_chunk, slots: class.slots }
    }
}

impl ReadOnly {
    /// Opens the store in `dir`.
    ///
    /// # Errors
    ///
    /// As for [`Store::open`](crate::Store::open), and [`StoreError::NotAStore`] if the directory is missing or empty.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        Self::open_in(Arc::new(existing(dir)?))
    }

    /// Like [`open`](Self::open), on any storage.
    pub fn open_in(storage: Arc<dyn Storage>) -> Result<Self, StoreError> {
        let names = storage.list().map_err(|error| StoreError::io("listing the directory", error))?;
        if identify(&*storage, &names)? == Identity::Empty {
            return Err(StoreError::NotAStore { why: "the directory is empty".to_owned() });
        }
        let survey = Survey::new(&*storage, &names)?;
        let namespaces = load_catalogue(&*storage, &mut Vec::new())?.namespaces;
        Ok(Self { storage, survey, namespaces })
    }

    /// The namespaces, by index.
    pub fn namespaces(&self) -> &[NamespaceRecord] {
        &self.namespaces
    }

    /// The classes, as their tables describe them; without those whose table header is damaged, and those that have no table
    /// yet because nothing was ever put into them.
    pub fn classes(&self) -> impl Iterator<Item = &GroupClass> {
        self.survey.tables.values().flatten().map(|(class, _)| class)
    }

    /// What the superblock says of the format; `None` if both of its copies are damaged, which the next open mends.
    pub fn format(&self) -> Option<Format> {
        let file = self.storage.open(names::SUPERBLOCK, Access::Read, Content::Metadata).ok()?;
        let mut bytes = vec![0; superblock::LEN_BYTES];
        let count = read_up_to(&*file, &mut bytes, 0).ok()?;
        let (version, required_features, optional_features) = superblock::format(&bytes[..count])?;
        Some(Format { version, required_features, optional_features })
    }

    /// What the store takes of the device now, as far as its files can be looked at; `mode` is passed on.
    pub fn usage(&self, mode: IoMode) -> Usage {
        let allocated = |name: &str| self.storage.size(name).map_or(0, |size| size.allocated_bytes);
        let class_usage = |layout: &Layout<'_>| ClassUsage {
            group: layout.class.group,
            name: layout.class.name.clone(),
            quota_bytes: u64::from(layout.class.slots) * layout.geometry().slot_bytes,
            allocated_bytes: self.chunks(layout).map(|chunk| allocated(&names::chunk(layout.stem, chunk))).sum(),
            overhead_bytes: u64::from(layout.class.slots) * layout.class.overhead_bytes(),
        };
        Usage {
            mode,
            classes: self.layouts().iter().map(class_usage).collect(),
            table_bytes: self.survey.tables.keys().map(|stem| allocated(&names::table(stem))).sum(),
            catalogue_bytes: allocated(names::CATALOGUE) + allocated(names::SUPERBLOCK),
        }
    }

    /// Shows `visit` every slot that is not free, by group and slot, until it has seen enough. Only tables are read.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] if a table cannot be read.
    pub fn visit(&self, visit: &mut dyn FnMut(&GroupClass, Found) -> ControlFlow<()>) -> Result<(), StoreError> {
        for layout in self.layouts() {
            if self.visit_class(&layout, &mut |found| visit(layout.class, found))?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Makes `target`, a directory, look like this store: superblock, catalogue and tables are copied, chunks are holes of the same
    /// length. A store opened there knows all records and can read none.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or made.
    pub fn mirror(&self, target: &Path) -> io::Result<()> {
        for name in self.storage.list()? {
            match names::kind(&name) {
                FileKind::Chunk { .. } => {
                    File::create(target.join(&name))?.set_len(self.storage.size(&name)?.len_bytes)?;
                }
                FileKind::Table { .. } => self.copy(&name, target)?,
                FileKind::Single if [names::SUPERBLOCK, names::CATALOGUE].contains(&&*name) => {
                    self.copy(&name, target)?
                }
                FileKind::Single | FileKind::Foreign => {}
            }
        }
        Ok(())
    }

    /// The classes with sound headers, by group.
    pub(super) fn layouts(&self) -> Vec<Layout<'_>> {
        let tables = self.survey.tables.iter();
        let sound = tables.filter_map(|(stem, header)| {
            let (class, slots_per_chunk) = header.as_ref()?;
            Some(Layout { stem, class, slots_per_chunk: *slots_per_chunk })
        });
        let mut layouts: Vec<_> = sound.collect();
        layouts.sort_by_key(|layout| layout.class.group);
        layouts
    }

    /// The class with as many slots as its table has entries for: the store makes a table in its full length, and the header
    /// of one may promise any number.
    pub(super) fn class_of_table(&self, layout: &Layout<'_>) -> GroupClass {
        let len_bytes = self.storage.size(&names::table(layout.stem)).map_or(0, |size| size.len_bytes);
        let slots = layout.class.slots.min(table::slots_in(len_bytes));
        GroupClass { slots, ..layout.class.clone() }
    }

    pub(super) fn visit_class(
        &self,
        layout: &Layout<'_>,
        visit: &mut dyn FnMut(Found) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, StoreError> {
        let Layout { stem, class, .. } = *layout;
        let name = names::table(stem);
        let failed = |error| StoreError::io(format!("reading {name}"), error);
        let table = self.storage.open(&name, Access::Read, Content::Metadata).map_err(failed)?;
        let chunks = self.chunk_lens(layout);
        let geometry = layout.geometry();
        let mut batches = Batches::new(table.len_bytes().map_err(failed)?);
        while let Some(batch) = batches.next(&*table) {
            for (slot, entry) in entries(batch.first, batch.bytes.map_err(failed)?) {
                if slot >= class.slots || entry.is_free() {
                    continue;
                }
                let (chunk, offset) = geometry.place(slot);
                let len_bytes = chunks.get(&chunk).copied().unwrap_or(0);
                let is_there = offset + geometry.slot_bytes <= len_bytes;
                let found = match entry.is_sound(class, slot) && self.knows(entry) && is_there {
                    true => Found::Record(recovered(slot, entry)),
                    false => Found::Damaged { slot },
                };
                if visit(found).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Whether the catalogue has the namespace that an entry names.
    pub(super) fn knows(&self, entry: &Entry) -> bool {
        let namespace = self.namespaces.get(usize::from(entry.namespace.get()));
        namespace.is_some_and(|record| record.check == entry.namespace_check.get())
    }

    /// The chunk files of a class that are there: the header may promise any number.
    fn chunks(&self, layout: &Layout<'_>) -> impl Iterator<Item = u32> {
        let count = layout.geometry().chunks();
        self.survey.chunks.get(layout.stem).into_iter().flatten().copied().filter(move |chunk| *chunk < count)
    }

    /// How long the chunk files are.
    fn chunk_lens(&self, layout: &Layout<'_>) -> BTreeMap<u32, u64> {
        let len = |chunk| self.storage.size(&names::chunk(layout.stem, chunk)).map_or(0, |size| size.len_bytes);
        self.chunks(layout).map(|chunk| (chunk, len(chunk))).collect()
    }

    fn copy(&self, name: &str, target: &Path) -> io::Result<()> {
        let source = self.storage.open(name, Access::Read, Content::Metadata)?;
        let target = File::create(target.join(name))?;
        let mut bytes = vec![0; COPY_BYTES];
        let mut offset = 0;
        loop {
            match read_up_to(&*source, &mut bytes, offset)? {
                0 => return Ok(()),
                count => target.write_all_at(&bytes[..count], offset)?,
            }
            offset += COPY_BYTES as u64;
        }
    }
}

/// The directory of a store that exists, for reading.
pub(super) fn existing(dir: &Path) -> Result<Directory, StoreError> {
    match Directory::existing(dir) {
        Ok(directory) => Ok(directory),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(StoreError::NotAStore { why: format!("{} does not exist", dir.display()) })
        }
        Err(error) => Err(StoreError::io(format!("opening the directory {}", dir.display()), error)),
    }
}
