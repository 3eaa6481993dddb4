//! The presets against the published figures of their models.

use reprise_core::{
    layout::{Layout, slot_bytes},
    model::{CacheType, Kind, ModelSpec, preset, presets},
};

/// Size of a record of a group, with blocks of 128 tokens.
fn record_bytes(model: &str, group: &str) -> u64 {
    let layout = Layout::new(&preset(model).unwrap(), 128).unwrap();
    layout.group(group).unwrap_or_else(|| panic!("{model} has a group {group}")).record_bytes()
}

fn find<'a>(model: &'a ModelSpec, name: &str) -> &'a CacheType {
    model.types().iter().find(|cache_type| cache_type.name == name).unwrap()
}

/// Bytes that 1,048,576 tokens take of one compressed type: an integer for every ratio that is a power of two.
fn bytes_per_mebitoken(model: &ModelSpec, name: &str) -> u64 {
    let cache_type = find(model, name);
    let Kind::Compressed { ratio } = cache_type.kind else { panic!("{name} is compressed") };
    (1 << 20) / u64::from(ratio) * u64::from(cache_type.row_bytes) * cache_type.layers.count() as u64
}

#[test]
fn records_of_v4_have_the_published_sizes() {
    let cases = [
        ("v4-pro", "history", 644_024),
        ("v4-flash", "history", 449_824),
        ("v4-pro", "window", 4_559_872 + 614_400),
        ("v4-flash", "window", 3_214_336 + 430_080),
        ("v4-pro:draft=on", "draft", 128 * 584 + 4 * 7168 * 2),
        ("v4-flash:draft=on", "draft", 128 * 584 + 4 * 4096 * 2),
        ("v4-pro:draft=on", "window", 4_559_872 + 614_400),
        ("v4-pro:indexer=fp8", "history", 644_024 + 30 * 32 * (132 - 68)),
        ("v4-pro:rows=bf16,indexer=bf16", "history", 9_848 * 128),
        ("v4-pro:rows=bf16", "window", 61 * 128 * 1_024 + 614_400),
    ];
    for (model, group, bytes) in cases {
        assert_eq!(record_bytes(model, group), bytes, "{model} {group}");
    }
}

#[test]
fn bytes_per_token_of_v4_are_the_published_ones() {
    // 2^20 times the figures of the paper's table: 4380.0, 141.4375, 510, 990, 3066.0, 91.25, 357, 693.
    let cases = [
        ("v4-pro", "csa", 4380 << 20),
        ("v4-pro", "hca", (141 << 20) + 458_752),
        ("v4-pro", "indexer", 510 << 20),
        ("v4-pro:indexer=fp8", "indexer", 990 << 20),
        ("v4-flash", "csa", 3066 << 20),
        ("v4-flash", "hca", (91 << 20) + 262_144),
        ("v4-flash", "indexer", 357 << 20),
        ("v4-flash:indexer=fp8", "indexer", 693 << 20),
    ];
    for (model, name, bytes) in cases {
        assert_eq!(bytes_per_mebitoken(&preset(model).unwrap(), name), bytes, "{model} {name}");
    }
}

#[test]
fn a_bf16_sequence_of_a_mebitoken_has_the_size_that_vllm_publishes() {
    let model = preset("v4-pro:rows=bf16,indexer=bf16").unwrap();
    let bytes: u64 = ["csa", "hca", "indexer"].iter().map(|name| bytes_per_mebitoken(&model, name)).sum();
    assert_eq!(bytes, 9_848 << 20);
    // 9.617 GiB, in thousandths.
    assert_eq!((bytes * 1000) >> 30, 9_617);
}

#[test]
fn windows_replays_and_blocks_of_the_presets_follow_their_models() {
    // Model, block multiple, window, zero replay.
    let cases = [
        ("v4-pro", 128, 128, 7_808),
        ("v4-pro:draft=on", 128, 128, 7_936),
        ("v4-flash", 128, 128, 5_504),
        ("v4-flash:draft=on", 128, 128, 5_632),
        ("gpt-oss-20b", 1, 128, 12 * 128),
        ("gpt-oss-120b", 1, 128, 18 * 128),
        ("llama-3.1-8b", 1, 0, 0),
    ];
    for (name, multiple, window, replay) in cases {
        let model = preset(name).unwrap();
        assert_eq!(model.block_multiple(), multiple, "{name}");
        assert_eq!(model.window_tokens(), window, "{name}");
        assert_eq!(model.zero_replay_tokens(), replay, "{name}");
        assert_eq!(model.has_window(), window != 0, "{name}");
    }
}

#[test]
fn layers_of_the_presets_follow_their_models() {
    let cases = [
        ("v4-pro", "csa", 30),
        ("v4-pro", "hca", 31),
        ("v4-pro", "swa", 61),
        ("v4-flash", "csa", 21),
        ("v4-flash", "hca", 20),
        ("v4-flash", "swa", 43),
        ("gpt-oss-20b", "full", 12),
        ("gpt-oss-20b", "swa", 12),
        ("gpt-oss-120b", "full", 18),
        ("llama-3.1-8b", "kv", 32),
    ];
    for (model, name, layers) in cases {
        assert_eq!(find(&preset(model).unwrap(), name).layers.count(), layers, "{model} {name}");
    }
    // No layer of V4 has both kinds of attention, and only Flash has layers without either.
    for (model, both) in [("v4-pro", 61), ("v4-flash", 41)] {
        let model = preset(model).unwrap();
        let (csa, hca) = (&find(&model, "csa").layers, &find(&model, "hca").layers);
        assert!(csa.iter().all(|layer| hca.index_of(layer).is_none()));
        assert_eq!(csa.count() + hca.count(), both);
    }
}

#[test]
fn records_of_plain_attention_are_keys_and_values() {
    assert_eq!(record_bytes("llama-3.1-8b", "history"), 128 * 32 * 4_096);
    assert_eq!(record_bytes("gpt-oss-20b", "history"), 128 * 12 * 2_048);
    assert_eq!(record_bytes("gpt-oss-20b", "window"), 128 * 12 * 2_048);
    assert_eq!(slot_bytes(644_024), 647_168);
    assert_eq!(slot_bytes(4_096), 4_096);
}

#[test]
fn every_preset_is_a_model_with_every_option() {
    for known in presets() {
        assert_eq!(preset(known.name).unwrap().name(), known.name);
        for option in known.options {
            for value in option.values {
                let text = format!("{}:{}={value}", known.name, option.key);
                let model = preset(&text).unwrap();
                let expected = if *value == option.values[0] { known.name } else { &text };
                assert_eq!(model.name(), expected);
            }
        }
    }
}

#[test]
fn a_model_that_does_not_exist_is_answered_with_those_that_do() {
    let cases = [
        ("v5", "no model is named `v5`; there is v4-pro, v4-flash, gpt-oss-20b, gpt-oss-120b, llama-3.1-8b"),
        ("v4-pro:dtype=fp8", "model `v4-pro` has no option `dtype`; there is rows, indexer, draft"),
        ("llama-3.1-8b:rows=fp8", "model `llama-3.1-8b` has no option `rows`; there is none"),
        ("v4-flash:indexer=fp6", "option `indexer` of model `v4-flash` takes fp4, fp8, bf16, not `fp6`"),
        ("v4-flash:draft", "`draft` after `v4-flash:` is not of the form KEY=VALUE"),
        ("v4-pro:", "`` after `v4-pro:` is not of the form KEY=VALUE"),
        ("v4-pro:draft=on,draft=off", "option `draft` of model `v4-pro` is given twice"),
    ];
    for (text, message) in cases {
        assert_eq!(preset(text).unwrap_err().to_string(), message, "{text}");
    }
}
