//! A group of equally long records, and how its slots lie in chunk files.

use reprise_core::Digest;

use crate::error::StoreError;
use crate::format::table::MAX_SECTIONS;
use crate::format::{PAGE_BYTES, trailer};

/// The longest name of a group, in bytes.
pub const MAX_NAME_BYTES: usize = 64;

/// One group of records that all have the same layout and length, and the number of slots it may fill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupClass {
    /// The caller's number of the group. It is part of what every checksum covers: the same store must be opened with
    /// the same number.
    pub group: u8,
    /// The group's name, part of file names: 1 to [`MAX_NAME_BYTES`] letters, digits, `_` or `-`.
    pub name: String,
    /// The fingerprint of the group's layout. Records of another fingerprint are dropped when the store is opened.
    pub fingerprint: Digest,
    /// Bytes of every record, without the store's own trailer.
    pub payload_bytes: u64,
    /// Where each section of the payload ends, ascending; all are multiples of 4,096 but the last, which is
    /// `payload_bytes`. At most [`MAX_SECTIONS`].
    pub sections: Vec<u64>,
    /// How many records there is room for.
    pub slots: u32,
}

impl GroupClass {
    /// Bytes that one record takes on disk: payload and trailer, rounded up to 4 KiB.
    ///
    /// A quota of `q` bytes has room for `q / slot_bytes()` slots.
    pub fn slot_bytes(&self) -> u64 {
        (self.trailer_offset() + trailer::len_bytes(self.sections.len()) as u64).next_multiple_of(PAGE_BYTES as u64)
    }

    /// Bytes by which a slot is longer than the payload rounded up to 4 KiB: 0 if the trailer fits into that rounding.
    pub fn overhead_bytes(&self) -> u64 {
        self.slot_bytes() - self.payload_bytes.next_multiple_of(PAGE_BYTES as u64)
    }

    /// Where the trailer starts inside a slot.
    pub(crate) fn trailer_offset(&self) -> u64 {
        self.payload_bytes.next_multiple_of(8)
    }

    /// The bytes of section `index` inside the payload.
    pub(crate) fn section(&self, index: usize) -> std::ops::Range<usize> {
        let start = if index == 0 { 0 } else { self.sections[index - 1] };
        start as usize..self.sections[index] as usize
    }

    /// What the group's files are called, up to the ending.
    pub(crate) fn stem(&self) -> String {
        let hex: String = self.fingerprint.0[..4].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{hex}", self.name)
    }

    /// Whether records of `other` can be read as records of this class.
    pub(crate) fn same_layout(&self, other: &Self) -> bool {
        self.group == other.group
            && self.name == other.name
            && self.fingerprint == other.fingerprint
            && self.payload_bytes == other.payload_bytes
            && self.sections == other.sections
    }

    /// Refuses what the format cannot hold.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let fail = |why: String| Err(StoreError::InvalidClass { name: self.name.clone(), why });
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if self.name.is_empty() || self.name.len() > MAX_NAME_BYTES || !self.name.bytes().all(plain) {
            return fail(format!("a name is 1 to {MAX_NAME_BYTES} letters, digits, '_' or '-'"));
        }
        if self.sections.is_empty() || self.sections.len() > MAX_SECTIONS {
            return fail(format!("it has {} sections, and 1 to {MAX_SECTIONS} are possible", self.sections.len()));
        }
        if self.sections[0] == 0 || self.sections.windows(2).any(|pair| pair[0] >= pair[1]) {
            return fail("a section is empty or the ends of sections do not ascend".to_owned());
        }
        let (last, inner) = self.sections.split_last().expect("at least one section was checked above");
        if *last != self.payload_bytes {
            return fail(format!("the last section ends at {last}, the payload at {}", self.payload_bytes));
        }
        if let Some(end) = inner.iter().find(|end| !end.is_multiple_of(PAGE_BYTES as u64)) {
            return fail(format!("the section that ends at {end} does not end at a multiple of {PAGE_BYTES}"));
        }
        if self.payload_bytes > u64::from(u32::MAX) {
            return fail(format!("a record of {} bytes is longer than 4 GiB", self.payload_bytes));
        }
        // What no file system can hold no sum of bytes need hold.
        if u64::from(self.slots).checked_mul(self.slot_bytes()).is_none_or(|bytes| bytes > i64::MAX as u64) {
            return fail(format!("{} slots of {} bytes are more than 8 EiB", self.slots, self.slot_bytes()));
        }
        Ok(())
    }
}

/// How the slots of a class lie in its chunk files: slot `s` is slot `s % slots_per_chunk` of chunk
/// `s / slots_per_chunk`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// Bytes of one slot, a multiple of 4 KiB.
    pub slot_bytes: u64,
    /// Slots of every chunk but the last.
    pub slots_per_chunk: u32,
    /// Slots of the class.
    pub slots: u32,
}

impl Geometry {
    /// Chunks of at most `chunk_bytes`, but at least one slot each.
    pub fn new(class: &GroupClass, chunk_bytes: u64) -> Self {
        let slot_bytes = class.slot_bytes();
        let slots_per_chunk = u32::try_from(chunk_bytes / slot_bytes).unwrap_or(u32::MAX).max(1);
        Self { slot_bytes, slots_per_chunk, slots: class.slots }
    }

    /// How many chunk files the class has when all are in use.
    pub fn chunks(&self) -> u32 {
        self.slots.div_ceil(self.slots_per_chunk)
    }

    /// The bytes of chunk `chunk`, which is smaller than [`chunks`](Self::chunks).
    pub fn chunk_len_bytes(&self, chunk: u32) -> u64 {
        let before = chunk * self.slots_per_chunk;
        u64::from((self.slots - before).min(self.slots_per_chunk)) * self.slot_bytes
    }

    /// The chunk that holds `slot`, and where in it the slot starts, in bytes.
    pub fn place(&self, slot: u32) -> (u32, u64) {
        (slot / self.slots_per_chunk, u64::from(slot % self.slots_per_chunk) * self.slot_bytes)
    }
}
