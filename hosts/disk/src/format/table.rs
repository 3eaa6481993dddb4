//! The slot table: a header page that describes the class, then one entry of 128 bytes a slot.

use reprise_core::Digest;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::page::{self, BODY_OFFSET, HeaderFault};
use super::{PAGE_BYTES, checksum};
use crate::class::{GroupClass, MAX_NAME_BYTES};

const MAGIC: [u8; 8] = *b"REPRTBL\0";

/// The most sections that a class can have: what fits into a table's header page.
pub const MAX_SECTIONS: usize = 480;
/// Bytes of one entry. It divides a sector of 512 bytes, so no entry lies in two.
pub const ENTRY_BYTES: usize = size_of::<Entry>();

/// Where the field that the entry's checksum does not cover begins.
const COVERED_BYTES: usize = 112;
/// Where [`Entry::last_use`] lies inside an entry.
pub const LAST_USE_OFFSET: u64 = COVERED_BYTES as u64;

const _: () = assert!(BODY_OFFSET + size_of::<Head>() + 8 * MAX_SECTIONS <= PAGE_BYTES - 8);
const _: () = assert!(ENTRY_BYTES == 128);

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Head {
    fingerprint: [u8; 32],
    payload_bytes: U64,
    slots: U32,
    slots_per_chunk: U32,
    sections: U32,
    group: u8,
    name_len: u8,
    reserved: [u8; 2],
    name: [u8; MAX_NAME_BYTES],
}

/// Where the entry of `slot` lies in the file, in bytes.
pub const fn entry_offset(slot: u32) -> u64 {
    PAGE_BYTES as u64 + slot as u64 * ENTRY_BYTES as u64
}

/// The slots that a table of this length has entries for.
pub fn slots_in(len_bytes: u64) -> u32 {
    let entries = len_bytes.saturating_sub(entry_offset(0)) / ENTRY_BYTES as u64;
    u32::try_from(entries).unwrap_or(u32::MAX)
}

/// The header page of a class whose chunks have this many slots each.
pub fn encode_header(class: &GroupClass, slots_per_chunk: u32) -> Box<[u8; PAGE_BYTES]> {
    let mut head = Head {
        fingerprint: class.fingerprint.0,
        payload_bytes: class.payload_bytes.into(),
        slots: class.slots.into(),
        slots_per_chunk: slots_per_chunk.into(),
        sections: (class.sections.len() as u32).into(),
        group: class.group,
        name_len: class.name.len() as u8,
        reserved: [0; 2],
        name: [0; MAX_NAME_BYTES],
    };
    head.name[..class.name.len()].copy_from_slice(class.name.as_bytes());
    let mut body = head.as_bytes().to_vec();
    for end in &class.sections {
        body.extend_from_slice(&end.to_le_bytes());
    }
    page::seal(MAGIC, &body)
}

/// The class that a header page describes, and the slots of each of its chunks.
pub fn decode_header(bytes: &[u8]) -> Result<(GroupClass, u32), HeaderFault> {
    let body = page::open(bytes, MAGIC)?;
    let (head, rest) = Head::ref_from_prefix(body).map_err(|_| HeaderFault::Garbled)?;
    let sections = head.sections.get() as usize;
    let name = head.name.get(..usize::from(head.name_len)).ok_or(HeaderFault::Garbled)?;
    if sections > MAX_SECTIONS || head.slots_per_chunk.get() == 0 {
        return Err(HeaderFault::Garbled);
    }
    let class = GroupClass {
        group: head.group,
        name: std::str::from_utf8(name).map_err(|_| HeaderFault::Garbled)?.to_owned(),
        fingerprint: Digest(head.fingerprint),
        payload_bytes: head.payload_bytes.get(),
        sections: rest[..8 * sections]
            .chunks_exact(8)
            .map(|end| u64::from_le_bytes(end.try_into().expect("chunks of eight bytes")))
            .collect(),
        slots: head.slots.get(),
    };
    // A sound checksum says that these bytes were written, not that they make sense.
    class.check().map_err(|_| HeaderFault::Garbled)?;
    Ok((class, head.slots_per_chunk.get()))
}

/// What the table says about one slot.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Entry {
    /// Counts the puts of a store; higher is later.
    pub sequence: U64,
    /// The record's digest.
    pub digest: [u8; 32],
    /// The digest of the block before.
    pub parent: [u8; 32],
    /// The token position the record belongs to.
    pub position: U64,
    /// The 64-bit check of the record's namespace.
    pub namespace_check: U64,
    /// Bytes of the payload.
    pub payload_bytes: U64,
    /// The checksum of the trailer.
    pub trailer_sum: U64,
    /// The namespace's index in the catalogue.
    pub namespace: U16,
    /// The group's number.
    pub group: u8,
    /// 1: the slot holds a record.
    pub used: u8,
    reserved: U32,
    /// When the record was last used, in the caller's time. Advisory: no checksum covers it.
    pub last_use: U64,
    sum: U64,
}

/// What is to be written about a record.
pub struct Fields {
    pub sequence: u64,
    pub digest: Digest,
    pub parent: Digest,
    pub position: u64,
    pub namespace: u16,
    pub namespace_check: u64,
    pub trailer_sum: u64,
    pub last_use: u64,
}

impl Entry {
    /// A free slot: zeros.
    pub const FREE: [u8; ENTRY_BYTES] = [0; ENTRY_BYTES];

    /// The entry of a record in `slot` of `class`, checksum included.
    pub fn new(class: &GroupClass, slot: u32, fields: &Fields) -> Self {
        let mut entry = Self {
            sequence: fields.sequence.into(),
            digest: fields.digest.0,
            parent: fields.parent.0,
            position: fields.position.into(),
            namespace_check: fields.namespace_check.into(),
            payload_bytes: class.payload_bytes.into(),
            trailer_sum: fields.trailer_sum.into(),
            namespace: fields.namespace.into(),
            group: class.group,
            used: 1,
            reserved: 0.into(),
            last_use: fields.last_use.into(),
            sum: 0.into(),
        };
        entry.sum = entry.compute_sum(class, slot).into();
        entry
    }

    /// Whether the slot is free: zeros, whatever the last use says.
    pub fn is_free(&self) -> bool {
        let bytes = self.as_bytes();
        bytes[..COVERED_BYTES].iter().all(|byte| *byte == 0) && self.sum.get() == 0
    }

    /// Whether this is the entry of a record of `class` in `slot`, undamaged.
    pub fn is_sound(&self, class: &GroupClass, slot: u32) -> bool {
        self.used == 1
            && self.group == class.group
            && self.payload_bytes.get() == class.payload_bytes
            && self.sum.get() == self.compute_sum(class, slot)
    }

    fn compute_sum(&self, class: &GroupClass, slot: u32) -> u64 {
        checksum::entry(&class.fingerprint, slot, &self.as_bytes()[..COVERED_BYTES])
    }
}
