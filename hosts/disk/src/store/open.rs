//! Opening: make the directory a store if it is none, drop what is damaged or no longer wanted, and say so.

use std::io;

use super::catalogue::{self, Catalogue};
use super::class::Class;
use super::limits::Limits;
use super::scan::{Scan, Scanned, count_records};
use super::survey::{Identity, Survey, identify};
use super::{Core, IoOptions, Options, Store};
use crate::chunks::ChunkFiles;
use crate::class::{Geometry, GroupClass};
use crate::desk::Desk;
use crate::engine::Ground;
use crate::error::StoreError;
use crate::format::{PAGE_BYTES, names, superblock, table};
use crate::record::NamespaceRecord;
use crate::report::{ClassReport, OpenReport, RemovedLayout};
use crate::storage::{Access, Content, IoMode, LockGuard, LockRefusal, Storage, StorageFile, write_all};
use crate::sync::atomic::{AtomicBool, AtomicU64};
use crate::sync::{Arc, Mutex};

/// Opens a store; see [`Store::open`].
pub fn open(
    storage: Arc<dyn Storage>,
    classes: &[GroupClass],
    options: &Options,
) -> Result<(Store, OpenReport), StoreError> {
    check_classes(classes)?;
    let lock = take_lock(&*storage)?;
    open_locked(storage, lock, classes, options)
}

/// Locks a directory that is a store, or can become one.
pub fn take_lock(storage: &dyn Storage) -> Result<Box<dyn LockGuard>, StoreError> {
    // Before the lock, as taking it makes a file, which a foreign directory must be spared; and again under it.
    identify(storage, &list(storage)?)?;
    storage.lock().map_err(|refusal| match refusal {
        LockRefusal::Held { owner } => StoreError::Locked { owner },
        LockRefusal::Io(error) => StoreError::io("locking the directory", error),
    })
}

fn list(storage: &dyn Storage) -> Result<Vec<String>, StoreError> {
    storage.list().map_err(|error| StoreError::io("listing the directory", error))
}

/// Opens a store whose lock was taken.
pub fn open_locked(
    storage: Arc<dyn Storage>,
    lock: Box<dyn LockGuard>,
    classes: &[GroupClass],
    options: &Options,
) -> Result<(Store, OpenReport), StoreError> {
    check_classes(classes)?;
    let names = list(&*storage)?;
    let identity = identify(&*storage, &names)?;
    let survey = Survey::new(&*storage, &names)?;
    let mut notes = Vec::new();
    let loaded = catalogue::load(&*storage, &mut notes)?;

    // Nothing was refused: from here on the directory may be changed.
    match identity {
        Identity::Empty => {
            write_superblock(&*storage).map_err(|error| StoreError::io("writing the superblock", error))?;
        }
        Identity::Store { damaged_superblock: true } => {
            if let Err(error) = write_superblock(&*storage) {
                notes.push(format!("the damaged superblock cannot be repaired: {error}"));
            }
        }
        Identity::Store { damaged_superblock: false } => {}
    }
    let mode = storage.probe();
    let limits = Limits::fit(options, classes.len());
    notes.extend(limits.note.clone());
    let mut opening = Opening {
        storage: &*storage,
        survey: &survey,
        options,
        classes: Vec::new(),
        removed: Vec::new(),
        notes,
        last_sequence: 0,
    };
    opening.remove_old_layouts(classes);
    let opened = classes.iter().map(|class| opening.class(class, &loaded.namespaces)).collect();
    let Opening { classes: class_reports, removed, mut notes, last_sequence, .. } = opening;
    let (namespaces, catalogue_cut_bytes) = (loaded.namespaces.len(), loaded.damaged_bytes);
    let ground = Ground { mode: mode.clone(), descriptors: has_descriptors(&*storage) };
    let core = Arc::new(Core {
        durability: options.durability,
        mode: mode.clone(),
        classes: opened,
        chunks: ChunkFiles::new(limits.open_files),
        catalogue: Catalogue::new(loaded, &*storage, &mut notes),
        sequence: AtomicU64::new(last_sequence.saturating_add(1)),
        poisoned: AtomicBool::new(false),
        directory_dirty: AtomicBool::new(false),
        syncing: Mutex::default(),
        syncing_directory: Mutex::default(),
        storage,
        _lock: lock,
    });
    let io = IoOptions { depth: limits.depth, ..options.io.clone() };
    let (desk, engine) = Desk::new(Arc::clone(&core), &io, &ground);
    let report = OpenReport {
        created: identity == Identity::Empty,
        alignment_bytes: if mode == IoMode::Direct { PAGE_BYTES } else { 1 },
        mode,
        engine: engine.clone(),
        namespaces,
        catalogue_cut_bytes,
        superblock_repaired: identity == Identity::Store { damaged_superblock: true },
        classes: class_reports,
        removed,
        notes,
    };
    Ok((Store { core, desk, engine, patience: io.patience }, report))
}

/// Whether the files of a store are files of the operating system.
fn has_descriptors(storage: &dyn Storage) -> bool {
    let file = storage.open(names::SUPERBLOCK, Access::Read, Content::Metadata);
    file.is_ok_and(|file| file.descriptor().is_some())
}

fn check_classes(classes: &[GroupClass]) -> Result<(), StoreError> {
    for (index, class) in classes.iter().enumerate() {
        class.check()?;
        if let Some(other) =
            classes[..index].iter().find(|other| other.group == class.group || other.name == class.name)
        {
            let why = format!("group {} has the same number or name", other.name);
            return Err(StoreError::InvalidClass { name: class.name.clone(), why });
        }
    }
    Ok(())
}

/// Writes both copies and makes them durable before anything else is made in the directory.
fn write_superblock(storage: &dyn Storage) -> io::Result<()> {
    let file = storage.open(names::SUPERBLOCK, Access::Create, Content::Metadata)?;
    write_all(&*file, &superblock::encode(), 0, 1)?;
    file.sync()?;
    storage.sync_directory()
}

/// The second half of opening.
struct Opening<'a> {
    storage: &'a dyn Storage,
    survey: &'a Survey,
    options: &'a Options,
    classes: Vec<ClassReport>,
    removed: Vec<RemovedLayout>,
    notes: Vec<String>,
    last_sequence: u64,
}

impl Opening<'_> {
    fn remove_old_layouts(&mut self, classes: &[GroupClass]) {
        let mut removed = Vec::new();
        for stem in self.survey.old_stems(classes) {
            let table = names::table(&stem);
            let records = match self.storage.open(&table, Access::Read, Content::Metadata) {
                Ok(file) => count_records(&*file),
                Err(_) => 0,
            };
            let chunks: Vec<String> =
                self.survey.chunks.get(&stem).into_iter().flatten().map(|chunk| names::chunk(&stem, *chunk)).collect();
            let bytes =
                chunks.iter().filter_map(|name| self.storage.size(name).ok()).map(|size| size.allocated_bytes).sum();
            for name in chunks.iter().chain([&table]) {
                self.remove(name);
            }
            removed.push(RemovedLayout { stem, records, bytes });
        }
        self.removed = removed;
    }

    fn remove(&mut self, name: &str) {
        if let Err(error) = self.storage.remove(name) {
            self.notes.push(format!("{name} cannot be removed: {error}"));
        }
    }

    fn class(&mut self, class: &GroupClass, namespaces: &[NamespaceRecord]) -> Class {
        let stem = class.stem();
        let mut geometry = Geometry::new(class, self.options.chunk_bytes);
        let header = self.survey.header(class).cloned();
        if let Some((_, slots_per_chunk)) = &header {
            geometry.slots_per_chunk = *slots_per_chunk;
        }
        let slots_before = header.as_ref().map(|(found, _)| found.slots).filter(|slots| *slots != class.slots);
        let chunk_lens = self.chunk_lens(&stem, &geometry);

        let mut scanned = Scanned::default();
        let mut header_repaired = false;
        let table = self.open_table(&names::table(&stem));
        if let Some(file) = &table {
            let scan = Scan { class, geometry: &geometry, chunk_lens: &chunk_lens, namespaces };
            match scan.run(&**file, &mut self.notes) {
                Ok(found) => scanned = found,
                Err(error) => self.notes.push(format!("the table of group {} cannot be read: {error}", class.name)),
            }
            header_repaired = header.is_none();
            let fits = file.len_bytes().is_ok_and(|len| len == table::entry_offset(class.slots));
            if (header_repaired || slots_before.is_some() || !fits)
                && let Err(error) = fit_table(&**file, class, geometry.slots_per_chunk)
            {
                self.notes.push(format!("the table of group {} cannot be fitted: {error}", class.name));
            }
        }
        self.last_sequence = self.last_sequence.max(scanned.last_sequence);
        self.classes.push(ClassReport {
            group: class.group,
            name: class.name.clone(),
            records: scanned.recovered.len() as u64,
            slots_before,
            header_repaired,
            dropped: scanned.dropped,
        });
        Class::new(class.clone(), geometry, table, chunk_lens, scanned.recovered)
    }

    fn open_table(&mut self, name: &str) -> Option<Arc<dyn StorageFile>> {
        match self.storage.open(name, Access::Write, Content::Metadata) {
            Ok(file) => Some(Arc::from(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                self.notes.push(format!("{name} cannot be opened: {error}"));
                None
            }
        }
    }

    /// How long the chunk files are, after what is beyond the quota has been cut off and removed.
    fn chunk_lens(&mut self, stem: &str, geometry: &Geometry) -> Vec<u64> {
        let mut lens = vec![0; geometry.chunks() as usize];
        for chunk in self.survey.chunks.get(stem).into_iter().flatten() {
            let name = names::chunk(stem, *chunk);
            let Some(len) = lens.get_mut(*chunk as usize) else {
                self.remove(&name);
                continue;
            };
            *len = match self.storage.size(&name) {
                Ok(size) => size.len_bytes,
                // It went with an old layout of the same name.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    self.notes.push(format!("{name} cannot be looked at: {error}"));
                    continue;
                }
            };
            let most = geometry.chunk_len_bytes(*chunk);
            if *len > most {
                let cut = |file: Box<dyn StorageFile>| file.truncate(most);
                match self.storage.open(&name, Access::Write, Content::Payload).and_then(cut) {
                    Ok(()) => *len = most,
                    Err(error) => self.notes.push(format!("{name} cannot be shortened: {error}")),
                }
            }
        }
        lens
    }
}

/// Writes a table's header and makes the table as long as the class has slots.
fn fit_table(file: &dyn StorageFile, class: &GroupClass, slots_per_chunk: u32) -> io::Result<()> {
    write_all(file, &table::encode_header(class, slots_per_chunk)[..], 0, 1)?;
    let (wanted, len) = (table::entry_offset(class.slots), file.len_bytes()?);
    // A part of an entry at the end must not become a damaged one.
    let part = (len - table::entry_offset(0)) % table::ENTRY_BYTES as u64;
    if len > wanted || part > 0 {
        file.truncate(wanted.min(len - part))?;
    }
    file.allocate(wanted)
}
