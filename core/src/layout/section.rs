//! Where a record is cut into sections, the units of its checksums.

use alloc::vec::Vec;

use super::{PAGE_BYTES, TypeLayout};

/// Sections are not smaller: each costs a checksum in the store's header, and a read of its own.
const MIN_SECTION_BYTES: u64 = 64 << 10;

/// Ends of the sections of a record of these types, ascending; the last is `record_bytes`.
pub(super) fn ends(types: &[TypeLayout], record_bytes: u64) -> Vec<u64> {
    let mut ends = Vec::new();
    let mut start = 0;
    for cache_type in types {
        let type_end = cut_at(cache_type.bytes().end);
        for index in 0..cache_type.layers().count() {
            let cut = cut_at(cache_type.extent(index).end);
            // A rest of the type that is too small for a section stays with these layers rather than with the next type's.
            let rest = if cut == type_end { record_bytes - cut } else { type_end - cut };
            if cut - start >= MIN_SECTION_BYTES && rest >= MIN_SECTION_BYTES {
                ends.push(cut);
                start = cut;
            }
        }
    }
    ends.push(record_bytes);
    ends
}

/// The page boundary at or before the end of a layer.
fn cut_at(layer_end: u64) -> u64 {
    layer_end - layer_end % PAGE_BYTES
}
