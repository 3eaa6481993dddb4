//! What the bytes of an input stand for: the files of a directory.
//!
//! An input that begins with an even byte holds the files themselves, each as its place in the list of names, its length
//! (three bytes) and its bytes. One that begins with an odd byte holds changes to a store that is whole: each an operation and
//! its operands. Some changes make a checksum right again, so that what lies behind it is reached.

use std::sync::OnceLock;

use reprise_disk::GroupClass;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::fixture::{Files, NAMES, TABLES, classes, whole};

const PAGE_BYTES: usize = 4096;
const ENTRY_BYTES: usize = 128;
/// The most that an input can make of one file, in bytes: several times what the store makes of it.
const MAX_FILE_BYTES: usize = 1 << 16;

/// A directory.
pub struct Image {
    pub files: Files,
    /// The store that was damaged; `None` if the files are arbitrary.
    pub origin: Option<&'static Files>,
    /// Whether a checksum was made right again.
    pub sealed: bool,
}

/// The rest of an input.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> Option<usize> {
        self.take(1).first().map(|byte| usize::from(*byte))
    }

    /// A number of so many bytes, little-endian; bytes that are missing count as zeros.
    fn number(&mut self, bytes: usize) -> usize {
        self.take(bytes).iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
    }

    /// The next bytes, or as many as there are.
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

impl Image {
    pub fn parse(bytes: &[u8]) -> Self {
        static WHOLE: OnceLock<Files> = OnceLock::new();
        let mut input = Input(bytes);
        match input.byte() {
            Some(first) if first % 2 == 1 => Self::damaged(WHOLE.get_or_init(whole), input.0),
            _ => Self::arbitrary(input),
        }
    }

    fn arbitrary(mut input: Input<'_>) -> Self {
        let mut files = Files::default();
        while let Some(place) = input.byte() {
            let len = input.number(3).min(MAX_FILE_BYTES);
            files[place % NAMES.len()] = Some(input.take(len).to_vec());
        }
        Self { files, origin: None, sealed: false }
    }

    /// What `changes` make of `origin`.
    pub fn damaged(origin: &'static Files, changes: &[u8]) -> Self {
        let mut input = Input(changes);
        let mut image = Self { files: origin.clone(), origin: Some(origin), sealed: false };
        while let Some(operation) = input.byte() {
            image.change(operation, &mut input);
        }
        image
    }

    fn change(&mut self, operation: usize, input: &mut Input<'_>) {
        let place = input.number(1) % NAMES.len();
        match operation % 8 {
            0 => {
                let (offset, len) = (input.number(2), input.number(1));
                self.write(place, offset, input.take(len));
            }
            1 => {
                let (offset, bit) = (input.number(2), input.number(1));
                if let Some(byte) = self.files[place].as_mut().and_then(|file| file.get_mut(offset)) {
                    *byte ^= 1 << (bit % 8);
                }
            }
            2 => {
                let len = input.number(2);
                if let Some(file) = &mut self.files[place] {
                    file.resize(len, 0);
                }
            }
            3 => self.files[place] = None,
            4 => {
                let (from, start, len) = (input.number(1) % NAMES.len(), input.number(2), input.number(2));
                let source = self.files[from].as_deref().unwrap_or_default();
                let bytes: Vec<u8> = source.iter().skip(start).take(len).copied().collect();
                self.write(place, input.number(2), &bytes);
            }
            5 => self.seal_page(place, input.number(1) % 2),
            6 => self.seal_entry(place, input.number(1) % 4),
            _ => self.seal_namespace(place, input.number(1) % 4),
        }
    }

    fn write(&mut self, place: usize, offset: usize, bytes: &[u8]) {
        let end = (offset + bytes.len()).min(MAX_FILE_BYTES);
        let Some(bytes) = bytes.get(..end.saturating_sub(offset)) else { return };
        let file = self.files[place].get_or_insert_default();
        file.resize(file.len().max(end), 0);
        file[offset..end].copy_from_slice(bytes);
    }

    fn seal_page(&mut self, place: usize, page: usize) {
        let file = self.files[place].as_mut();
        if let Some(page) = file.and_then(|file| file.get_mut(page * PAGE_BYTES..(page + 1) * PAGE_BYTES)) {
            let sum = xxh3_64(&page[..PAGE_BYTES - 8]);
            page[PAGE_BYTES - 8..].copy_from_slice(&sum.to_le_bytes());
            self.sealed = true;
        }
    }

    fn seal_entry(&mut self, place: usize, slot: usize) {
        let class = TABLES.iter().position(|table| *table == place).unwrap_or(0);
        let GroupClass { fingerprint, .. } = &classes()[class];
        let start = PAGE_BYTES + slot * ENTRY_BYTES;
        if let Some(entry) = self.files[place].as_mut().and_then(|file| file.get_mut(start..start + ENTRY_BYTES)) {
            let seed = xxh3_64(&fingerprint.0).wrapping_add(slot as u64);
            let sum = xxh3_64_with_seed(&entry[..112], seed);
            entry[120..].copy_from_slice(&sum.to_le_bytes());
            self.sealed = true;
        }
    }

    /// Makes the `index`-th record of a catalogue sound again, if it ends inside the file.
    fn seal_namespace(&mut self, place: usize, index: usize) {
        let Some(file) = &mut self.files[place] else { return };
        let mut start = PAGE_BYTES;
        for number in 0..=index {
            let Some(len) = file.get(start + 4..start + 8) else { return };
            let len = u32::from_le_bytes(len.try_into().expect("four bytes")) as usize;
            if number < index {
                start = start.saturating_add(len);
                continue;
            }
            let Some(record) = file.get_mut(start..start.saturating_add(len)).filter(|record| record.len() >= 8) else {
                return;
            };
            let (covered, sum) = record.split_at_mut(len - 8);
            sum.copy_from_slice(&xxh3_64_with_seed(covered, index as u64).to_le_bytes());
            self.sealed = true;
        }
    }
}
