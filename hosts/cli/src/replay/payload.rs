//! Payloads of a replay: a function of digest, group and offset, so that every byte that comes back can be checked.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use reprise::{BlockSink, BlockSource, Record};

use super::naming::mix;

/// Fills records with what they must hold.
#[derive(Clone, Copy, Debug, Default)]
pub struct Payload;

fn seed(record: &Record) -> u64 {
    record
        .digest
        .0
        .as_chunks::<8>()
        .0
        .iter()
        .fold(record.group as u64, |seed, word| mix(seed ^ u64::from_le_bytes(*word)))
}

fn word(seed: u64, index: usize) -> [u8; 8] {
    // One multiplication a word: fast enough not to be what is measured, and a misplaced page or record never matches.
    let value = seed.wrapping_add(index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (value ^ value >> 32).to_le_bytes()
}

impl BlockSource for Payload {
    fn fill(&mut self, record: &Record, bytes: &mut [u8]) {
        let seed = seed(record);
        let (words, tail) = bytes.as_chunks_mut::<8>();
        let whole = words.len();
        words.iter_mut().enumerate().for_each(|(index, bytes)| *bytes = word(seed, index));
        let rest = tail.len();
        tail.copy_from_slice(&word(seed, whole)[..rest]);
    }
}

fn holds(record: &Record, bytes: &[u8]) -> bool {
    let seed = seed(record);
    let (words, tail) = bytes.as_chunks::<8>();
    words.iter().enumerate().fold(true, |good, (index, bytes)| good & (*bytes == word(seed, index)))
        && *tail == word(seed, words.len())[..tail.len()]
}

/// Takes what is restored; compares every byte if asked to.
#[derive(Clone, Debug, Default)]
pub struct Check {
    verify: bool,
    verified_bytes: Arc<AtomicU64>,
    wrong_records: Arc<AtomicU64>,
}

impl Check {
    /// A sink that compares, or one that only takes.
    pub fn new(verify: bool) -> Self {
        Self { verify, ..Self::default() }
    }

    /// Bytes compared so far, by this sink and its clones.
    pub fn verified_bytes(&self) -> u64 {
        self.verified_bytes.load(Ordering::Relaxed)
    }

    /// Records that held anything else than they must.
    pub fn wrong_records(&self) -> u64 {
        self.wrong_records.load(Ordering::Relaxed)
    }
}

impl BlockSink for Check {
    fn accept(&mut self, record: &Record, bytes: &[u8]) {
        if self.verify {
            self.verified_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            self.wrong_records.fetch_add(u64::from(!holds(record, bytes)), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use reprise::{Digest, Group};

    use super::*;

    #[test]
    fn a_flipped_or_misplaced_byte_does_not_pass() {
        let record = Record { group: Group::History, block: 0, position_tokens: 128, digest: Digest([7; 32]) };
        let mut bytes = vec![0; 8 * 1024 + 5];
        Payload.fill(&record, &mut bytes);
        assert!(holds(&record, &bytes));
        assert!(!holds(&Record { group: Group::Window, ..record }, &bytes));
        assert!(!holds(&Record { digest: Digest([8; 32]), ..record }, &bytes));
        for at in [0, 4096, 8191, 8196] {
            bytes[at] ^= 1;
            assert!(!holds(&record, &bytes), "byte {at}");
            bytes[at] ^= 1;
        }
        bytes.copy_within(4096..8192, 0);
        assert!(!holds(&record, &bytes), "a page in the place of another");
    }
}
