//! The cache driven as engines drive it: keys instead of tokens, batches, nothing that blocks, results by block.

use std::sync::mpsc;

use reprise::{
    BlockSink, BlockSource, Cache, Config, Group, Jobs, Namespace, NamespaceHandle, Outcome, Presence, Record,
};
use reprise_tests::engine::{BLOCK_TOKENS, Kv, prompt, small};

struct Opened {
    cache: Cache,
    namespace: NamespaceHandle,
    _directory: tempfile::TempDir,
}

fn open(blocks: u64, checkpoints: u64) -> Opened {
    let directory = tempfile::tempdir().unwrap();
    let store = Some(directory.path().join("store"));
    let cache = Cache::open(Config { store, ..small(blocks, checkpoints) }).unwrap();
    let namespace = cache.namespace(&Namespace::new("small", "1").block_tokens(BLOCK_TOKENS)).unwrap();
    Opened { cache, namespace, _directory: directory }
}

/// Chained 256-bit keys as an engine makes them, one per complete block.
fn engine_keys(tokens: &[u32]) -> Vec<[u8; 32]> {
    let mut key = [0_u8; 32];
    tokens
        .chunks_exact(BLOCK_TOKENS as usize)
        .map(|block| {
            for (place, token) in block.iter().enumerate() {
                let at = (place * 7) % 32;
                key[at] = key[at].wrapping_mul(31).wrapping_add((token >> (place % 24)) as u8);
                key[(at + 1) % 32] ^= key[at].rotate_left(3);
            }
            key
        })
        .collect()
}

/// Holds whoever fills or accepts until the test says go.
struct Gate<T> {
    inner: T,
    arrived: mpsc::Sender<()>,
    go: mpsc::Receiver<()>,
    held: bool,
}

impl<T> Gate<T> {
    fn new(inner: T) -> (Self, mpsc::Receiver<()>, mpsc::Sender<()>) {
        let (arrived, at_gate) = mpsc::channel();
        let (open, go) = mpsc::channel();
        (Self { inner, arrived, go, held: false }, at_gate, open)
    }

    fn wait(&mut self) {
        if !self.held {
            self.held = true;
            self.arrived.send(()).unwrap();
            self.go.recv().unwrap();
        }
    }
}

impl<T: BlockSource> BlockSource for Gate<T> {
    fn fill(&mut self, record: &Record, bytes: &mut [u8]) {
        self.wait();
        self.inner.fill(record, bytes);
    }
}

impl<T: BlockSink> BlockSink for Gate<T> {
    fn accept(&mut self, record: &Record, bytes: &[u8]) {
        self.wait();
        self.inner.accept(record, bytes);
    }
}

/// vLLM's secondary tier: `lookup(key)` → miss, pending, hit; `submit_store`, `submit_load`, `get_finished_jobs`, `drain_jobs`; a full
/// queue is RETRY.
#[test]
fn a_secondary_tier_never_blocks_and_never_shows_what_cannot_be_read() {
    let Opened { cache, namespace, _directory } = open(64, 8);
    let jobs = Jobs::start(&cache, 1).unwrap();
    let tokens = prompt(1, 8 * BLOCK_TOKENS + 5);
    let keys = engine_keys(&tokens);
    assert_eq!(namespace.presence(&keys), [Presence::Miss; 8]);

    let mut sequence = namespace.sequence_of_keys(tokens.len() as u64, &keys);
    assert_eq!(sequence.plan(1).unwrap().adopted_tokens, 0);
    let (source, at_gate, open_gate) = Gate::new(Kv::new(&tokens));
    let store = jobs.submit_store(sequence, source).map_err(|refused| refused.0).unwrap();
    at_gate.recv().unwrap();
    assert_eq!(namespace.presence(&keys), [Presence::HitPending; 8], "inserted, not yet readable");
    let mut reader = namespace.sequence_of_keys(tokens.len() as u64, &keys);
    let too_early = reader.plan(2).unwrap();
    assert_eq!(too_early.adopted_tokens, 0, "{}", too_early.explain());
    assert_eq!(too_early.explain().reason, reprise::Explain::Pending);
    assert!(jobs.take_finished().is_empty());

    // One job runs, one waits, the next is to come again.
    let idle = |now| {
        let mut sequence = namespace.sequence_of_keys(tokens.len() as u64, &keys);
        sequence.plan(now).unwrap()
    };
    let waiting = jobs.submit_load(idle(3), Kv::new(&tokens)).map_err(|refused| refused.0).unwrap();
    let Err(refused) = jobs.submit_load(idle(4), Kv::new(&tokens)) else { panic!("the queue is full") };
    let (busy, plan, _) = *refused;
    assert_eq!(busy.queued, 1);
    drop(plan);
    open_gate.send(()).unwrap();
    jobs.drain();
    let finished = jobs.take_finished();
    assert_eq!(finished.iter().map(|job| job.id).collect::<Vec<_>>(), [store, waiting]);
    assert_eq!(finished[0].blocks, [Outcome::Done; 8], "one result a block");
    assert!(finished[1].blocks.is_empty(), "planned while nothing was readable");
    assert_eq!(namespace.presence(&keys), [Presence::Hit; 8]);

    let mut again = namespace.sequence_of_keys(tokens.len() as u64, &keys);
    let memory = Kv::new(&tokens);
    let load = jobs.submit_load(again.plan(5).unwrap(), memory.clone()).map_err(|refused| refused.0).unwrap();
    jobs.drain();
    let finished = jobs.take_finished();
    assert_eq!((finished.len(), finished[0].id, finished[0].checkpoint), (1, load, true));
    assert_eq!(finished[0].blocks, [Outcome::Done; 8]);
    let records = memory.accepted();
    assert_eq!(records.iter().filter(|record| record.group == Group::History).count(), 8);
    assert_eq!(records.last().map(|record| (record.group, record.position_tokens)), Some((Group::Window, 128)));
    assert_eq!(cache.stats().leases, 0, "a finished job holds nothing");
}

/// SGLang's batches: the set of restorable prefix lengths, typed pools, per-block results, and a set that stops at the first block
/// that could not be stored.
#[test]
fn a_batch_never_claims_a_prefix_it_cannot_restore() {
    let Opened { cache, namespace, _directory } = open(6, 8);
    cache.policies().swap(reprise::Role::Checkpoints, &"periodic:32".parse().unwrap()).unwrap();
    let tokens = prompt(2, 8 * BLOCK_TOKENS);
    let keys = engine_keys(&tokens);
    let jobs = Jobs::start(&cache, 4).unwrap();
    let mut batch = namespace.sequence_of_keys(tokens.len() as u64, &keys);
    assert!(batch.restorable().is_empty());
    drop(batch.plan(1).unwrap());
    jobs.submit_store(batch, Kv::new(&tokens)).map_err(|refused| refused.0).unwrap();
    jobs.drain();
    let stored = &jobs.take_finished()[0].blocks;
    let expected = [[Outcome::Done; 6].as_slice(), &[Outcome::Skipped; 2]].concat();
    assert_eq!(stored, &expected, "six slots, and a path never evicts itself");

    let mut again = namespace.sequence_of_keys(tokens.len() as u64, &keys);
    assert_eq!(again.restorable(), [32, 64, 96]);
    let memory = Kv::new(&tokens);
    let plan = again.plan(2).unwrap();
    assert_eq!((plan.matched_tokens, plan.adopted_tokens), (96, 96));
    let (restored, _) = plan.restore(memory.clone()).unwrap().wait();
    assert_eq!((restored.adopted_tokens, restored.checkpoint, restored.shortened), (96, true, false));
    let pools: Vec<Group> = memory.accepted().iter().map(|record| record.group).collect();
    assert_eq!(pools, [[Group::History; 6].as_slice(), &[Group::Window]].concat());
}

/// Keys and tokens live side by side in one namespace and never meet.
#[test]
fn an_engines_key_never_finds_a_block_named_by_tokens() {
    let Opened { cache, namespace, _directory } = open(64, 8);
    let tokens = prompt(3, 4 * BLOCK_TOKENS);
    let mut by_tokens = namespace.sequence(&tokens);
    drop(by_tokens.plan(1).unwrap());
    by_tokens.save(&mut Kv::new(&tokens)).unwrap();
    cache.drain();
    let keys: Vec<[u8; 32]> = by_tokens.digests().iter().map(|digest| digest.0).collect();
    assert_eq!(namespace.presence(&keys), [Presence::Miss; 4], "even with the digests themselves as keys");
}

/// An engine captures windows as prefill passes them, before the blocks are saved; decode goes on behind.
#[test]
fn a_window_captured_before_its_block_is_saved_is_not_lost() {
    let Opened { cache, namespace, _directory } = open(64, 8);
    let tokens = prompt(4, 6 * BLOCK_TOKENS);
    let mut sequence = namespace.sequence(&tokens[..4 * BLOCK_TOKENS as usize]);
    let plan = sequence.plan(1).unwrap();
    assert_eq!(plan.captures, [64]);
    drop(plan);
    let mut kv = Kv::new(&tokens);
    let early = sequence.capture_at(64, &mut kv).unwrap();
    assert_eq!(early.checkpoints, 0, "it waits for its block");
    let error = sequence.capture_at(64, &mut kv).unwrap_err().to_string();
    assert!(error.contains("64") && error.contains("captures"), "{error}");
    // Decode: two more blocks complete.
    sequence.extend(&tokens[4 * BLOCK_TOKENS as usize..]);
    let saved = sequence.save(&mut kv).unwrap();
    assert_eq!((saved.new_blocks, saved.checkpoints), (6, 1));
    drop(sequence);
    cache.drain();
    let mut again = namespace.sequence(&tokens);
    let plan = again.plan(2).unwrap();
    assert_eq!((plan.matched_tokens, plan.adopted_tokens), (80, 64), "one token is always computed");
    let (restored, _) = plan.restore(Kv::new(&tokens)).unwrap().wait();
    assert_eq!((restored.adopted_tokens, restored.checkpoint), (64, true));
    drop(again);
    assert_eq!(cache.stats().counters.captures_skipped, 1, "the second plan's capture was never made");
}

/// A source that panics takes nothing down: what was not handed over is not readable, and nothing waits for it.
#[test]
fn a_panicking_source_does_not_leave_blocks_pinned_or_readable() {
    struct Panics(Kv);
    impl BlockSource for Panics {
        fn fill(&mut self, record: &Record, bytes: &mut [u8]) {
            assert!(record.block < 2, "the engine is gone");
            self.0.fill(record, bytes);
        }
    }
    let Opened { cache, namespace, _directory } = open(8, 4);
    let tokens = prompt(5, 5 * BLOCK_TOKENS);
    let mut sequence = namespace.sequence(&tokens);
    drop(sequence.plan(1).unwrap());
    let crash = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| sequence.save(&mut Panics(Kv::new(&tokens)))));
    assert!(crash.is_err());
    cache.drain();
    let mut again = namespace.sequence(&tokens);
    assert_eq!(again.plan(2).unwrap().matched_tokens, 32, "two blocks were written");
    // The slots of the others are used again, and the blocks can be saved after all.
    let saved = again.save(&mut Kv::new(&tokens)).unwrap();
    assert_eq!(saved.resident_blocks, 5);
    cache.drain();
    assert_eq!(namespace.sequence(&tokens).plan(3).unwrap().matched_tokens, 64);
    let other = prompt(6, 8 * BLOCK_TOKENS);
    let mut sequence = namespace.sequence(&other);
    drop(sequence.plan(4).unwrap());
    assert_eq!(sequence.save(&mut Kv::new(&other)).unwrap().new_blocks, 8, "nothing is pinned");
}

/// A sink that panics takes nothing down either: its own job ends empty, its lease ends, and the next restore works.
#[test]
fn a_panicking_sink_does_not_stop_other_restores() {
    struct Panics;
    impl BlockSink for Panics {
        fn accept(&mut self, _: &Record, _: &[u8]) {
            panic!("the engine is gone");
        }
    }
    let Opened { cache, namespace, _directory } = open(16, 4);
    let tokens = prompt(7, 4 * BLOCK_TOKENS + 1);
    let mut sequence = namespace.sequence(&tokens);
    drop(sequence.plan(1).unwrap());
    sequence.save(&mut Kv::new(&tokens)).unwrap();
    sequence.capture(&mut Kv::new(&tokens)).unwrap();
    cache.drain();
    let jobs = Jobs::start(&cache, 4).unwrap();
    let plan = namespace.sequence(&tokens).plan(2).unwrap();
    let crashed = jobs.submit_load(plan, Panics).map_err(|refused| refused.0).unwrap();
    let plan = namespace.sequence(&tokens).plan(3).unwrap();
    let good = jobs.submit_load(plan, Kv::new(&tokens)).map_err(|refused| refused.0).unwrap();
    jobs.drain();
    let finished = jobs.take_finished();
    assert_eq!((finished[0].id, finished[0].blocks.len()), (crashed, 0));
    assert_eq!((finished[1].id, &finished[1].blocks[..]), (good, &[Outcome::Done; 4][..]));
    assert_eq!(cache.stats().leases, 0);
}

/// Windows that wait for a save may not take all memory for writing: the save they wait for needs some itself.
#[test]
fn windows_that_wait_do_not_block_the_save_they_wait_for() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config {
        store: Some(directory.path().join("store")),
        write_buffer_bytes: 40_000,
        checkpoints: "full".parse().unwrap(),
        ..small(64, 16)
    };
    let cache = Cache::open(config).unwrap();
    let namespace = cache.namespace(&Namespace::new("small", "1").block_tokens(BLOCK_TOKENS)).unwrap();
    for (now, seed) in (1..).zip([8, 9, 10]) {
        let tokens = prompt(seed, 8 * BLOCK_TOKENS);
        let mut kv = Kv::new(&tokens);
        let mut sequence = namespace.sequence(&tokens);
        drop(sequence.plan(now).unwrap());
        sequence.capture(&mut kv).unwrap();
        if seed != 9 {
            let saved = sequence.save(&mut kv).unwrap();
            assert_eq!((saved.new_blocks, saved.checkpoints), (8, 2), "two windows fit in half of the memory");
        }
        // The second sequence is dropped with its windows: their memory must come back for the third.
    }
    cache.drain();
    assert_eq!(cache.stats().counters.captures_skipped, 6 + 8 + 6);
}
