//! What a simulated disk is made of: files and names with changes that are not durable yet.

use std::collections::BTreeMap;

use crate::faults::{Random, Tally};

pub const SECTOR_BYTES: usize = 512;

/// Which of the changes that were not synced survive a crash.
#[derive(Clone, Copy, Debug)]
pub enum Crash {
    LoseAll,
    KeepAll,
    /// Any of them, whole or in part.
    Some {
        seed: u64,
    },
}

/// A change of a file.
#[derive(Clone)]
pub enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Resize { len: usize },
}

impl Change {
    pub fn apply(&self, file: &mut Vec<u8>) {
        match self {
            Self::Resize { len } => file.resize(*len, 0),
            Self::Write { offset, bytes } => write(file, *offset, bytes),
        }
    }

    /// Applies what survives of it.
    fn apply_torn(&self, file: &mut Vec<u8>, random: &mut Random, tally: &mut Tally) {
        let Self::Write { offset, bytes } = self else { return self.apply(file) };
        match random.below(4) {
            0 => self.apply(file),
            // A prefix, to the byte.
            1 => {
                *tally.entry("write torn to a prefix by a crash").or_default() += 1;
                write(file, *offset, &bytes[..random.below(bytes.len() as u64 + 1) as usize]);
            }
            // Any sectors.
            _ => {
                *tally.entry("write torn by sectors by a crash").or_default() += 1;
                for (index, sector) in bytes.chunks(SECTOR_BYTES).enumerate() {
                    if random.one_in(2) {
                        write(file, offset + index * SECTOR_BYTES, sector);
                    }
                }
            }
        }
    }
}

fn write(file: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let end = offset + bytes.len();
    if file.len() < end {
        file.resize(end, 0);
    }
    file[offset..end].copy_from_slice(bytes);
}

/// The content of a file.
#[derive(Default)]
pub struct Inode {
    pub durable: Vec<u8>,
    pub written: Vec<u8>,
    pub pending: Vec<Change>,
}

impl Inode {
    /// What is left after a crash.
    pub fn crash(&self, mode: Crash, random: &mut Random, tally: &mut Tally) -> Self {
        let mut bytes = self.durable.clone();
        for change in &self.pending {
            match mode {
                Crash::Some { .. } if random.one_in(2) => change.apply_torn(&mut bytes, random, tally),
                Crash::KeepAll => change.apply(&mut bytes),
                Crash::LoseAll | Crash::Some { .. } => *tally.entry("change lost by a crash").or_default() += 1,
            }
        }
        Self { written: bytes.clone(), durable: bytes, pending: Vec::new() }
    }

    pub fn change(&mut self, change: Change) {
        change.apply(&mut self.written);
        self.pending.push(change);
    }

    pub fn sync(&mut self) {
        for change in self.pending.drain(..) {
            change.apply(&mut self.durable);
        }
    }
}

/// A change of the directory.
#[derive(Clone)]
pub enum NameChange {
    Create(String, usize),
    Remove(String),
}

impl NameChange {
    pub fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Create(name, inode) => names.insert(name.clone(), *inode),
            Self::Remove(name) => names.remove(name),
        };
    }
}
