//! Random valid models.

use std::collections::BTreeSet;

use proptest::{collection, prelude::*, sample};
use reprise_core::model::{CacheType, Kind, Layers, ModelSpec};

/// Layers, row bytes: what a type has besides its kind.
type Shape = (BTreeSet<u16>, u32);

fn shape() -> impl Strategy<Value = Shape> {
    // Rows of a few bytes and layers by the dozen make small records; long rows make records of many sections.
    (collection::btree_set(0_u16..90, 1..40), prop_oneof![1_u32..64, 500_u32..5000])
}

fn compressed() -> impl Strategy<Value = (Kind, Shape)> {
    (sample::select(vec![1, 2, 4, 6, 32, 128]).prop_map(|ratio| Kind::Compressed { ratio }), shape())
}

fn checkpointed() -> impl Strategy<Value = (Kind, Shape)> {
    let kind = prop_oneof![
        (1_u32..200).prop_map(|window_tokens| Kind::Windowed { window_tokens }),
        (1_u32..9).prop_map(|rows| Kind::State { rows }),
    ];
    (kind, shape())
}

fn draft() -> impl Strategy<Value = (Kind, Shape)> {
    let kind = prop_oneof![
        (1_u32..200).prop_map(|window_tokens| Kind::Draft { window_tokens }),
        (1_u32..3).prop_map(|rows| Kind::DraftState { rows }),
    ];
    (kind, shape())
}

/// A model with up to three groups, its types in any order.
pub fn model() -> impl Strategy<Value = ModelSpec> {
    let types =
        (collection::vec(compressed(), 1..4), collection::vec(checkpointed(), 0..3), collection::vec(draft(), 0..2));
    types
        .prop_map(|(blocks, mut checkpoints, drafts)| {
            if checkpoints.iter().any(|(kind, _)| matches!(kind, Kind::State { .. })) || !drafts.is_empty() {
                checkpoints.push((Kind::Windowed { window_tokens: 128 }, (BTreeSet::from([7]), 32)));
            }
            [("history", blocks), ("window", checkpoints), ("draft", drafts)]
                .into_iter()
                .flat_map(|(group, types)| types.into_iter().map(move |(kind, shape)| (group, kind, shape)))
                .enumerate()
                .map(|(index, (group, kind, (layers, row_bytes)))| CacheType {
                    name: format!("t{index}"),
                    group: group.to_owned(),
                    kind,
                    layers: Layers::new(layers).unwrap(),
                    row_bytes,
                    row_format: "bf16".to_owned(),
                })
                .collect::<Vec<CacheType>>()
        })
        .prop_shuffle()
        .prop_map(|types| {
            let groups: BTreeSet<String> = types.iter().map(|cache_type| cache_type.group.clone()).collect();
            ModelSpec::new("random", groups.into_iter().collect(), types).unwrap()
        })
}

/// A model and a block that fits it, in tokens.
pub fn model_and_block() -> impl Strategy<Value = (ModelSpec, u32)> {
    (model(), 1_u32..4).prop_map(|(model, blocks)| {
        let block_tokens = model.block_multiple() * blocks;
        (model, block_tokens)
    })
}
