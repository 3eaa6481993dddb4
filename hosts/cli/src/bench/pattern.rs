//! What records hold, so that a byte of another record, or of an earlier put, is noticed.

use reprise::disk::Buffer;

/// A device writes whole sectors; each is stamped.
const SECTOR_BYTES: usize = 512;
const STAMP_BYTES: usize = 8;

/// Random bytes that all records share, with a stamp at the start of each sector that no two records and no two generations
/// of one share. To stamp takes far less time than to write, so it does not show in the figures.
pub struct Pattern {
    base: Vec<u8>,
}

impl Pattern {
    /// The pattern of records of `len` bytes.
    pub fn new(len: usize) -> Self {
        let words = (0..len.div_ceil(8) as u64).flat_map(|index| mix(index).to_le_bytes());
        Self { base: words.take(len).collect() }
    }

    /// How many bytes a record has.
    pub fn len(&self) -> usize {
        self.base.len()
    }

    /// A buffer of `len` bytes, at least those of a record, that can be stamped again and again.
    pub fn buffer(&self, len: usize) -> Buffer {
        let mut buffer = Buffer::zeroed(len);
        buffer.bytes_mut()[..self.len()].copy_from_slice(&self.base);
        buffer
    }

    /// Makes what holds a record the record in `slot`, as it is put the time number `generation`.
    pub fn stamp(&self, slot: u32, generation: u32, record: &mut [u8]) {
        for (index, sector) in record[..self.len()].chunks_mut(SECTOR_BYTES).enumerate() {
            let len = sector.len().min(STAMP_BYTES);
            sector[..len].copy_from_slice(&stamp(slot, generation, index)[..len]);
        }
    }

    /// How many bytes of a record differ from those that were put; one that is too short or too long differs there as well.
    pub fn wrong_bytes(&self, slot: u32, generation: u32, record: &[u8]) -> u64 {
        let pairs = record.chunks(SECTOR_BYTES).zip(self.base.chunks(SECTOR_BYTES)).enumerate();
        let wrong = pairs.map(|(index, (found, base))| {
            let (stamp, len) = (stamp(slot, generation, index), base.len().min(STAMP_BYTES));
            if found.len() == base.len() && found[..len] == stamp[..len] && found[len..] == base[len..] {
                return 0;
            }
            let expected = stamp[..len].iter().chain(&base[len..]);
            found.iter().zip(expected).filter(|(found, expected)| found != expected).count() as u64
        });
        wrong.sum::<u64>() + record.len().abs_diff(self.len()) as u64
    }
}

fn stamp(slot: u32, generation: u32, sector: usize) -> [u8; STAMP_BYTES] {
    let name = u64::from(generation) << 32 | u64::from(slot);
    mix(mix(name).wrapping_add(sector as u64)).to_le_bytes()
}

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
fn mix(index: u64) -> u64 {
    let mut word = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_wrong_byte_is_passed_over() {
        for len in [1, 7, 8, 512, 513, 3000] {
            let pattern = Pattern::new(len);
            let mut record = pattern.buffer(len);
            pattern.stamp(3, 2, record.bytes_mut());
            assert_eq!(pattern.wrong_bytes(3, 2, record.bytes()), 0);
            for (slot, generation) in [(4, 2), (3, 1)] {
                let sectors = len.div_ceil(SECTOR_BYTES) as u64;
                assert!(pattern.wrong_bytes(slot, generation, record.bytes()) >= sectors, "{len}");
            }
            assert_eq!(pattern.wrong_bytes(3, 2, &record.bytes()[..len - 1]), 1);
            for index in [0, len / 2, len - 1] {
                record.bytes_mut()[index] ^= 1;
                assert_eq!(pattern.wrong_bytes(3, 2, record.bytes()), 1, "byte {index} of {len}");
                record.bytes_mut()[index] ^= 1;
            }
        }
    }
}
