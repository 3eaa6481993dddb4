//! A small model, and an engine whose KV is a function of the tokens, so that every byte can be checked: the payload of a record is
//! derived from all tokens up to its end, as a real model's is.

use std::sync::{Arc, Mutex};

use reprise::{BlockSink, BlockSource, Config, Record};

/// Tokens of a block of the small model.
pub const BLOCK_TOKENS: u32 = 16;
/// A block record of the small model.
pub const BLOCK_BYTES: u64 = 8192;
/// A checkpoint of the small model.
pub const WINDOW_BYTES: u64 = 8192;

const MODEL: &str = r#"
name = "small"
groups = ["history", "window"]

[[types]]
name = "compressed"
group = "history"
kind = "compressed"
ratio = 4
layers = "0-1"
row-bytes = 1024
row-format = "fp8"

[[types]]
name = "swa"
group = "window"
kind = "windowed"
window-tokens = 16
layers = "0-1"
row-bytes = 256
row-format = "fp8"
"#;

const DRAFT: &str = r#"
[[types]]
name = "draft"
group = "draft"
kind = "draft"
window-tokens = 16
layers = "2"
row-bytes = 256
row-format = "fp8"
"#;

/// The small model with room for so many blocks and checkpoints, without a store.
pub fn small(blocks: u64, checkpoints: u64) -> Config {
    from_text(MODEL, blocks, checkpoints)
}

/// The same with a draft layer.
pub fn small_with_draft(blocks: u64, checkpoints: u64) -> Config {
    let text = MODEL.replace(r#""window"]"#, r#""window", "draft"]"#) + DRAFT;
    from_text(&text, blocks, checkpoints)
}

fn from_text(model: &str, blocks: u64, checkpoints: u64) -> Config {
    Config {
        block_tokens: BLOCK_TOKENS,
        history_bytes: blocks * BLOCK_BYTES,
        window_bytes: checkpoints * WINDOW_BYTES,
        ..Config::for_model(toml::from_str(model).expect("the small model is a model"))
    }
}

/// Tokens of a prompt that starts like every other with the same `seed`.
pub fn prompt(seed: u32, tokens: u32) -> Vec<u32> {
    (0..tokens).map(|place| (seed.wrapping_mul(0x9e37_79b9) ^ place).wrapping_mul(0x85eb_ca6b)).collect()
}

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

    fn payload(&self, record: &Record) -> impl Iterator<Item = u8> {
        let tokens = &self.tokens[..record.position_tokens as usize];
        let mut state = tokens.iter().fold(record.group as u64 + 1, |state, &token| {
            (state ^ u64::from(token)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(5)
        });
        std::iter::repeat_with(move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
    }
}

impl BlockSource for Kv {
    fn fill(&mut self, record: &Record, bytes: &mut [u8]) {
        bytes.iter_mut().zip(self.payload(record)).for_each(|(byte, value)| *byte = value);
    }
}

impl BlockSink for Kv {
    fn accept(&mut self, record: &Record, bytes: &[u8]) {
        assert!(bytes.iter().copied().eq(self.payload(record).take(bytes.len())), "wrong bytes for {record:?}");
        self.accepted.lock().unwrap().push(*record);
    }
}
