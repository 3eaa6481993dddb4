//! What opening a store found and dropped, and what a store uses.

use std::fmt;

use crate::engine::IoEngine;
use crate::storage::IoMode;

/// What opening found, made, repaired and dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenReport {
    /// The store was made just now.
    pub created: bool,
    /// How payload travels.
    pub mode: IoMode,
    /// The unit of memory, offset and length of payload on its way, in bytes.
    pub alignment_bytes: usize,
    /// What carries out batches.
    pub engine: IoEngine,
    /// Namespaces in the catalogue.
    pub namespaces: usize,
    /// Bytes at the catalogue's end that were damaged and are cut off, with all namespaces behind the damage.
    pub catalogue_cut_bytes: u64,
    /// A copy of the superblock, or both, had to be written again.
    pub superblock_repaired: bool,
    /// The classes that the store was opened with, in their order.
    pub classes: Vec<ClassReport>,
    /// Layouts that nobody asked for any more; their space is returned.
    pub removed: Vec<RemovedLayout>,
    /// Errors that kept something from being read or tidied up; the store works all the same.
    pub notes: Vec<String>,
}

impl OpenReport {
    /// Records that are gone, for whatever reason.
    pub fn dropped(&self) -> u64 {
        self.classes.iter().map(|class| class.dropped.total()).sum::<u64>()
            + self.removed.iter().map(|layout| layout.records).sum::<u64>()
    }
}

/// What opening found of one class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassReport {
    /// The group's number.
    pub group: u8,
    /// The group's name.
    pub name: String,
    /// Records that are there.
    pub records: u64,
    /// The number of slots before, if it was another.
    pub slots_before: Option<u32>,
    /// The table's header was damaged and is written again.
    pub header_repaired: bool,
    /// Records that are gone.
    pub dropped: Dropped,
}

/// Records that are gone, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// The table entry is damaged: a crash in mid-write, or bit rot.
    pub damaged_entries: u64,
    /// The catalogue does not know the namespace (any more).
    pub unknown_namespace: u64,
    /// The chunk file is missing or too short.
    pub missing_chunk: u64,
    /// The slot is beyond the quota, which is smaller than before.
    pub beyond_quota: u64,
    /// The table could not be read there; counts slots, whether they held a record or not.
    pub unreadable_slots: u64,
}

impl Dropped {
    /// The sum over all reasons.
    pub fn total(&self) -> u64 {
        self.damaged_entries + self.unknown_namespace + self.missing_chunk + self.beyond_quota + self.unreadable_slots
    }
}

/// A layout whose files were removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovedLayout {
    /// Group name and the first eight hexadecimal digits of the fingerprint.
    pub stem: String,
    /// Records it held.
    pub records: u64,
    /// Bytes that its chunks took of the device.
    pub bytes: u64,
}

impl fmt::Display for OpenReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.created { "new store" } else { "store" };
        write!(f, "{state}, {} input/output by {}, {} namespaces", self.mode, self.engine, self.namespaces)?;
        for class in &self.classes {
            write!(f, "; {}: {} records", class.name, class.records)?;
            let dropped = &class.dropped;
            for (count, why) in [
                (dropped.damaged_entries, "damaged table entry"),
                (dropped.unknown_namespace, "unknown namespace"),
                (dropped.missing_chunk, "missing chunk file"),
                (dropped.beyond_quota, "beyond the quota"),
                (dropped.unreadable_slots, "table unreadable"),
            ] {
                if count > 0 {
                    write!(f, ", {count} dropped ({why})")?;
                }
            }
            if class.header_repaired {
                f.write_str(", table header repaired")?;
            }
        }
        for layout in &self.removed {
            write!(f, "; {}: old layout with {} records removed", layout.stem, layout.records)?;
        }
        if self.superblock_repaired {
            f.write_str("; superblock repaired")?;
        }
        if self.catalogue_cut_bytes > 0 {
            write!(f, "; catalogue cut by {} damaged bytes", self.catalogue_cut_bytes)?;
        }
        self.notes.iter().try_for_each(|note| write!(f, "; {note}"))
    }
}

/// What a store takes of the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// How payload travels.
    pub mode: IoMode,
    /// By class, in the order in which the store was opened.
    pub classes: Vec<ClassUsage>,
    /// Bytes of all slot tables, which come on top of the quotas.
    pub table_bytes: u64,
    /// Bytes of catalogue and superblock, which come on top of the quotas.
    pub catalogue_bytes: u64,
}

/// What a class takes of the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassUsage {
    /// The group's number.
    pub group: u8,
    /// The group's name.
    pub name: String,
    /// Bytes of all slots: what the chunks take at most.
    pub quota_bytes: u64,
    /// Bytes that the chunks take now. They are reserved chunk by chunk.
    pub allocated_bytes: u64,
    /// The part of `quota_bytes` that is there only because the trailer does not fit behind the payload.
    pub overhead_bytes: u64,
}
