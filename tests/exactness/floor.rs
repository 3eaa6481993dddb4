//! A replay computes tokens whose deep layers are inexact: nothing of that below the write floor may reach the store.

use std::sync::{Arc, Mutex};

use reprise::{BlockSource, Config, Group, Record};
use reprise_core::layout::Layout;
use reprise_model::{Model, Shape, State};

use crate::{
    comparison::Cold,
    engine::{Broken, Caches, Engine, config},
    kv,
    lengths::{FOLLOWING, tokens},
};

/// Notes which records the cache asks for.
struct Noted<'a> {
    caches: Caches<'a>,
    asked: Arc<Mutex<Vec<Record>>>,
}

impl BlockSource for Noted<'_> {
    fn fill(&mut self, record: &Record, bytes: &mut [u8]) {
        self.asked.lock().unwrap().push(*record);
        self.caches.fill(record, bytes);
    }
}

const PROMPT: usize = 16 * 16 + 3;

/// Blocks that a replay passes are evicted before it saves: the cache could only get them from what the replay computed, and does not
/// ask for them, nor for what would lie behind.
#[test]
fn nothing_below_the_write_floor_is_asked_for() {
    let shape = Shape::small(16, 16);
    let model = Model::random(shape.clone(), 10);
    let directory = tempfile::tempdir().unwrap();
    let config = Config { checkpoints: "zero".parse().unwrap(), ..config(&shape, 20, 1, directory.path()) };
    let layout = Layout::new(&config.model, config.block_tokens).unwrap();
    let engine = Engine::open(&model, config);
    let cold = Cold::new(&model, tokens(&shape, 50, PROMPT + FOLLOWING));
    let prompt = &cold.tokens[..PROMPT];
    engine.serve(&prompt[..PROMPT - 16], &[], 1);
    let mut request = engine.plan(prompt, 2);
    let (adopted, replayed) = (request.plan.adopted_tokens, request.plan.replayed_tokens);
    assert_eq!((adopted, replayed), (240, 128));
    let (restored, mut state) = engine.restore(&request.plan);
    drop(std::mem::replace(&mut request.plan, engine.plan(&[0], 3).plan));
    engine.serve(&tokens(&shape, 51, 15 * 16 + 1), &[], 4);
    let resident = engine.namespace.sequence(prompt).plan(5).unwrap().matched_tokens;
    assert!(resident < adopted, "the leaves of the path went: {resident} tokens are left");

    model.forward(&mut state, &prompt[(restored.adopted_tokens - restored.replayed_tokens) as usize..]);
    let asked = Arc::default();
    let caches = Caches { layout: &layout, state: &state };
    let saved = request.sequence.save(&mut Noted { caches, asked: Arc::clone(&asked) }).unwrap();
    engine.cache.drain();
    assert_eq!((saved.new_blocks, asked.lock().unwrap().len()), (0, 0));

    // With nothing evicted, the same request saves what is new, and only that.
    engine.serve(&prompt[..PROMPT - 16], &[], 6);
    let mut request = engine.plan(prompt, 7);
    let (restored, mut state) = engine.restore(&request.plan);
    model.forward(&mut state, &prompt[(restored.adopted_tokens - restored.replayed_tokens) as usize..]);
    let caches = Caches { layout: &layout, state: &state };
    request.sequence.save(&mut Noted { caches, asked: Arc::clone(&asked) }).unwrap();
    engine.cache.drain();
    let positions: Vec<u32> = asked.lock().unwrap().iter().map(|record| record.position_tokens).collect();
    assert_eq!(positions, [256]);
}

/// The entries that a replay computes below the floor are not those of a cold run: what would be written is wrong.
fn replayed_without_floor(model: &Model, cold: &Cold<'_>, start: usize, adopted: usize) -> State {
    let mut state = State::at(model.shape(), start);
    for (layer, exact) in state.layers.iter_mut().zip(&cold.state_at(adopted).layers) {
        for (entries, exact) in [(&mut layer.compressor, &exact.compressor), (&mut layer.indexer, &exact.indexer)] {
            if let (Some(compressor), Some(exact)) = (entries, exact) {
                compressor.entries = exact.entries.clone();
            }
        }
    }
    model.forward(&mut state, &cold.tokens[start..adopted]);
    state
}

/// Somebody writes there all the same: the next hit is wrong, and the comparison says so.
#[test]
fn a_write_below_the_floor_does_not_go_unnoticed() {
    struct Inexact<'a>(&'a Layout, State, State);
    impl BlockSource for Inexact<'_> {
        fn fill(&mut self, record: &Record, bytes: &mut [u8]) {
            let state = if record.group == Group::History { &self.1 } else { &self.2 };
            kv::fill(self.0, state, record, bytes);
        }
    }
    let shape = Shape::small(16, 16);
    let model = Model::random(shape.clone(), 11);
    let cold = Cold::new(&model, tokens(&shape, 52, PROMPT + FOLLOWING));
    let (prompt, following) = cold.tokens.split_at(PROMPT);
    let inexact = replayed_without_floor(&model, &cold, 112, 240);
    for (state, noticed) in [(cold.state_at(256), false), (inexact, true)] {
        let directory = tempfile::tempdir().unwrap();
        let config = config(&shape, 20, 4, directory.path());
        let layout = Layout::new(&config.model, config.block_tokens).unwrap();
        let engine = Engine::open(&model, config);
        let mut sequence = engine.namespace.sequence(&prompt[..240]);
        drop(sequence.plan(1).unwrap());
        let mut source = Inexact(&layout, state, cold.state_at(240));
        sequence.save(&mut source).unwrap();
        sequence.capture(&mut source).unwrap();
        engine.cache.drain();
        let served = engine.serve(prompt, following, 2);
        assert_eq!((served.restored.adopted_tokens, served.restored.checkpoint), (240, true));
        assert_eq!(cold.compare(&served).is_err(), noticed);
    }
}

/// An engine that overwrites its own entries in a replay is wrong at once.
#[test]
fn a_replay_that_overwrites_what_was_loaded_does_not_go_unnoticed() {
    let shape = Shape::small(16, 16);
    let model = Model::random(shape.clone(), 12);
    let cold = Cold::new(&model, tokens(&shape, 53, PROMPT + FOLLOWING));
    let (prompt, following) = cold.tokens.split_at(PROMPT);
    for (broken, noticed) in [(None, false), (Some(Broken::NoWriteFloor), true)] {
        let directory = tempfile::tempdir().unwrap();
        let config = Config { checkpoints: "zero".parse().unwrap(), ..config(&shape, 20, 1, directory.path()) };
        let mut engine = Engine::open(&model, config);
        engine.serve(prompt, &[], 1);
        engine.broken = broken;
        let served = engine.serve(prompt, following, 2);
        assert_eq!(served.restored.replayed_tokens, 128);
        assert_eq!(cold.compare(&served).is_err(), noticed);
    }
}
