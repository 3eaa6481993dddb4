//! Bringing the records of an archive into a store.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::Read;
use std::path::Path;

use reprise_core::Digest;
use reprise_core::policy::NO_PARENT;
use reprise_core::tree::Placement;

use crate::Buffer;
use crate::class::GroupClass;
use crate::engine::EngineChoice;
use crate::error::StoreError;
use crate::format::table::Entry;
use crate::record::Key;
use crate::storage::{Directory, Storage};
use crate::store::{IoOptions, Options, Store};
use crate::sync::Arc;
use crate::tools::BLOCKS;
use crate::tools::inventory::{Inventory, depth};
use crate::tools::maintenance::Maintenance;
use crate::tools::paths::Paths;
use crate::tools::reader::ReadOnly;

use super::ArchiveError;
use super::frame::{Next, Reader};
use super::room::{GrowingTree, fit};

/// What a store was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// By group, in the order of the archive.
    pub groups: Vec<ImportedGroup>,
    /// Why what follows in the archive was not read; `None` if it was read to its end.
    pub stopped: Option<String>,
}

/// What became of the records of one group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportedGroup {
    /// The group's name.
    pub group: String,
    /// Records that are in the store now and were not before.
    pub imported: u64,
    /// Records that were there already.
    pub present: u64,
    /// Records that had no room: every slot of the group is taken.
    pub full: u64,
    /// Records that nothing in the store leads to, as what lies before them was left out.
    pub unreachable: u64,
    /// Records of checkpoints that lack a group which the store keeps.
    pub incomplete: u64,
    /// Records that are damaged in the archive.
    pub damaged: u64,
}

/// Brings the records of an archive into the store in `dir`, which is made if the directory is missing or empty. `progress` is told
/// what has become of the records so far.
///
/// Every record is verified. One whose key is there already is skipped; so is one that has no room, or that nothing leads to. A
/// group that the store has no table of yet gets as many slots as in the store that the archive comes from, or as the file system
/// has room for. What has been brought in is durable when this returns; if it is interrupted, some records are in the store and
/// each of them is good.
///
/// What the archive says of itself costs memory for one record of each group, which every open store keeps; all else grows with the
/// records that come.
///
/// # Errors
///
/// Before the first record: what makes the archive or the store unusable, [`ArchiveError::Layout`] if they do not fit each other,
/// [`ArchiveError::NoRoom`] if there is no space for a single record.
/// Behind it only [`ArchiveError::Read`], and [`ArchiveError::Store`] from the sync at the end; all else stops the import, and the
/// report says why.
pub fn import(dir: &Path, input: &mut dyn Read, progress: &mut dyn FnMut(&Imported)) -> Result<Imported, ArchiveError> {
    let archive = Reader::new(input)?;
    let storage = Directory::create(dir, true)
        .map_err(|error| StoreError::io(format!("opening the directory {}", dir.display()), error))?;
    run(archive, Arc::new(storage), progress)
}

/// Like [`import`], on any storage.
///
/// # Errors
///
/// As for [`import`].
pub fn import_in(
    storage: Arc<dyn Storage>,
    input: &mut dyn Read,
    progress: &mut dyn FnMut(&Imported),
) -> Result<Imported, ArchiveError> {
    run(Reader::new(input)?, storage, progress)
}

fn run(
    mut archive: Reader<'_>,
    storage: Arc<dyn Storage>,
    progress: &mut dyn FnMut(&Imported),
) -> Result<Imported, ArchiveError> {
    let (store, classes) = open(storage, &archive.classes)?;
    let mut import = Import::new(store, &classes, &archive);
    let mut buffer = Buffer::new();
    loop {
        match archive.next(&mut buffer)? {
            Next::Record { class_index, entry } => match import.record(&archive, class_index, &entry, &mut buffer) {
                Ok(fate) => *fate.count(&mut import.report.groups[class_index]) += 1,
                Err(error) => import.report.stopped = Some(error.to_string()),
            },
            Next::Damaged { class_index } => import.report.groups[class_index].damaged += 1,
            Next::Done => break,
            Next::Broken { why } => import.report.stopped = Some(format!("the archive is not whole: {why}")),
        }
        progress(&import.report);
        if import.report.stopped.is_some() {
            break;
        }
    }
    import.store.sync()?;
    Ok(import.report)
}

/// Opens the store with the classes it has and those of the archive that it has no table of.
fn open(storage: Arc<dyn Storage>, archived: &[GroupClass]) -> Result<(Store, Vec<GroupClass>), ArchiveError> {
    let maintenance = match Maintenance::open_in(Arc::clone(&storage)) {
        Err(StoreError::NotAStore { .. }) => {
            let classes = fit(&archived.iter().collect::<Vec<_>>(), free_bytes(&*storage)?)?;
            let (store, _) = Store::open_in(storage, &classes, &options())?;
            return Ok((store, classes));
        }
        opened => opened?,
    };
    check_layouts(maintenance.reader(), archived)?;
    let is_missing = |class: &&GroupClass| maintenance.reader().classes().all(|found| found.group != class.group);
    let missing: Vec<&GroupClass> = archived.iter().filter(is_missing).collect();
    let missing = fit(&missing, free_bytes(&*storage)?)?;
    let (store, classes, _) = maintenance.into_store(storage, missing, &options())?;
    Ok((store, classes))
}

/// Records are put one by one, so that nothing is kept for batches.
fn options() -> Options {
    let io =
        IoOptions { engine: EngineChoice::Blocking, buffer_bytes: 0, depth: 1, threads: 1, ..IoOptions::default() };
    Options { io, ..Options::default() }
}

fn free_bytes(storage: &dyn Storage) -> Result<u64, StoreError> {
    storage.free_bytes().map_err(|error| StoreError::io("asking how much space is free", error))
}

fn check_layouts(store: &ReadOnly, archived: &[GroupClass]) -> Result<(), ArchiveError> {
    // That each group has one layout, and that every layout is known.
    let inventory = store.inventory()?;
    for shelf in &inventory.shelves {
        let found = &shelf.class;
        let other = archived.iter().find(|class| class.group == found.group || class.name == found.name);
        let Some(class) = other.filter(|class| !class.same_layout(found)) else { continue };
        let print = |class: &GroupClass| class.stem().rsplit('-').next().unwrap_or_default().to_owned();
        let why = format!(
            "{} bytes a record and fingerprint {}…, the store has {} bytes and {}…",
            class.payload_bytes,
            print(class),
            found.payload_bytes,
            print(found)
        );
        return Err(ArchiveError::Layout { group: class.name.clone(), why });
    }
    Ok(())
}

/// What becomes of a record.
#[derive(Clone, Copy)]
enum Fate {
    Imported,
    Present,
    Full,
    Unreachable,
    Incomplete,
}

impl Fate {
    fn count(self, group: &mut ImportedGroup) -> &mut u64 {
        match self {
            Self::Imported => &mut group.imported,
            Self::Present => &mut group.present,
            Self::Full => &mut group.full,
            Self::Unreachable => &mut group.unreachable,
            Self::Incomplete => &mut group.incomplete,
        }
    }
}

/// A store that is being given records, and what it holds.
struct Import {
    store: Store,
    growing: GrowingTree,
    /// From the archive's numbers of namespaces to the store's.
    namespaces: HashMap<u16, u16>,
    /// The archive has every group of checkpoints that the store has.
    has_checkpoints: bool,
    /// The checkpoint seen last: its slot, or why it has none.
    checkpoint: Option<(Digest, Result<u32, Fate>)>,
    report: Imported,
}

impl Import {
    fn new(store: Store, classes: &[GroupClass], archive: &Reader<'_>) -> Self {
        let inventory = Inventory::of_open(&store, classes);
        let groups = |classes: &[GroupClass]| classes.iter().map(|class| class.group).collect::<BTreeSet<u8>>();
        let slots = |is_meant: fn(u8) -> bool| {
            let meant = classes.iter().filter(move |class| is_meant(class.group));
            meant.map(|class| class.slots).min().unwrap_or(0)
        };
        let tree = Paths::new(&inventory, &HashSet::new()).tree;
        let report = |class: &GroupClass| ImportedGroup { group: class.name.clone(), ..ImportedGroup::default() };
        Self {
            store,
            growing: GrowingTree::new(tree, slots(|group| group == BLOCKS), slots(|group| group != BLOCKS)),
            namespaces: HashMap::new(),
            has_checkpoints: groups(&archive.classes) == groups(classes),
            checkpoint: None,
            report: Imported { groups: archive.classes.iter().map(report).collect(), stopped: None },
        }
    }

    fn record(
        &mut self,
        archive: &Reader<'_>,
        class_index: usize,
        entry: &Entry,
        buffer: &mut Buffer,
    ) -> Result<Fate, StoreError> {
        let group = archive.classes[class_index].group;
        let namespace = &archive.namespaces[&entry.namespace.get()];
        let depth = depth(namespace, entry.position.get());
        let digest = Digest(entry.digest);
        if group != BLOCKS {
            return match self.place_checkpoint(digest, depth, entry.last_use.get()) {
                Ok(slot) => self.put(archive, group, slot, entry, buffer).map(|()| Fate::Imported),
                Err(fate) => Ok(fate),
            };
        }
        let tree = &self.growing.tree;
        if tree.find(&digest).is_some() {
            return Ok(Fate::Present);
        }
        let parent = match depth {
            1 => Some(NO_PARENT),
            _ => tree.find(&Digest(entry.parent)).filter(|&id| tree.depth(id).checked_add(1) == Some(depth)),
        };
        let Some(parent) = parent else { return Ok(Fate::Unreachable) };
        if !self.growing.has_block() {
            return Ok(Fate::Full);
        }
        let last_use = entry.last_use.get();
        let Some(slot) = self.growing.tree.insert(parent, digest, entry.namespace.get(), last_use, false) else {
            return Ok(Fate::Full);
        };
        self.put(archive, group, slot, entry, buffer).map(|()| Fate::Imported)
    }

    /// The slot for the records of a checkpoint; they come one behind the other.
    fn place_checkpoint(&mut self, digest: Digest, depth: u32, last_use: u64) -> Result<u32, Fate> {
        if let Some((last, result)) = self.checkpoint
            && last == digest
        {
            return result;
        }
        let result = self.find_slot(digest, depth, last_use);
        self.checkpoint = Some((digest, result));
        result
    }

    fn find_slot(&mut self, digest: Digest, depth: u32, last_use: u64) -> Result<u32, Fate> {
        if !self.has_checkpoints {
            return Err(Fate::Incomplete);
        }
        let tree = &self.growing.tree;
        let block = tree.find(&digest).filter(|&id| tree.depth(id) == depth).ok_or(Fate::Unreachable)?;
        if tree.checkpoint_of(block).is_some() {
            return Err(Fate::Present);
        }
        if !self.growing.has_checkpoint() {
            return Err(Fate::Full);
        }
        match self.growing.tree.place_checkpoint(block, last_use, false) {
            Placement::Placed { slot, .. } => Ok(slot),
            Placement::Present | Placement::NoRoom => Err(Fate::Full),
        }
    }

    fn put(
        &mut self,
        archive: &Reader<'_>,
        group: u8,
        slot: u32,
        entry: &Entry,
        buffer: &mut Buffer,
    ) -> Result<(), StoreError> {
        let archived = entry.namespace.get();
        let namespace = match self.namespaces.get(&archived) {
            Some(&namespace) => namespace,
            None => {
                let namespace = self.store.namespace(&archive.namespaces[&archived])?;
                self.namespaces.insert(archived, namespace);
                namespace
            }
        };
        let key = Key { namespace, digest: Digest(entry.digest), position: entry.position.get() };
        self.store.put(group, slot, &key, Digest(entry.parent), entry.last_use.get(), buffer)
    }
}
