//! The open store: its parts, its options, and what does not touch a record.

mod batch;
mod catalogue;
mod class;
mod limits;
mod open;
mod read;
mod scan;
mod survey;
mod write;

use std::path::Path;
use std::time::Duration;

use crate::chunks::ChunkFiles;
use crate::class::GroupClass;
use crate::desk::Desk;
use crate::engine::{EngineChoice, IoEngine};
use crate::error::StoreError;
use crate::format::names;
use crate::locks::lock;
use crate::record::Recovered;
use crate::report::{ClassUsage, OpenReport, Usage};
use crate::storage::{Directory, IoMode, LockGuard, Storage};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, Mutex};
use class::Class;

pub(crate) use catalogue::load as load_catalogue;
pub(crate) use open::{open_locked, take_lock};
pub(crate) use read::Located;
pub(crate) use scan::{Batches, entries, recovered};
pub(crate) use survey::{Identity, Survey, identify};
pub(crate) use write::{Place, Prepared};

/// When a put is on the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// After the next [`Store::sync`], or when the operating system gets to it. A crash loses records, and never
    /// makes one wrong.
    #[default]
    Relaxed,
    /// Before `put` returns: the record survives a crash.
    Strict,
}

/// How a store is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// When a put is on the device.
    pub durability: Durability,
    /// The most bytes of one chunk file (but each holds one slot at least). A class that is there already keeps the
    /// size it was made with.
    pub chunk_bytes: u64,
    /// Whether to read and write payload past the page cache, where that works.
    pub direct: bool,
    /// The most chunk files that are kept open, besides one table a class, the catalogue and the lock. Fewer are kept if
    /// the process may not open so many; the report says so.
    pub open_files: usize,
    /// How batches are carried out.
    pub io: IoOptions,
}

/// How batches are carried out, and what that may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoOptions {
    /// What carries them out.
    pub engine: EngineChoice,
    /// The most reads that are with the device at once, and the most puts, each at least 1. Fewer reads are if
    /// `buffer_bytes` has no room for more.
    pub depth: usize,
    /// Memory for reads in flight and what they brought until it is dropped, in bytes: an equal part for each class, but
    /// room for one record at least. One batch has at most half of it. Puts bring their own.
    pub buffer_bytes: u64,
    /// Threads that check and prepare records, at least 1; without io_uring they read and write as well.
    pub threads: usize,
    /// How long a read or a put of a batch may take if the batch has no deadline of its own.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::Relaxed,
            chunk_bytes: 256 << 20,
            direct: true,
            open_files: 32,
            io: IoOptions::default(),
        }
    }
}

impl Default for IoOptions {
    fn default() -> Self {
        Self {
            engine: EngineChoice::Automatic,
            depth: 32,
            buffer_bytes: 64 << 20,
            threads: 4,
            patience: Duration::from_secs(10),
        }
    }
}

/// An open store. All methods may be called from several threads.
///
/// The caller decides which record lies in which slot. It promises that while it puts into a slot, nobody else puts
/// into the same slot, frees or reads it; if it breaks the promise, a record is lost and a read misses, but no read
/// brings wrong bytes.
///
/// Dropping a store lets the puts of batches end, cancels the reads that have not begun, and syncs the store.
pub struct Store {
    core: Arc<Core>,
    desk: Arc<Desk>,
    engine: IoEngine,
    patience: Duration,
}

/// What the store's threads share: everything but the threads themselves.
pub(crate) struct Core {
    storage: Arc<dyn Storage>,
    durability: Durability,
    mode: IoMode,
    classes: Vec<Class>,
    chunks: ChunkFiles,
    catalogue: catalogue::Catalogue,
    /// The number of the next put.
    sequence: AtomicU64,
    /// A sync has failed.
    poisoned: AtomicBool,
    /// A file has been made since the directory was synced.
    directory_dirty: AtomicBool,
    /// Held by a sync of the whole store.
    syncing: Mutex<()>,
    /// Held by a sync of the directory.
    syncing_directory: Mutex<()>,
    _lock: Box<dyn LockGuard>,
}

impl Store {
    /// Opens the store in `dir`, or makes one if the directory is missing or empty, with room for these classes.
    ///
    /// Damage to the store's own files is no error: what is affected is dropped, and the report says so. Classes that
    /// are there but not asked for, or with another layout, are removed.
    ///
    /// # Errors
    ///
    /// [`StoreError::Foreign`], [`StoreError::NewerFormat`], [`StoreError::UnknownFeatures`] and
    /// [`StoreError::SuperblockLost`] leave the directory untouched; [`StoreError::Locked`] names the process that has
    /// the store; [`StoreError::InvalidClass`] says what is wrong with a class; [`StoreError::Full`] and
    /// [`StoreError::Io`] come if a new store cannot be made or the directory cannot be read at all.
    pub fn open(dir: &Path, classes: &[GroupClass], options: &Options) -> Result<(Self, OpenReport), StoreError> {
        let storage = Directory::create(dir, options.direct)
            .map_err(|error| StoreError::io(format!("opening the directory {}", dir.display()), error))?;
        Self::open_in(Arc::new(storage), classes, options)
    }

    /// Like [`open`](Self::open), on any storage.
    pub fn open_in(
        storage: Arc<dyn Storage>,
        classes: &[GroupClass],
        options: &Options,
    ) -> Result<(Self, OpenReport), StoreError> {
        open::open(storage, classes, options)
    }

    /// The records found at open in the group's slots, in the order of slots. They are given away: a second call brings
    /// none.
    pub fn take_records(&self, group: u8) -> Vec<Recovered> {
        self.core
            .class_index(group)
            .map_or_else(Vec::new, |index| std::mem::take(&mut *lock(&self.core.classes[index].recovered)))
    }

    /// How payload travels.
    pub fn mode(&self) -> &IoMode {
        &self.core.mode
    }

    /// What carries out batches.
    pub fn engine(&self) -> &IoEngine {
        &self.engine
    }

    /// What the store takes of the device now. Looks at every file by name; one that cannot be looked at counts as
    /// nothing.
    pub fn usage(&self) -> Usage {
        let core = &self.core;
        let allocated = |name: &str| core.storage.size(name).map_or(0, |size| size.allocated_bytes);
        let class_usage = |class: &Class| ClassUsage {
            group: class.spec.group,
            name: class.spec.name.clone(),
            quota_bytes: u64::from(class.spec.slots) * class.geometry.slot_bytes,
            allocated_bytes: (0..class.geometry.chunks()).map(|chunk| allocated(&class.chunk_name(chunk))).sum(),
            overhead_bytes: u64::from(class.spec.slots) * class.spec.overhead_bytes(),
        };
        Usage {
            mode: core.mode.clone(),
            classes: core.classes.iter().map(class_usage).collect(),
            table_bytes: core.classes.iter().map(|class| allocated(&class.table_name())).sum(),
            catalogue_bytes: allocated(names::CATALOGUE) + allocated(names::SUPERBLOCK),
        }
    }
}

impl Core {
    fn class_index(&self, group: u8) -> Option<usize> {
        self.classes.iter().position(|class| class.spec.group == group)
    }

    /// The layouts of the classes, in order.
    pub fn specs(&self) -> impl Iterator<Item = &GroupClass> {
        self.classes.iter().map(|class| &class.spec)
    }

    /// The layout of a class.
    pub fn spec(&self, class_index: usize) -> &GroupClass {
        &self.classes[class_index].spec
    }

    /// The class of a group, if it has this slot.
    fn slot(&self, group: u8, slot: u32) -> Option<(usize, &Class)> {
        let index = self.class_index(group)?;
        let class = &self.classes[index];
        (slot < class.spec.slots).then_some((index, class))
    }

    /// Whether writes are still taken.
    fn check_writable(&self) -> Result<(), StoreError> {
        if self.poisoned.load(Ordering::Acquire) { Err(StoreError::Poisoned) } else { Ok(()) }
    }

    /// Passes the result of a sync on; a failed one ends all writing.
    fn synced(&self, what: &str, result: std::io::Result<()>) -> Result<(), StoreError> {
        result.map_err(|error| {
            self.poisoned.store(true, Ordering::Release);
            StoreError::io(format!("syncing {what}"), error)
        })
    }

    /// Makes new files durable.
    fn sync_directory(&self) -> Result<(), StoreError> {
        let _syncing = lock(&self.syncing_directory);
        if self.directory_dirty.swap(false, Ordering::AcqRel) {
            self.synced("the directory", self.storage.sync_directory())?;
        }
        Ok(())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // A device that holds operations beyond all patience would hold a sync as well.
        if self.desk.close(self.patience) {
            // Nobody is left to hear of an error; what it costs is records, and they are missed.
            let _ = self.sync();
        }
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("mode", &self.core.mode)
            .field("engine", &self.engine)
            .field("classes", &self.core.classes.len())
            .finish_non_exhaustive()
    }
}
