//! Random streams of requests over a tree of prompts, random set-ups, and an engine that remembers what it was asked for.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use proptest::{collection::vec, prelude::*, sample::select};
use reprise::{BlockSink, BlockSource, Cache, Config, Namespace, NamespaceHandle, Planner, Record};
use reprise_tests::engine::{BLOCK_TOKENS, small, small_with_draft};

/// An engine's memory whose bytes tell every record from every other, and which remembers what it was asked for.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// Records it was asked for.
    pub filled: Arc<Mutex<HashSet<Record>>>,
    /// Records it was given, in order.
    pub accepted: Arc<Mutex<Vec<Record>>>,
}

fn payload(record: &Record) -> impl Iterator<Item = u8> {
    let position = record.position_tokens.to_le_bytes();
    let bytes: Vec<u8> = record.digest.0.into_iter().chain(position).chain([record.group.number()]).collect();
    bytes.into_iter().cycle()
}

impl BlockSource for Rows {
    fn fill(&mut self, record: &Record, bytes: &mut [u8]) {
        bytes.iter_mut().zip(payload(record)).for_each(|(byte, value)| *byte = value);
        self.filled.lock().unwrap().insert(*record);
    }
}

impl BlockSink for Rows {
    fn accept(&mut self, record: &Record, bytes: &[u8]) {
        assert!(bytes.iter().copied().eq(payload(record).take(bytes.len())), "wrong bytes for {record:?}");
        self.accepted.lock().unwrap().push(*record);
    }
}

/// What becomes of the rows a request computes.
#[derive(Clone, Copy, Debug)]
pub enum Keeping {
    SavedThenCaptured,
    CapturedThenSaved,
    Aborted,
}

/// One request: which way it takes through a tree of prompts, block by block, and some tokens behind.
#[derive(Clone, Debug)]
pub struct Request {
    /// The branch taken at each block.
    pub path: Vec<u8>,
    /// Tokens behind the last complete block.
    pub tail_tokens: u32,
    /// Adopt so many blocks less than there are, as engines with drafts do.
    pub back_blocks: u32,
    /// What is kept of it.
    pub keeping: Keeping,
    /// The plan, and with it the lease, is held until the next request is done.
    pub held: bool,
    /// The process restarts afterwards, if there is a store.
    pub restarted: bool,
}

impl Request {
    /// Tokens of the prompt.
    pub fn prompt_tokens(&self) -> u32 {
        self.path.len() as u32 * BLOCK_TOKENS + self.tail_tokens
    }

    /// The most blocks a plan may take: one token is always computed.
    pub fn may_hit_blocks(&self) -> u32 {
        (self.prompt_tokens() - 1) / BLOCK_TOKENS
    }
}

/// Chained keys of a path, one a block.
pub fn keys(path: &[u8]) -> Vec<[u8; 32]> {
    let key = |blocks| std::array::from_fn(|place| if place < blocks { path[place] + 1 } else { 0 });
    (1..=path.len()).map(key).collect()
}

/// Any request; prompts share their starts more often than not.
pub fn request() -> impl Strategy<Value = Request> {
    let branch = prop_oneof![3 => Just(0_u8), 1 => Just(1), 1 => Just(2)];
    let keeping = prop_oneof![
        4 => Just(Keeping::SavedThenCaptured),
        2 => Just(Keeping::CapturedThenSaved),
        1 => Just(Keeping::Aborted),
    ];
    (vec(branch, 1..9), 0..BLOCK_TOKENS, select(vec![0, 0, 0, 1]), keeping, any::<bool>(), prop::bool::weighted(0.1))
        .prop_map(|(path, tail_tokens, back_blocks, keeping, held, restarted)| Request {
            path,
            tail_tokens,
            back_blocks,
            keeping,
            held,
            restarted,
        })
}

/// Any policies, few slots, with drafts and without.
pub fn config() -> impl Strategy<Value = Config> {
    let checkpoints = vec!["full", "periodic:32", "periodic:48", "zero", "events", "events:back=1", "events:back=2"];
    let eviction = vec!["lru", "fifo", "two-hit"];
    (any::<bool>(), 0_u64..24, 0_u64..7, select(checkpoints), select(eviction), any::<bool>()).prop_map(
        |(drafts, blocks, windows, checkpoints, eviction, replay)| Config {
            checkpoints: checkpoints.parse().unwrap(),
            eviction: eviction.parse().unwrap(),
            native_policies: true,
            planner: Planner::MinCompute,
            replay,
            ..if drafts { small_with_draft(blocks, windows) } else { small(blocks, windows) }
        },
    )
}

/// A cache and the namespace that all requests go to.
pub fn open(config: &Config) -> (Cache, NamespaceHandle) {
    let cache = Cache::open(config.clone()).unwrap();
    let namespace = cache.namespace(&Namespace::new("small", "1").block_tokens(BLOCK_TOKENS)).unwrap();
    (cache, namespace)
}
