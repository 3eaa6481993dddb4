//! Checking every byte of a store without changing one.

use zerocopy::IntoBytes;

use crate::Buffer;
use crate::error::Miss;
use crate::format::names;
use crate::format::table::{Entry, LAST_USE_OFFSET};
use crate::record::Recovered;
use crate::store::{Batches, entries, recovered};

use super::reader::{Layout, ReadOnly};
use super::slots::Slots;

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
    /// What is damaged or unreadable, by slot; but for parts of the table that cannot be read, which are only counted.
    pub findings: Vec<Finding>,
}

/// A record that is not good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The group.
    pub group: u8,
    /// The slot.
    pub slot: u32,
    /// The file whose bytes are wrong.
    pub file: String,
    /// What is wrong with them.
    pub fault: Fault,
    /// What the entry says about the record; `None` if the entry itself cannot be believed.
    pub record: Option<Recovered>,
}

/// What is wrong with a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The table entry has a wrong checksum, or is of another class.
    Entry,
    /// The catalogue does not have the namespace that the entry names.
    Namespace,
    /// The trailer behind the payload is not the one that the entry names, or the slot is not there in full.
    Trailer,
    /// A section of the payload has a wrong checksum; it is the first that has.
    Section {
        /// Counted from 0.
        index: usize,
    },
    /// The chunk file is missing.
    NoChunk,
    /// The operating system reports an error.
    Unreadable {
        /// Its text.
        why: String,
    },
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Entry => f.write_str("table entry"),
            Self::Namespace => f.write_str("namespace not in the catalogue"),
            Self::Trailer => f.write_str("trailer"),
            Self::Section { index } => write!(f, "section {index}"),
            Self::NoChunk => f.write_str("file missing"),
            Self::Unreadable { why } => write!(f, "cannot be read: {why}"),
        }
    }
}

impl VerifyReport {
    /// Whether nothing is damaged.
    pub fn is_clean(&self) -> bool {
        let clean = |class: &ClassVerdict| {
            !class.damaged_header && class.corrupt == 0 && class.damaged_entries == 0 && class.unreadable == 0
        };
        self.classes.iter().all(clean)
    }

    /// All findings, by class and slot.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.classes.iter().flat_map(|class| &class.findings)
    }
}

impl ReadOnly {
    /// Reads every record and checks every byte of it. `progress` is told how many slots of how many have been looked
    /// at.
    pub fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> VerifyReport {
        let total = self.classes().map(|class| u64::from(class.slots)).sum();
        let mut report = VerifyReport { namespaces: self.namespaces().len(), classes: Vec::new() };
        let mut before = 0;
        for (stem, header) in &self.survey.tables {
            let Some((class, slots_per_chunk)) = header else {
                report.classes.push(ClassVerdict { stem: stem.clone(), damaged_header: true, ..Default::default() });
                continue;
            };
            let layout = Layout { stem, class, slots_per_chunk: *slots_per_chunk };
            let mut progress = |slot: u32| progress(before + u64::from(slot), total);
            report.classes.push(self.verify_class(&layout, &mut progress));
            before += u64::from(class.slots);
        }
        progress(total, total);
        report
    }

    fn verify_class(&self, layout: &Layout<'_>, progress: &mut dyn FnMut(u32)) -> ClassVerdict {
        let mut verdict = ClassVerdict { stem: layout.stem.to_owned(), ..ClassVerdict::default() };
        let Ok(slots) = Slots::open(self, layout) else {
            verdict.unreadable = u64::from(layout.class.slots);
            return verdict;
        };
        let mut batches = Batches::new(slots.table.len_bytes().unwrap_or(0));
        let mut check = Check { store: self, slots, buffer: Buffer::new() };
        while let Some(batch) = batches.next(&*check.slots.table) {
            let Ok(bytes) = batch.bytes else {
                verdict.unreadable += u64::from(batch.end - batch.first);
                continue;
            };
            for (slot, entry) in entries(batch.first, bytes).filter(|(slot, _)| *slot < layout.class.slots) {
                if !entry.is_free() {
                    verdict.count(check.record(slot, entry));
                }
                progress(slot + 1);
            }
        }
        verdict
    }
}

impl ClassVerdict {
    fn count(&mut self, outcome: Outcome) {
        self.records += 1;
        match outcome {
            Outcome::Good => self.good += 1,
            Outcome::Changed => self.changed += 1,
            Outcome::Bad(finding) => {
                *match &finding.fault {
                    Fault::Entry | Fault::Namespace => &mut self.damaged_entries,
                    Fault::Trailer | Fault::Section { .. } | Fault::NoChunk => &mut self.corrupt,
                    Fault::Unreadable { .. } => &mut self.unreadable,
                } += 1;
                self.findings.push(finding);
            }
        }
    }
}

/// What became of one record.
enum Outcome {
    Good,
    Changed,
    Bad(Finding),
}

/// The check of one class.
struct Check<'a> {
    store: &'a ReadOnly,
    slots: Slots<'a>,
    buffer: Buffer,
}

impl Check<'_> {
    fn record(&mut self, slot: u32, entry: &Entry) -> Outcome {
        let Err(fault) = self.check(slot, entry) else { return Outcome::Good };
        // The owner may have put another record there since the table was read.
        const COVERED: std::ops::RangeTo<usize> = ..LAST_USE_OFFSET as usize;
        let now = self.slots.entry(slot);
        if now.is_ok_and(|now| now.as_bytes()[COVERED] != entry.as_bytes()[COVERED]) {
            return Outcome::Changed;
        }
        let file = match fault {
            Fault::Entry | Fault::Namespace => names::table(&self.slots.class.stem()),
            _ => self.slots.chunk_name(slot),
        };
        let record = (fault != Fault::Entry).then(|| recovered(slot, entry));
        Outcome::Bad(Finding { group: self.slots.class.group, slot, file, fault, record })
    }

    fn check(&mut self, slot: u32, entry: &Entry) -> Result<(), Fault> {
        if !entry.is_sound(self.slots.class, slot) {
            return Err(Fault::Entry);
        }
        if !self.store.knows(entry) {
            return Err(Fault::Namespace);
        }
        self.slots.read(slot, entry, &mut self.buffer).map_err(|miss| match miss {
            Miss::Absent => Fault::NoChunk,
            Miss::Corrupt { section: None } => Fault::Trailer,
            Miss::Corrupt { section: Some(index) } => Fault::Section { index },
            Miss::Io(error) => Fault::Unreadable { why: error.to_string() },
            miss => Fault::Unreadable { why: miss.to_string() },
        })
    }
}
