//! The records that everyone writes and reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_seed};

const SEED: u64 = 0x7265_7072_6973_6501;

/// How far apart the payloads of two neighbours start in the pool, in bytes.
const STRIDE: usize = 64;

/// Records of equal length with pseudo-random payloads, no two the same. All are cut from one pool of random bytes, so
/// that neither making nor checking one costs more than touching its bytes.
#[derive(Clone)]
pub struct Records {
    /// How many there are.
    pub count: usize,
    /// Bytes of each.
    pub bytes: usize,
    pool: Arc<Vec<u8>>,
}

impl Records {
    /// The same records for the same arguments.
    pub fn new(count: usize, bytes: usize) -> Self {
        let words = (count * STRIDE + bytes).div_ceil(8);
        let word = |index: usize| xxh3_64_with_seed(&index.to_le_bytes(), SEED).to_le_bytes();
        Self { count, bytes, pool: Arc::new((0..words).flat_map(word).collect()) }
    }

    /// The payload of record `index`.
    pub fn payload(&self, index: usize) -> &[u8] {
        &self.pool[index * STRIDE..][..self.bytes]
    }

    /// The key of record `index`.
    pub fn key(index: usize) -> u128 {
        xxh3_128_with_seed(&index.to_le_bytes(), SEED)
    }

    /// Every record once, in an order that jumps about and is another for each `pass`.
    pub fn shuffled(&self, pass: u64) -> Arc<[usize]> {
        let mut order: Vec<usize> = (0..self.count).collect();
        order.sort_by_cached_key(|index| xxh3_64_with_seed(&index.to_le_bytes(), SEED ^ pass));
        order.into()
    }

    /// Bytes of all payloads.
    pub fn total_bytes(&self) -> u64 {
        self.count as u64 * self.bytes as u64
    }
}

/// What came of reads. Every byte that is read is compared.
pub struct Tally {
    records: Records,
    found: AtomicU64,
    wrong_bytes: AtomicU64,
}

impl Tally {
    pub fn new(records: &Records) -> Arc<Self> {
        Arc::new(Self { records: records.clone(), found: AtomicU64::new(0), wrong_bytes: AtomicU64::new(0) })
    }

    /// Holds what was read against the payload of record `index`.
    pub fn check(&self, index: usize, read: &[u8]) {
        self.found.fetch_add(1, Ordering::Relaxed);
        let expected = self.records.payload(index);
        if read == expected {
            return;
        }
        let differing = read.iter().zip(expected).filter(|(read, expected)| read != expected).count();
        let wrong = differing + read.len().abs_diff(expected.len());
        self.wrong_bytes.fetch_add(wrong as u64, Ordering::Relaxed);
    }

    /// How many records were read, right or wrong.
    pub fn found(&self) -> u64 {
        self.found.load(Ordering::Relaxed)
    }

    /// How many bytes were not what was written.
    pub fn wrong_bytes(&self) -> u64 {
        self.wrong_bytes.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_byte_or_a_neighbours_payload_is_not_taken_for_right() {
        let records = Records::new(3, 1000);
        let tally = Tally::new(&records);
        let mut read = records.payload(1).to_vec();
        tally.check(1, &read);
        assert_eq!((tally.found(), tally.wrong_bytes()), (1, 0));

        read[999] ^= 1;
        tally.check(1, &read);
        tally.check(1, &records.payload(1)[..990]);
        assert_eq!((tally.found(), tally.wrong_bytes()), (3, 11));

        // Of a thousand random bytes, four agree by chance.
        tally.check(1, records.payload(2));
        assert!(tally.wrong_bytes() > 11 + 900);
    }
}
