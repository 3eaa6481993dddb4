//! The model against `transformers`: see `data/README.md`.

use reprise_model::{Attention, CompressorState, LayerState, Model, Output, Rows, Shape, State};
use serde_json::Value;

const CASES: [(&str, &str); 3] = [
    ("small", include_str!("../data/small.json")),
    ("other", include_str!("../data/other.json")),
    ("published-ratios", include_str!("../data/published-ratios.json")),
];

/// Files have 12 digits. Both sides compute in `f64` and differ only in the order of sums.
const TOLERANCE: f64 = 1e-10;

#[test]
fn the_judge_is_never_contradicted() {
    for_each_run(|case, run, model, outputs, _| {
        for (position, expected) in run["logits"].as_object().unwrap() {
            let position: usize = position.parse().unwrap();
            assert_close(&outputs[position].logits, &numbers(expected), &format!("{case}: logits of {position}"));
        }
        assert_eq!(outputs[0].logits.len(), model.shape().vocab);
    });
}

#[test]
fn no_cache_holds_other_rows_than_the_judges() {
    for_each_run(|case, run, model, _, state| {
        for (index, expected) in run["caches"].as_object().unwrap() {
            let index: usize = index.parse().unwrap();
            let case = format!("{case}: layer {index}");
            assert_window(&state.layers[index], model.shape().window, &expected["window"], &case);
            assert_compressor(state.layers[index].compressor.as_ref(), &expected["compressor"], &case);
            assert_compressor(state.layers[index].indexer.as_ref(), &expected["indexer"], &format!("{case}: indexer"));
        }
    });
}

#[test]
fn a_draft_does_not_differ_from_one_put_together_from_the_judges_parts() {
    for_each_run(|case, run, _, outputs, _| {
        assert_eq!(outputs[0].draft_logits, None);
        for (position, expected) in run["draft"].as_object().unwrap() {
            let Some(output) = outputs.get(position.parse::<usize>().unwrap()) else { continue };
            let logits = output.draft_logits.as_ref().unwrap();
            assert_close(logits, &numbers(expected), &format!("{case}: draft logits of {position}"));
        }
    });
}

/// Gives every recorded run to `check`: its name, its record with the case's draft logits, the model, its outputs and
/// its state.
fn for_each_run(check: impl Fn(&str, &Value, &Model, &[Output], &State)) {
    for (name, text) in CASES {
        let case: Value = serde_json::from_str(text).unwrap();
        let model = Model::random(shape(&case["shape"]), case["seed"].as_u64().unwrap());
        let tokens: Vec<u32> = counts(&case["tokens"]).into_iter().map(|token| token as u32).collect();
        for (run_name, run) in case["runs"].as_object().unwrap() {
            let mut run = run.clone();
            run["draft"] = case["draft"].clone();
            let mut state = State::new(model.shape());
            let mut outputs = Vec::new();
            for length in counts(&run["calls"]) {
                outputs.extend(model.forward(&mut state, &tokens[outputs.len()..][..length]));
            }
            check(&format!("{name}, {run_name}"), &run, &model, &outputs, &state);
        }
    }
}

fn shape(value: &Value) -> Shape {
    let count = |name: &str| value[name].as_u64().unwrap() as usize;
    let number = |name: &str| value[name].as_f64().unwrap();
    let layer = |name: &Value| match name.as_str() {
        Some("window") => Attention::Window,
        Some("csa") => Attention::Csa,
        Some("hca") => Attention::Hca,
        _ => panic!("no attention is called {name}"),
    };
    Shape {
        vocab: count("vocab"),
        hidden: count("hidden"),
        heads: count("heads"),
        head_dim: count("head_dim"),
        rope_dim: count("rope_dim"),
        q_lora_rank: count("q_lora_rank"),
        o_groups: count("o_groups"),
        o_lora_rank: count("o_lora_rank"),
        window: count("window"),
        csa_ratio: count("csa_ratio"),
        hca_ratio: count("hca_ratio"),
        index_heads: count("index_heads"),
        index_head_dim: count("index_head_dim"),
        index_topk: count("index_topk"),
        hc_mult: count("hc_mult"),
        hc_sinkhorn_iters: count("hc_sinkhorn_iters"),
        hc_eps: number("hc_eps"),
        experts: count("experts"),
        experts_per_token: count("experts_per_token"),
        moe_intermediate: count("moe_intermediate"),
        routed_scaling_factor: number("routed_scaling_factor"),
        swiglu_limit: number("swiglu_limit"),
        rms_norm_eps: number("rms_norm_eps"),
        rope_theta: number("rope_theta"),
        compress_rope_theta: number("compress_rope_theta"),
        layers: value["layers"].as_array().unwrap().iter().map(layer).collect(),
        hash_layers: count("hash_layers"),
        draft: value["draft"].as_bool().unwrap(),
    }
}

/// The judge keeps one row fewer: the row that the next token pushes out.
fn assert_window(layer: &LayerState, window: usize, expected: &Value, case: &str) {
    let expected = expected.as_array().unwrap();
    assert_eq!((layer.window.len(), expected.len()), (window, window - 1), "{case}: window rows");
    for (row, expected) in layer.window.values.chunks_exact(layer.window.width).skip(1).zip(expected) {
        assert_close(row, &numbers(expected), &format!("{case}: window"));
    }
}

fn assert_compressor(state: Option<&CompressorState>, expected: &Value, case: &str) {
    let Some(state) = state else { return assert_eq!(*expected, Value::Null, "{case}") };
    assert_rows(&state.entries, &[&expected["entries"]], &format!("{case}: entries"));
    assert_rows(&state.buffer, &[&expected["buffer_kv"], &expected["buffer_gate"]], &format!("{case}: buffer"));
    assert_rows(&state.overlap, &[&expected["overlap_kv"], &expected["overlap_gate"]], &format!("{case}: overlap"));
}

/// Holds rows to the expected ones, whose parts lie side by side in them.
fn assert_rows(rows: &Rows, parts: &[&Value], case: &str) {
    for part in parts {
        assert_eq!(rows.len(), part.as_array().unwrap().len(), "{case}: number of rows");
    }
    for index in 0..rows.len() {
        let expected: Vec<f64> = parts.iter().flat_map(|part| numbers(&part[index])).collect();
        assert_close(rows.row(rows.first + index).unwrap(), &expected, &format!("{case}: row {index}"));
    }
}

fn assert_close(actual: &[f64], expected: &[f64], what: &str) {
    assert_eq!(actual.len(), expected.len(), "{what}");
    for (actual, expected) in actual.iter().zip(expected) {
        let allowed = TOLERANCE * expected.abs().max(1.0);
        assert!((actual - expected).abs() <= allowed, "{what}: {actual} instead of {expected}");
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

fn counts(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(|number| number.as_u64().unwrap() as usize).collect()
}
