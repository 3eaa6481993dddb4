//! The oracle itself: for each rule of an exact restore, an engine that breaks it. Each test asserts that the comparison notices, and that
//! the same scenario passes without the fault.

use reprise::{Config, Namespace};
use reprise_model::{Model, Shape, State};

use crate::{
    comparison::{Cold, Difference},
    engine::{Broken, Engine, Served, config},
    lengths::{FOLLOWING, tokens},
};

/// A prompt of so many tokens is served twice, the second time by a broken engine; then once more by a sound one.
fn second_run(
    shape: &Shape,
    checkpoints: &str,
    length: usize,
    broken: impl Fn(&Cold<'_>, &Model) -> Broken,
) -> Result<(), Difference> {
    let model = Model::random(shape.clone(), 21);
    let cold = Cold::new(&model, tokens(shape, 70, length + FOLLOWING));
    let (prompt, following) = cold.tokens.split_at(length);
    let directory = tempfile::tempdir().unwrap();
    let config = Config {
        checkpoints: checkpoints.parse().unwrap(),
        ..config(shape, 2 * (length / shape.hca_ratio) as u64 + 2, 40, directory.path())
    };
    let mut engine = Engine::open(&model, config);
    let hit = |served: &Served| assert!(served.restored.adopted_tokens > 0, "{}", served.plan.explain());
    engine.serve(prompt, &[], 1);
    engine.broken = Some(broken(&cold, &model));
    let mutant = engine.serve(prompt, following, 2);
    hit(&mutant);
    engine.broken = None;
    let sound = engine.serve(prompt, following, 3);
    hit(&sound);
    cold.compare(&sound).expect("without the fault nothing differs");
    cold.compare_bits(&mutant)
}

fn is_noticed(shape: &Shape, checkpoints: &str, length: usize, broken: impl Fn(&Cold<'_>, &Model) -> Broken) {
    let difference = second_run(shape, checkpoints, length, broken);
    assert!(matches!(difference, Err(Difference::Logits(_))), "the outputs differ: {difference:?}");
}

#[test]
fn a_missing_overlap_is_noticed() {
    is_noticed(&Shape::small(16, 16), "full", 100, |_, _| Broken::NoOverlap);
    is_noticed(&Shape::small(128, 128), "full", 300, |_, _| Broken::NoOverlap);
}

/// ROCm/ATOM#1417.
#[test]
fn a_ring_that_another_request_has_overwritten_is_noticed() {
    is_noticed(&Shape::small(16, 16), "events", 100, |cold, model| {
        let mut other = State::new(model.shape());
        model.forward(&mut other, &tokens(model.shape(), 71, cold.tokens.len()));
        Broken::StaleRing(Box::new(other))
    });
}

/// sglang#33656: the right sequence, the wrong position.
#[test]
fn a_window_of_another_position_is_noticed() {
    is_noticed(&Shape::small(16, 16), "full", 100, |cold, _| Broken::StaleRing(Box::new(cold.state_at(80))));
}

#[test]
fn rows_before_the_start_of_a_sequence_are_noticed() {
    is_noticed(&Shape::small(128, 16), "full", 100, |_, _| Broken::WindowFromTheFront);
}

#[test]
fn a_replay_without_a_write_floor_is_noticed() {
    is_noticed(&Shape::small(16, 16), "zero", 200, |_, _| Broken::NoWriteFloor);
}

/// sglang#34562: a prefill of one window does not rebuild the windows of all layers.
#[test]
fn a_replay_that_is_a_window_too_short_is_noticed() {
    is_noticed(&Shape { draft: false, ..Shape::small(16, 16) }, "zero", 200, |_, _| Broken::ShortReplay);
}

#[test]
fn a_hit_without_its_windows_is_noticed() {
    is_noticed(&Shape::small(16, 16), "zero", 200, |_, _| Broken::NoReplay);
}

/// sglang#31108, #30321.
#[test]
fn indexer_entries_that_end_a_block_early_are_noticed() {
    is_noticed(&Shape::small(16, 16), "events", 100, |_, _| Broken::IndexerShort);
}

#[test]
fn compressed_entries_that_end_a_block_early_are_noticed() {
    is_noticed(&Shape::small(16, 16), "events", 100, |_, _| Broken::EntriesShort);
}

/// One token must be computed for its logits; computing the last one again puts it at a position that is not its own.
#[test]
fn a_hit_of_the_full_prompt_is_noticed() {
    is_noticed(&Shape::small(16, 16), "full", 96, |_, _| Broken::FullPrompt);
}

/// vllm#49261 and its kind: the same name and other weights, served without the revision in the key.
#[test]
fn another_revisions_rows_are_noticed() {
    let shape = Shape::small(16, 16);
    let (old, new) = (Model::random(shape.clone(), 22), Model::random(shape.clone(), 23));
    let cold = Cold::new(&new, tokens(&shape, 72, 100 + FOLLOWING));
    let (prompt, following) = cold.tokens.split_at(100);
    for (revision, adopted, noticed) in [("1", 96, true), ("2", 0, false)] {
        let directory = tempfile::tempdir().unwrap();
        let config = config(&shape, 20, 4, directory.path());
        Engine::open(&old, config.clone()).serve(prompt, &[], 1);
        let engine = Engine::open_as(&new, config, &Namespace::new("reference", revision));
        let served = engine.serve(prompt, following, 2);
        assert_eq!(served.restored.adopted_tokens, adopted);
        assert_eq!(cold.compare(&served).is_err(), noticed, "revision {revision}");
    }
}

/// sglang#27294: a hit at a position that ends a CSA entry but no HCA entry, without the tokens of the HCA entry under way. The layout
/// does not allow such a block; a state that was restored so is noticed.
#[test]
fn an_hca_entry_that_was_not_complete_is_noticed() {
    let shape = Shape::small(16, 16);
    let model = Model::random(shape.clone(), 24);
    let cold = Cold::new(&model, tokens(&shape, 73, 120));
    let refused = reprise_core::layout::Layout::new(&crate::kv::spec(&shape), 12).unwrap_err();
    assert!(refused.to_string().contains("multiple of 16"), "{refused}");
    let mut state = cold.state_at(92);
    for layer in &mut state.layers {
        if let (Some(compressor), None) = (&mut layer.compressor, &layer.indexer) {
            compressor.buffer.clear(92);
        }
    }
    // The entry that ends at 96 begins before the first token that is seen: it is left out instead of refused.
    state.write_floor = 81;
    let exact = model.forward(&mut cold.state_at(92), &cold.tokens[92..]);
    let outputs = model.forward(&mut state, &cold.tokens[92..]);
    assert_eq!(outputs[..3], exact[..3], "until the entry would have been complete");
    assert_ne!(outputs.last(), exact.last());
}

/// The length of a replay is what the cache says it is, and no shorter one would do.
#[test]
fn the_length_of_a_replay_is_not_guessed() {
    let shape = Shape::small(16, 16);
    let model = Model::random(shape.clone(), 25);
    let cold = Cold::new(&model, tokens(&shape, 74, 240 + FOLLOWING));
    let layers = shape.layers.len();
    let spec = crate::kv::spec(&shape);
    assert_eq!(spec.zero_replay_tokens() as usize, (layers + 1) * shape.window);
    let exact = cold.state_at(240);
    // For the main model L·(n_win - 1) + 1, as published; the draft layer's rows are made of its output, n_win more.
    let least = layers * (shape.window - 1) + 1;
    for (tokens, main, drafts) in
        [(least - 1, false, false), (least, true, false), (least + 16, true, true), (128, true, true)]
    {
        let mut state = State::at(&shape, 240 - tokens);
        state.write_floor = 240;
        for (layer, exact) in state.layers.iter_mut().zip(&exact.layers) {
            for (compressor, exact) in
                [(&mut layer.compressor, &exact.compressor), (&mut layer.indexer, &exact.indexer)]
            {
                if let (Some(compressor), Some(exact)) = (compressor, exact) {
                    compressor.entries = exact.entries.clone();
                }
            }
        }
        model.forward(&mut state, &cold.tokens[240 - tokens..240]);
        let windows = |state: &State| state.layers.iter().map(|layer| layer.window.clone()).collect::<Vec<_>>();
        assert_eq!(windows(&state) == windows(&exact), main, "{tokens} tokens");
        assert_eq!(state.draft == exact.draft, drafts, "{tokens} tokens");
    }
}
