//! An engine whose KV is a function of the tokens, so that every byte can be checked: the payload of a record is derived from all
//! tokens up to its end, as a real model's is.

use std::sync::{Arc, Mutex};

use reprise::{BlockSink, BlockSource, Record};

/// The KV memory of one sequence.
#[derive(Clone, Debug)]
pub struct Kv {
    tokens: Arc<Vec<u32>>,
    accepted: Arc<Mutex<Vec<Record>>>,
}

impl Kv {
    /// The memory of a sequence with these tokens.
    pub fn new(tokens: &[u32]) -> Self {
        Self { tokens: Arc::new(tokens.to_vec()), accepted: Arc::default() }
    }

    /// Records given to this memory so far, each checked byte by byte.
    pub fn accepted(&self) -> Vec<Record> {
        self.accepted.lock().unwrap().clone()
    }

    fn byte(&self, record: &Record, offset: usize) -> u8 {
        let end = record.position_tokens as usize;
        let state = self.tokens[..end].iter().fold(record.group as u64 + 1, |state, &token| {
            (state ^ u64::from(token)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(5)
        });
        (state.wrapping_add(offset as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
    }

    fn payload(&self, record: &Record, len: usize) -> Vec<u8> {
        // The state is the same for all bytes of a record; take it once.
        let first = self.byte(record, 0);
        let second = self.byte(record, 1);
        (0..len).map(|offset| first ^ second.wrapping_mul(offset as u8) ^ (offset >> 8) as u8).collect()
    }
}

impl BlockSource for Kv {
    fn fill(&mut self, record: &Record, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.payload(record, bytes.len()));
    }
}

impl BlockSink for Kv {
    fn accept(&mut self, record: &Record, bytes: &[u8]) {
        assert!(self.payload(record, bytes.len()) == bytes, "wrong bytes for {record:?}");
        self.accepted.lock().unwrap().push(*record);
    }
}
