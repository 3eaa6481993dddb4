//! Writing records of a store into an archive.

use std::collections::{BTreeSet, HashSet};
use std::io::{self, Write};

use reprise_core::policy::NO_PARENT;

use crate::Buffer;
use crate::format::catalogue;
use crate::format::table::Entry;
use crate::record::Recovered;
use crate::tools::BLOCKS;
use crate::tools::filter::Filter;
use crate::tools::inventory::{Inventory, Shelf};
use crate::tools::paths::Paths;
use crate::tools::reader::ReadOnly;
use crate::tools::slots::Slots;

use super::ArchiveError;
use super::frame::Writer;

/// What an archive was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Namespaces that have records in it.
    pub namespaces: u64,
    /// By group.
    pub groups: Vec<ExportedGroup>,
    /// Records that were meant but are damaged or were replaced meanwhile, and those behind them.
    pub left_out: u64,
}

/// What an archive was given of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedGroup {
    /// The group's name.
    pub group: String,
    /// Records.
    pub records: u64,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
}

/// Writes the records that fit the filter, with all blocks that lead to them, into `out`. A record that is not good is left out,
/// with those behind it.
///
/// Paths come one after the other, the one used last first, so that a smaller store takes the part of the archive that matters
/// most; each block comes behind its parent, and a checkpoint behind its block. `progress` is told how many records of how many are
/// done.
///
/// # Errors
///
/// As for [`ReadOnly::inventory`], and [`ArchiveError::Write`].
pub fn export(
    store: &ReadOnly,
    filter: &Filter,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Exported, ArchiveError> {
    let inventory = store.inventory()?;
    let selection = Selection::new(&inventory, filter);
    let mut writer = Writer::new(out).map_err(ArchiveError::Write)?;
    let mut sources = Vec::new();
    for layout in store.layouts() {
        let shelf = inventory.shelf(layout.class.group).expect("an inventory has a shelf for each layout");
        if layout.class.group != BLOCKS && selection.checkpoints == 0 {
            continue;
        }
        writer.class(layout.class, layout.slots_per_chunk).map_err(ArchiveError::Write)?;
        let slots = Slots::open(store, &layout).map_err(ArchiveError::Read)?;
        sources.push(Source::new(shelf, slots));
    }
    let namespaces = selection.namespaces();
    for &index in &namespaces {
        let record = catalogue::encode(index, &inventory.namespaces[usize::from(index)])?;
        writer.namespace(&record).map_err(ArchiveError::Write)?;
    }
    let total = selection.records(&sources);
    let mut export = Export { writer, sources, selection, done: 0, left_out: 0 };
    export.run(&mut |done| progress(done, total)).map_err(ArchiveError::Write)?;
    let Export { writer, sources, left_out, .. } = export;
    writer.finish().map_err(ArchiveError::Write)?;
    let groups = sources.into_iter().map(Source::count).collect();
    Ok(Exported { namespaces: namespaces.len() as u64, groups, left_out })
}

/// What is meant, by the slots of blocks.
struct Selection {
    paths: Paths,
    last_uses: Vec<u64>,
    blocks: Vec<Block>,
    checkpoints: u64,
}

/// What is to be done with a block.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Block {
    wanted: bool,
    /// The checkpoint at its end is meant.
    checkpoint: bool,
    /// A block behind it is wanted.
    leads_on: bool,
    namespace: u16,
    state: State,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Waiting,
    Written,
    /// Not good, or behind one that is not.
    Lost,
}

impl Selection {
    fn new(inventory: &Inventory, filter: &Filter) -> Self {
        let paths = Paths::new(inventory, &HashSet::new());
        let last_uses = paths.last_uses(inventory);
        let mut blocks = vec![Block::default(); last_uses.len()];
        for shelf in &inventory.shelves {
            for record in shelf.records.iter().filter(|record| filter.fits(shelf.class.group, record)) {
                let Some(id) = paths.tree.find(&record.digest) else { continue };
                let is_block = shelf.class.group == BLOCKS && id == record.slot;
                blocks[id as usize].wanted |= is_block;
                blocks[id as usize].checkpoint |=
                    shelf.class.group != BLOCKS && paths.tree.checkpoint_of(id) == Some(record.slot);
            }
        }
        let mut entries = paths.tree.entries();
        entries.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.depth));
        for entry in entries {
            let block = &mut blocks[entry.id as usize];
            block.namespace = entry.namespace;
            block.wanted |= block.checkpoint;
            if block.wanted && entry.parent != NO_PARENT {
                let parent = &mut blocks[entry.parent as usize];
                (parent.wanted, parent.leads_on) = (true, true);
            }
        }
        let checkpoints = blocks.iter().filter(|block| block.checkpoint).count() as u64;
        Self { paths, last_uses, blocks, checkpoints }
    }

    fn namespaces(&self) -> BTreeSet<u16> {
        self.blocks.iter().filter(|block| block.wanted).map(|block| block.namespace).collect()
    }

    fn records(&self, sources: &[Source<'_>]) -> u64 {
        let checkpoint_groups = sources.iter().filter(|source| source.group != BLOCKS).count() as u64;
        self.blocks.iter().filter(|block| block.wanted).count() as u64 + self.checkpoints * checkpoint_groups
    }

    /// The ends of the wanted paths, the one used last first.
    fn ends(&self) -> Vec<u32> {
        let is_end = |id: &u32| self.blocks[*id as usize].wanted && !self.blocks[*id as usize].leads_on;
        let mut ends: Vec<u32> = (0..self.blocks.len() as u32).filter(is_end).collect();
        ends.sort_by_key(|&id| std::cmp::Reverse(self.last_uses[id as usize]));
        ends
    }

    /// The blocks from the first of a path to `end`.
    fn path(&self, end: u32) -> Vec<u32> {
        let parent = |&id: &u32| Some(self.paths.tree.parent(id)).filter(|&parent| parent != NO_PARENT);
        let mut path: Vec<u32> = std::iter::successors(Some(end), parent).collect();
        path.reverse();
        path
    }
}

/// One group on its way into an archive.
struct Source<'a> {
    group: u8,
    slots: Slots<'a>,
    /// Its records by slot.
    records: Vec<Option<&'a Recovered>>,
    buffer: Buffer,
    written: u64,
}

impl<'a> Source<'a> {
    fn new(shelf: &'a Shelf, slots: Slots<'a>) -> Self {
        let count = shelf.records.iter().map(|record| record.slot as usize + 1).max().unwrap_or(0);
        let mut records = vec![None; count];
        shelf.records.iter().for_each(|record| records[record.slot as usize] = Some(record));
        Self { group: shelf.class.group, slots, records, buffer: Buffer::new(), written: 0 }
    }

    /// Reads the record in `slot`, if it is still the one that was there and good.
    fn read(&mut self, slot: u32) -> Option<Entry> {
        let record = self.records[slot as usize]?;
        let entry = self.slots.entry(slot).ok()?;
        let is_same = entry.is_sound(self.slots.class, slot)
            && entry.digest == record.digest.0
            && entry.position.get() == record.position
            && entry.namespace.get() == record.namespace;
        (is_same && self.slots.read(slot, &entry, &mut self.buffer).is_ok()).then_some(entry)
    }

    fn write(&mut self, writer: &mut Writer<'_>, slot: u32, entry: &Entry) -> io::Result<()> {
        self.buffer.resize(self.slots.class.slot_bytes() as usize);
        self.written += 1;
        writer.record(slot, entry, self.buffer.bytes())
    }

    fn count(self) -> ExportedGroup {
        let class = self.slots.class;
        let payload_bytes = self.written * class.payload_bytes;
        ExportedGroup { group: class.name.clone(), records: self.written, payload_bytes }
    }
}

struct Export<'a> {
    writer: Writer<'a>,
    sources: Vec<Source<'a>>,
    selection: Selection,
    done: u64,
    left_out: u64,
}

impl Export<'_> {
    fn run(&mut self, progress: &mut dyn FnMut(u64)) -> io::Result<()> {
        for end in self.selection.ends() {
            let mut is_whole = true;
            for id in self.selection.path(end) {
                let Block { state, checkpoint, .. } = self.selection.blocks[id as usize];
                if state == State::Waiting {
                    is_whole = self.write(id, true, is_whole)?;
                    self.selection.blocks[id as usize].state = if is_whole { State::Written } else { State::Lost };
                    if checkpoint {
                        let slot = self.selection.paths.tree.checkpoint_of(id);
                        self.write(slot.expect("a checkpoint that is meant is there"), false, is_whole)?;
                    }
                    progress(self.done);
                }
                is_whole = self.selection.blocks[id as usize].state == State::Written;
            }
        }
        Ok(())
    }

    /// Writes the record in `slot` of the group of blocks, or those in all the others; all or none of them. Returns whether it did;
    /// it does not if nothing leads to them.
    fn write(&mut self, slot: u32, of_block: bool, is_reachable: bool) -> io::Result<bool> {
        let mut sources: Vec<_> =
            self.sources.iter_mut().filter(|source| (source.group == BLOCKS) == of_block).collect();
        self.done += sources.len() as u64;
        let entries: Option<Vec<Entry>> = match is_reachable {
            true => sources.iter_mut().map(|source| source.read(slot)).collect(),
            false => None,
        };
        let Some(entries) = entries else {
            self.left_out += sources.len() as u64;
            return Ok(false);
        };
        for (source, entry) in sources.iter_mut().zip(&entries) {
            source.write(&mut self.writer, slot, entry)?;
        }
        Ok(true)
    }
}
