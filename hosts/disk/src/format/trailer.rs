//! The trailer behind a payload: whose it is, and a checksum for each of its sections.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::checksum::RecordSums;
use crate::class::GroupClass;
use crate::record::Key;

const MAGIC: [u8; 8] = *b"REPRTRL\x01";

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Head {
    magic: [u8; 8],
    group: U32,
    sections: U32,
    payload_bytes: U64,
    namespace_check: U64,
    position: U64,
    digest: [u8; 32],
}

/// Bytes of the trailer of a record with this many sections.
pub const fn len_bytes(sections: usize) -> usize {
    size_of::<Head>() + 8 * sections
}

/// The checksums of the record `key` of `class`, in a namespace with this check.
pub fn sums(class: &GroupClass, key: &Key, namespace_check: u64) -> RecordSums {
    RecordSums::new(&class.fingerprint, class.group, namespace_check, &key.digest, key.position)
}

/// Writes the trailer of the payload at the start of `slot` behind it and zeros up to the slot's end. Returns the
/// trailer's own checksum, which goes into the table entry.
///
/// # Panics
///
/// If `slot` is not [`GroupClass::slot_bytes`] long.
pub fn write(class: &GroupClass, key: &Key, namespace_check: u64, slot: &mut [u8]) -> u64 {
    assert_eq!(slot.len() as u64, class.slot_bytes(), "a slot is written as a whole");
    let (payload, behind) = slot.split_at_mut(class.payload_bytes as usize);
    behind.fill(0);
    let trailer = &mut behind[(class.trailer_offset() - class.payload_bytes) as usize..];
    let trailer = &mut trailer[..len_bytes(class.sections.len())];
    let head = Head {
        magic: MAGIC,
        group: u32::from(class.group).into(),
        sections: (class.sections.len() as u32).into(),
        payload_bytes: class.payload_bytes.into(),
        namespace_check: namespace_check.into(),
        position: key.position.into(),
        digest: key.digest.0,
    };
    trailer[..size_of::<Head>()].copy_from_slice(head.as_bytes());
    let mut sums = sums(class, key, namespace_check);
    for (index, place) in trailer[size_of::<Head>()..].chunks_exact_mut(8).enumerate() {
        place.copy_from_slice(&sums.section(index, &payload[class.section(index)]).to_le_bytes());
    }
    sums.trailer(trailer)
}

/// The checksum that a trailer, already checked as a whole, gives for section `index`.
pub fn section_sum(trailer: &[u8], index: usize) -> u64 {
    let place = &trailer[size_of::<Head>() + 8 * index..][..8];
    u64::from_le_bytes(place.try_into().expect("a slice of eight bytes"))
}
