//! What a state may and must hold to go on as a cold prefill does.

use proptest::prelude::*;
use reprise_model::{CompressorState, Model, Output, Rows, Shape, State};

const SEED: u64 = 1;

fn model() -> Model {
    Model::random(Shape::small(16, 16), SEED)
}

/// Pseudo-random tokens of the small vocabulary.
fn tokens(count: u32) -> Vec<u32> {
    (0..count).map(|i| (i + 1).wrapping_mul(2_654_435_761) >> 26).collect()
}

/// The state and outputs of a prefill in one call.
fn cold(model: &Model, tokens: &[u32]) -> (State, Vec<Output>) {
    let mut state = State::new(model.shape());
    let outputs = model.forward(&mut state, tokens);
    (state, outputs)
}

/// A state at `start` that has the entries `stored` had, and nothing else; it replays up to where `stored` ends.
fn without_windows(model: &Model, stored: &State, start: usize) -> State {
    let mut state = State::at(model.shape(), start);
    state.write_floor = stored.position;
    for (layer, stored) in state.layers.iter_mut().zip(&stored.layers) {
        copy_entries(&mut layer.compressor, &stored.compressor);
        copy_entries(&mut layer.indexer, &stored.indexer);
    }
    state
}

fn copy_entries(to: &mut Option<CompressorState>, from: &Option<CompressorState>) {
    if let (Some(to), Some(from)) = (to, from) {
        to.entries = from.entries.clone();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_cut_into_calls_does_not_change_a_bit(calls in prop::collection::vec(0_usize..60, 1..8), published in any::<bool>()) {
        let ratio = if published { 128 } else { 16 };
        let model = Model::random(Shape::small(ratio, ratio), SEED);
        let tokens = tokens(calls.iter().sum::<usize>() as u32);
        let (expected_state, expected) = cold(&model, &tokens);
        let mut state = State::new(model.shape());
        let mut outputs = Vec::new();
        for length in calls {
            outputs.extend(model.forward(&mut state, &tokens[outputs.len()..][..length]));
        }
        prop_assert!(outputs == expected);
        prop_assert!(state == expected_state);
    }
}

/// The older half of the rows is dropped from one place of a state: the numbers tell, and nothing fails.
#[test]
fn a_missing_row_is_neither_an_error_nor_unnoticed() {
    let model = model();
    let tokens = tokens(200);
    let (_, expected) = cold(&model, &tokens);
    for position in [22, 71, 150] {
        let (complete, _) = cold(&model, &tokens[..position]);
        for (layer, place) in (0..model.shape().layers.len()).flat_map(|layer| (0..7).map(move |place| (layer, place)))
        {
            let mut state = complete.clone();
            let Some(rows) = rows_of(&mut state, layer, place).filter(|rows| !rows.is_empty()) else { continue };
            rows.drop_before(rows.end() - rows.len() / 2);
            let outputs = model.forward(&mut state, &tokens[position..]);
            let case = format!("place {place} of layer {layer} at {position}");
            let mut pairs = outputs.iter().zip(&expected[position..]);
            assert!(pairs.any(|(output, expected)| output.logits != expected.logits), "{case} is not missed");
            assert!(outputs.iter().flat_map(|output| &output.logits).all(|logit| logit.is_finite()), "{case}");
        }
    }
}

fn rows_of(state: &mut State, layer: usize, place: usize) -> Option<&mut Rows> {
    let layer = &mut state.layers[layer];
    Some(match place {
        0 => &mut layer.window,
        1 => &mut layer.compressor.as_mut()?.entries,
        2 => &mut layer.compressor.as_mut()?.buffer,
        3 => &mut layer.compressor.as_mut()?.overlap,
        4 => &mut layer.indexer.as_mut()?.entries,
        5 => &mut layer.indexer.as_mut()?.buffer,
        _ => &mut layer.indexer.as_mut()?.overlap,
    })
}

#[test]
fn an_early_token_is_not_forgotten() {
    let model = model();
    let mut tokens = tokens(400);
    let (_, before) = cold(&model, &tokens);
    tokens[2] = (tokens[2] + 1) % 64;
    let (_, after) = cold(&model, &tokens);
    let distance = |at: usize| {
        let pairs = before[at].logits.iter().zip(&after[at].logits);
        pairs.map(|(before, after)| (before - after).abs()).fold(0.0, f64::max)
    };
    let smallest = (300..400).map(distance).fold(f64::INFINITY, f64::min);
    assert!(smallest > 1e-3, "some of the last logits moved by {smallest} only");
}

/// At a position that is a multiple of both ratios a checkpoint is windows, overlaps, and what the draft needs. Buffers
/// are empty.
#[test]
fn a_restored_checkpoint_does_not_differ_from_a_cold_prefill() {
    let model = model();
    let tokens = tokens(260);
    let (_, expected) = cold(&model, &tokens);
    for position in [16, 32, 112, 240] {
        let (stored, _) = cold(&model, &tokens[..position]);
        let mut state = without_windows(&model, &stored, position);
        for (layer, stored) in state.layers.iter_mut().zip(&stored.layers) {
            layer.window = stored.window.clone();
            for (to, from) in [(&mut layer.compressor, &stored.compressor), (&mut layer.indexer, &stored.indexer)] {
                if let (Some(to), Some(from)) = (to, from) {
                    assert!(from.buffer.is_empty());
                    to.overlap = from.overlap.clone();
                }
            }
        }
        state.draft = stored.draft.clone();
        assert!(model.forward(&mut state, &tokens[position..]) == expected[position..], "restored at {position}");
    }
}

/// Without any window, L (n_win - 1) + 1 replayed tokens give every window of L layers, and n_win more the draft layer's.
/// One fewer does not.
#[test]
fn a_replay_is_not_exact_with_one_token_fewer() {
    for draft in [false, true] {
        let mut shape = Shape::small(16, 16);
        shape.draft = draft;
        let enough = shape.layers.len() * (shape.window - 1) + 1 + if draft { shape.window } else { 0 };
        let model = Model::random(shape, SEED);
        let (tokens, hit) = (tokens(224), 224);
        let (stored, _) = cold(&model, &tokens);
        for (replayed, exact) in [(enough + 20, true), (enough, true), (enough - 1, false)] {
            let mut state = without_windows(&model, &stored, hit - replayed);
            model.forward(&mut state, &tokens[hit - replayed..]);
            state.write_floor = 0;
            assert!((state == stored) == exact, "a replay of {replayed} tokens, draft layer: {draft}");
        }
    }
}

#[test]
fn a_replay_does_not_write_below_its_floor_and_does_without_one() {
    let model = model();
    let (tokens, hit) = (tokens(260), 224);
    let (stored, _) = cold(&model, &tokens[..hit]);
    for floor in [hit, 0] {
        let mut state = without_windows(&model, &stored, 150);
        state.write_floor = floor;
        model.forward(&mut state, &tokens[150..hit]);
        for (layer, stored) in state.layers.iter().zip(&stored.layers) {
            for (replayed, stored) in [(&layer.compressor, &stored.compressor), (&layer.indexer, &stored.indexer)] {
                let (Some(replayed), Some(stored)) = (replayed, stored) else { continue };
                assert_eq!(replayed.entries.len(), stored.entries.len());
                assert_eq!(replayed.entries == stored.entries, floor == hit, "entries with a write floor of {floor}");
            }
        }
    }
}

#[test]
fn a_draft_without_the_hidden_state_does_not_change_the_model_and_is_not_exact() {
    let model = model();
    let tokens = tokens(100);
    let (_, expected) = cold(&model, &tokens);
    let (mut state, _) = cold(&model, &tokens[..64]);
    state.draft.as_mut().unwrap().hidden = None;
    let outputs = model.forward(&mut state, &tokens[64..]);
    assert_eq!(outputs[0].draft_logits, None);
    for (output, expected) in outputs.iter().zip(&expected[64..]).take(15) {
        assert_eq!(output.logits, expected.logits);
        assert_ne!(output.draft_logits, expected.draft_logits);
    }
}
