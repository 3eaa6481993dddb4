//! Where types and layers lie in records.

use proptest::prelude::*;
use reprise_core::{
    layout::Layout,
    model::{CacheType, Kind, ModelSpec, Role, preset},
};

use super::{random, simple_type};

proptest! {
    #[test]
    fn extents_tile_the_record_without_gap_or_overlap((model, block_tokens) in random::model_and_block()) {
        let layout = Layout::new(&model, block_tokens).unwrap();
        prop_assert_eq!(layout.groups().len(), model.groups().len());
        for (group, spec) in layout.groups().iter().zip(model.groups()) {
            let mut end = 0;
            let mut last = None;
            for extent in group.extents() {
                prop_assert_eq!(extent.bytes.start, end);
                prop_assert!(extent.bytes.end > end);
                prop_assert!(last < Some((extent.type_index, extent.layer)), "by type, then by layer");
                let cache_type = &group.types()[extent.type_index];
                prop_assert_eq!(group.extent(cache_type.name(), extent.layer), Some(extent.bytes.clone()));
                prop_assert!(cache_type.bytes().start <= end && extent.bytes.end <= cache_type.bytes().end);
                last = Some((extent.type_index, extent.layer));
                end = extent.bytes.end;
            }
            prop_assert_eq!(end, group.record_bytes());
            let by_type: u64 = model.types_of(spec).map(|cache_type| cache_type.bytes(block_tokens)).sum();
            prop_assert_eq!(group.record_bytes(), by_type);
        }
    }

    #[test]
    fn blocks_are_complete_in_every_type((model, block_tokens) in random::model_and_block()) {
        let layout = Layout::new(&model, block_tokens).unwrap();
        for cache_type in layout.groups().iter().flat_map(|group| group.types()) {
            if let Kind::Compressed { ratio } = cache_type.kind() {
                prop_assert_eq!(cache_type.rows() * ratio, block_tokens);
            }
        }
    }

    #[test]
    fn a_short_hit_needs_no_rows_before_the_prompt(
        (model, block_tokens) in random::model_and_block(),
        position in 1_u32..400,
    ) {
        let layout = Layout::new(&model, block_tokens).unwrap();
        for cache_type in layout.groups().iter().flat_map(|group| group.types()) {
            let rows = cache_type.rows_needed(position);
            match cache_type.kind() {
                Kind::Windowed { window_tokens } | Kind::Draft { window_tokens } => {
                    prop_assert_eq!(rows, window_tokens.min(position));
                }
                Kind::Compressed { .. } | Kind::State { .. } | Kind::DraftState { .. } => prop_assert_eq!(rows, cache_type.rows()),
            }
            for layer in cache_type.layers().iter() {
                let all = cache_type.layer_bytes(layer).unwrap();
                let needed = cache_type.needed_bytes(layer, position).unwrap();
                prop_assert_eq!(needed.end, all.end);
                prop_assert!(needed.start >= all.start);
                prop_assert_eq!(needed.end - needed.start, u64::from(rows) * u64::from(cache_type.row_bytes()));
            }
        }
    }
}

#[test]
fn the_records_of_v4_pro_lie_as_documented() {
    let layout = Layout::new(&preset("v4-pro:draft=on").unwrap(), 256).unwrap();
    let history = layout.group("history").unwrap();
    let rows: Vec<(&str, u32)> = history.types().iter().map(|each| (each.name(), each.rows())).collect();
    assert_eq!(rows, [("csa", 64), ("hca", 2), ("indexer", 64)]);
    assert_eq!(history.record_bytes(), 2 * 644_024);
    assert_eq!(history.extent("csa", 2), Some(0..37_376));
    assert_eq!(history.extent("csa", 60), Some(29 * 37_376..30 * 37_376));
    assert_eq!(history.extent("hca", 3), Some(30 * 37_376 + 2 * 1_168..30 * 37_376 + 3 * 1_168));
    assert_eq!(history.extent("csa", 3), None, "layer 3 is HCA");
    assert_eq!(history.extent("swa", 3), None, "the window is another group");

    let window = layout.group("window").unwrap();
    assert_eq!(window.type_layout("swa").unwrap().bytes(), 0..4_559_872);
    assert_eq!(window.type_layout("csa-overlap").unwrap().bytes(), 4_559_872..5_174_272);
    assert_eq!(window.extent("csa-overlap", 2), Some(4_559_872..4_559_872 + 20_480));
    assert_eq!(layout.group("draft").unwrap().extent("mtp-swa", 61), Some(0..74_752));

    let roles: Vec<Role> = layout.groups().iter().map(|group| group.role()).collect();
    assert_eq!(roles, [Role::Block, Role::Checkpoint, Role::Draft]);
}

#[test]
fn a_hit_of_one_short_block_reads_the_end_of_the_window() {
    let layout = Layout::new(&preset("gpt-oss-20b").unwrap(), 16).unwrap();
    let window = layout.group("window").unwrap().type_layout("swa").unwrap();
    // Layer 2 is the second layer with a window; 128 rows of 2,048 bytes each.
    assert_eq!(window.layer_bytes(2), Some(262_144..524_288));
    assert_eq!(window.rows_needed(16), 16);
    assert_eq!(window.needed_bytes(2, 16), Some(524_288 - 16 * 2_048..524_288));
    assert_eq!(window.needed_bytes(2, 128), window.layer_bytes(2));
    assert_eq!(window.needed_bytes(2, 4_096), window.layer_bytes(2));
    assert_eq!(window.needed_bytes(3, 4_096), None, "layer 3 has no window");
}

#[test]
fn a_block_that_cuts_a_row_is_refused() {
    let v4 = preset("v4-pro").unwrap();
    let cases = [
        (0, "the least common multiple of its compression ratios; 128 would do"),
        (64, "the block must be a multiple of 128"),
        (200, "blocks of 200 tokens do not fit model \"v4-pro\""),
        (200, "256 would do"),
        (65_535, "65536 would do"),
        (65_537, "blocks of 65537 tokens are too long: at most 65536 are possible"),
        (u32::MAX, "are too long"),
    ];
    for (block_tokens, message) in cases {
        let error = Layout::new(&v4, block_tokens).unwrap_err().to_string();
        assert!(error.contains(message), "{block_tokens}: expected {message:?}, found {error:?}");
    }
    for block_tokens in [128, 256, 65_536] {
        assert!(Layout::new(&v4, block_tokens).is_ok());
    }
}

#[test]
fn a_suggested_block_is_never_too_long() {
    let odd = simple_type("kv", "history", Kind::Compressed { ratio: 40_000 });
    let model = ModelSpec::new("m", vec!["history".into()], vec![odd]).unwrap();
    let error = Layout::new(&model, 50_000).unwrap_err().to_string();
    assert!(error.contains("40000 would do"), "{error}");
}

#[test]
fn a_record_beyond_the_limit_is_refused() {
    let huge = CacheType { row_bytes: 1 << 24, ..simple_type("kv", "history", Kind::Compressed { ratio: 1 }) };
    let model = ModelSpec::new("m", vec!["history".into()], vec![huge]).unwrap();
    assert!(Layout::new(&model, 256).is_ok(), "exactly 4 GiB");
    assert_eq!(
        Layout::new(&model, 257).unwrap_err().to_string(),
        "a record of group \"history\" of model \"m\" would have 4311744512 bytes with blocks of 257 tokens; at most 4294967296 are \
         possible: take a shorter block"
    );
}
