//! Checksums seeded with what they belong to, so that good bytes in the wrong place do not pass.

use reprise_core::Digest;
use twox_hash::XxHash3_64;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{Immutable, IntoBytes};

/// What every checksum of one record covers besides the bytes.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct Identity {
    fingerprint: [u8; 32],
    digest: [u8; 32],
    namespace_check: U64,
    position: U64,
    group: U32,
    part: U32,
}

/// The part number of a trailer; section numbers are far below.
const TRAILER_PART: u32 = u32::MAX;

/// The checksums of one record.
pub struct RecordSums(Identity);

impl RecordSums {
    /// The checksums of the record with this identity.
    pub fn new(fingerprint: &Digest, group: u8, namespace_check: u64, digest: &Digest, position: u64) -> Self {
        Self(Identity {
            fingerprint: fingerprint.0,
            digest: digest.0,
            namespace_check: namespace_check.into(),
            position: position.into(),
            group: u32::from(group).into(),
            part: 0.into(),
        })
    }

    /// The checksum of section `index` with these bytes.
    pub fn section(&mut self, index: usize, bytes: &[u8]) -> u64 {
        self.part(u32::try_from(index).expect("a record has few sections"), bytes)
    }

    /// The checksum of a trailer with these bytes.
    pub fn trailer(&mut self, bytes: &[u8]) -> u64 {
        self.part(TRAILER_PART, bytes)
    }

    fn part(&mut self, part: u32, bytes: &[u8]) -> u64 {
        self.0.part = part.into();
        XxHash3_64::oneshot_with_seed(XxHash3_64::oneshot(self.0.as_bytes()), bytes)
    }
}

/// The checksum of a table entry: it covers the layout and the slot, so that an entry in another slot does not pass.
pub fn entry(fingerprint: &Digest, slot: u32, bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(XxHash3_64::oneshot(&fingerprint.0).wrapping_add(u64::from(slot)), bytes)
}

/// The checksum of the catalogue's record number `index`.
pub fn catalogue(index: u16, bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(u64::from(index), bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_does_not_fit_the_same_bytes_of_another_record_section_or_slot() {
        let (print, digest, bytes) = (Digest([1; 32]), Digest([2; 32]), [7; 5000]);
        let other = Digest([3; 32]);
        let section = |print: &Digest, group, check, digest: &Digest, position, index| {
            RecordSums::new(print, group, check, digest, position).section(index, &bytes)
        };
        let mut sums = vec![
            section(&print, 1, 2, &digest, 3, 4),
            section(&other, 1, 2, &digest, 3, 4),
            section(&print, 2, 2, &digest, 3, 4),
            section(&print, 1, 1, &digest, 3, 4),
            section(&print, 1, 2, &other, 3, 4),
            section(&print, 1, 2, &digest, 4, 4),
            section(&print, 1, 2, &digest, 3, 5),
            RecordSums::new(&print, 1, 2, &digest, 3).trailer(&bytes),
            entry(&print, 4, &bytes),
            entry(&other, 4, &bytes),
            entry(&print, 5, &bytes),
            catalogue(4, &bytes),
            catalogue(5, &bytes),
        ];
        let count = sums.len();
        sums.sort_unstable();
        sums.dedup();
        assert_eq!(sums.len(), count);
        assert_eq!(section(&print, 1, 2, &digest, 3, 4), section(&print, 1, 2, &digest, 3, 4));
    }
}
