//! Checking a store without changing it.

use std::io;
use std::path::Path;
use std::sync::Arc;

use reprise_core::Digest;
use zerocopy::{FromBytes, IntoBytes};

use crate::Buffer;
use crate::class::{Geometry, GroupClass};
use crate::error::{Miss, StoreError};
use crate::format::names;
use crate::format::table::{Entry, LAST_USE_OFFSET, entry_offset};
use crate::payload::Slot;
use crate::record::{Key, NamespaceRecord};
use crate::storage::{Access, Content, Directory, Storage, StorageFile, read_exact};
use crate::store::{Batches, Identity, Survey, entries, identify, load_catalogue};

/// A store opened for reading only. It takes no lock, so the store may be in use; it makes and changes nothing.
pub struct ReadOnly {
    storage: Arc<dyn Storage>,
    survey: Survey,
    namespaces: Vec<NamespaceRecord>,
}

/// What was found when every record was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Namespaces in the catalogue.
    pub namespaces: usize,
    /// By class, in the order of their file names.
    pub classes: Vec<ClassVerdict>,
}

/// What was found of one class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassVerdict {
    /// Group name and the first eight hexadecimal digits of the fingerprint.
    pub stem: String,
    /// The table's header is damaged: the entries cannot be checked, and none of the counts below is known.
    pub damaged_header: bool,
    /// Slots that hold something.
    pub records: u64,
    /// Records whose every byte is right.
    pub good: u64,
    /// Records whose payload or trailer is damaged or missing. A read of one is a miss.
    pub corrupt: u64,
    /// Table entries that are damaged or name a namespace that the catalogue does not have. A read is a miss.
    pub damaged_entries: u64,
    /// Records that could not be read because the operating system reported an error.
    pub unreadable: u64,
    /// Records that were replaced while they were being checked.
    pub changed: u64,
}

impl VerifyReport {
    /// Whether nothing is damaged.
    pub fn is_clean(&self) -> bool {
        let clean = |class: &ClassVerdict| {
            !class.damaged_header && class.corrupt == 0 && class.damaged_entries == 0 && class.unreadable == 0
        };
        self.classes.iter().all(clean)
    }
}

impl ReadOnly {
    /// Opens the store in `dir`.
    ///
    /// # Errors
    ///
    /// As for [`Store::open`](crate::Store::open), and [`StoreError::NotAStore`] if the directory is missing or empty.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let storage = Directory::existing(dir).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => StoreError::NotAStore { why: format!("{} does not exist", dir.display()) },
            _ => StoreError::io(format!("opening the directory {}", dir.display()), error),
        })?;
        Self::open_in(Arc::new(storage))
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

    /// The classes, as their tables describe them; without those whose table header is damaged.
    pub fn classes(&self) -> impl Iterator<Item = &GroupClass> {
        self.survey.tables.values().flatten().map(|(class, _)| class)
    }

    /// Reads every record and checks every byte of it. `progress` is told how many slots of how many have been looked
    /// at.
    pub fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> VerifyReport {
        let total = self.classes().map(|class| u64::from(class.slots)).sum();
        let mut report = VerifyReport { namespaces: self.namespaces.len(), classes: Vec::new() };
        let mut before = 0;
        for (stem, header) in &self.survey.tables {
            let Some((class, slots_per_chunk)) = header else {
                report.classes.push(ClassVerdict { stem: stem.clone(), damaged_header: true, ..Default::default() });
                continue;
            };
            let mut progress = |slot: u32| progress(before + u64::from(slot), total);
            report.classes.push(self.verify_class(stem, class, *slots_per_chunk, &mut progress));
            before += u64::from(class.slots);
        }
        progress(total, total);
        report
    }

    fn verify_class(
        &self,
        stem: &str,
        class: &GroupClass,
        slots_per_chunk: u32,
        progress: &mut dyn FnMut(u32),
    ) -> ClassVerdict {
        let mut verdict = ClassVerdict { stem: stem.to_owned(), ..ClassVerdict::default() };
        let Ok(table) = self.storage.open(&names::table(stem), Access::Read, Content::Metadata) else {
            verdict.unreadable = u64::from(class.slots);
            return verdict;
        };
        let geometry = Geometry { slot_bytes: class.slot_bytes(), slots_per_chunk, slots: class.slots };
        let mut check =
            Check { store: self, stem, class, geometry, table: &*table, chunk: None, buffer: Buffer::new() };
        let mut batches = Batches::new(table.len_bytes().unwrap_or(0));
        while let Some(batch) = batches.next(&*table) {
            let Ok(bytes) = batch.bytes else {
                verdict.unreadable += u64::from(batch.end - batch.first);
                continue;
            };
            for (slot, entry) in entries(batch.first, bytes).filter(|(slot, _)| *slot < class.slots) {
                if !entry.is_free() {
                    verdict.records += 1;
                    *check.record(slot, entry).count(&mut verdict) += 1;
                }
                progress(slot + 1);
            }
        }
        verdict
    }
}

/// What became of one record.
enum Outcome {
    Good,
    Corrupt,
    DamagedEntry,
    Unreadable,
    Changed,
}

impl Outcome {
    fn count(self, verdict: &mut ClassVerdict) -> &mut u64 {
        match self {
            Self::Good => &mut verdict.good,
            Self::Corrupt => &mut verdict.corrupt,
            Self::DamagedEntry => &mut verdict.damaged_entries,
            Self::Unreadable => &mut verdict.unreadable,
            Self::Changed => &mut verdict.changed,
        }
    }
}

/// The check of one class.
struct Check<'a> {
    store: &'a ReadOnly,
    stem: &'a str,
    class: &'a GroupClass,
    geometry: Geometry,
    table: &'a dyn StorageFile,
    /// The chunk file used last.
    chunk: Option<(u32, Box<dyn StorageFile>)>,
    buffer: Buffer,
}

impl Check<'_> {
    fn record(&mut self, slot: u32, entry: &Entry) -> Outcome {
        let namespace = self.store.namespaces.get(usize::from(entry.namespace.get()));
        let known = namespace.is_some_and(|record| record.check == entry.namespace_check.get());
        let outcome = match entry.is_sound(self.class, slot) && known {
            false => Outcome::DamagedEntry,
            true => match self.read(slot, entry) {
                Ok(()) => return Outcome::Good,
                Err(Miss::Io(_)) => Outcome::Unreadable,
                Err(Miss::Absent | Miss::Corrupt { .. }) => Outcome::Corrupt,
            },
        };
        // The owner may have put another record there since the table was read.
        match self.reread(slot).as_ref().map(Entry::as_bytes) {
            Some(now) if now[..LAST_USE_OFFSET as usize] != entry.as_bytes()[..LAST_USE_OFFSET as usize] => {
                Outcome::Changed
            }
            _ => outcome,
        }
    }

    fn read(&mut self, slot: u32, entry: &Entry) -> Result<(), Miss> {
        let (chunk, offset) = self.geometry.place(slot);
        if !matches!(&self.chunk, Some((open, _)) if *open == chunk) {
            let name = names::chunk(self.stem, chunk);
            let file = self.store.storage.open(&name, Access::Read, Content::Payload).map_err(|error| {
                if error.kind() == io::ErrorKind::NotFound { Miss::Absent } else { Miss::Io(error) }
            })?;
            self.chunk = Some((chunk, file));
        }
        let (_, file) = self.chunk.as_ref().expect("the chunk was opened above");
        let key =
            Key { namespace: entry.namespace.get(), digest: Digest(entry.digest), position: entry.position.get() };
        Slot { class: self.class, file: &**file, offset, key: &key, entry }.read(&mut self.buffer)
    }

    fn reread(&self, slot: u32) -> Option<Entry> {
        let mut bytes = Entry::FREE;
        read_exact(self.table, &mut bytes, entry_offset(slot), 1).ok()?;
        Entry::read_from_bytes(&bytes).ok()
    }
}
