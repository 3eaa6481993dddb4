//! Fingerprints: stable, and different for everything that changes what a record's bytes mean.

use std::collections::{BTreeMap, HashSet};

use proptest::{prelude::*, sample::Index};
use reprise_core::{
    Digest,
    layout::Layout,
    model::{CacheType, Kind, Layers, ModelSpec, preset},
};

use super::{random::model_and_block, simple_type};

fn of_group(model: &ModelSpec, block_tokens: u32, group: &str) -> Digest {
    Layout::new(model, block_tokens).unwrap().group(group).unwrap().fingerprint()
}

fn of_preset(name: &str, group: &str) -> Digest {
    of_group(&preset(name).unwrap(), 128, group)
}

// Computed with another implementation of the documented encoding (Python, PyPI's blake3): a change of any loses every store.
#[test]
fn fingerprints_never_change() {
    let golden = [
        ("v4-pro", "history", "275b360982e113cc3eef069c7e5831175334dc17db4910f48120689b2beaf2b3"),
        ("v4-pro", "window", "0aad66e29d30aac47b149d10dd8813e9c4b43a7c0c51519366da450094ca8ef4"),
        ("v4-pro:draft=on", "draft", "5a98202506e4d9c2c2f3d1b432a39b7c31ecfe986c9666519c52dc0f84253fda"),
        ("v4-flash", "history", "2597a3837fd61e94d2456c763949d2f1d3b431e64967231ff20aa22f3b5f0a52"),
        ("v4-flash", "window", "20e7d37a0a16eac758e7ad67774fcf74624ceac8777a2e9250218d2a71e5c39c"),
        ("gpt-oss-20b", "window", "2ca1bc90624f6251c4bb00494408a44ccf5f88b2dc4a6e2d2445624d07c88d09"),
        ("llama-3.1-8b", "history", "970e503d3333b3e53e758e0f52f3e1d3a5ca3eee1610623bd704a9d16c520c7d"),
    ];
    for (model, group, hex) in golden {
        assert_eq!(of_preset(model, group).to_string(), hex, "{model} {group}");
    }
}

#[test]
fn the_encoding_is_the_documented_one() {
    let model = ModelSpec::new(
        "m",
        vec!["history".into(), "window".into()],
        vec![
            simple_type("kv", "history", Kind::Compressed { ratio: 4 }),
            CacheType {
                layers: "2,5".parse().unwrap(),
                ..simple_type("idx", "history", Kind::Compressed { ratio: 2 })
            },
            simple_type("swa", "window", Kind::Windowed { window_tokens: 7 }),
        ],
    )
    .unwrap();
    let mut bytes = Vec::new();
    bytes.extend(b"\x0e\0\0\0reprise layout\x01\0\0\0");
    bytes.extend(b"\x01\x08\0\0\0\x02\0\0\0");
    bytes.extend(b"\x02\0\0\0kv\x01\x04\0\0\0\x64\0\0\0\x04\0\0\0bf16\x01\0\0\0\0\0\0\0");
    bytes.extend(b"\x03\0\0\0idx\x01\x02\0\0\0\x64\0\0\0\x04\0\0\0bf16\x02\0\0\0\x02\0\0\0\x05\0\0\0");
    assert_eq!(of_group(&model, 8, "history"), Digest(*blake3::hash(&bytes).as_bytes()));
}

#[test]
fn a_changed_window_does_not_miss_history() {
    let history = of_preset("v4-pro", "history");
    let window = of_preset("v4-pro", "window");
    assert_eq!(of_preset("v4-pro:draft=on", "history"), history);
    assert_eq!(of_preset("v4-pro:draft=on", "window"), window);
    assert_ne!(of_preset("v4-pro:indexer=fp8", "history"), history);
    assert_eq!(of_preset("v4-pro:indexer=fp8", "window"), window);
}

#[test]
fn names_of_model_and_group_do_not_matter() {
    let named = |model: &str, group: &str| {
        let types = vec![simple_type("kv", group, Kind::Compressed { ratio: 1 })];
        of_group(&ModelSpec::new(model, vec![group.into()], types).unwrap(), 128, group)
    };
    assert_eq!(named("a", "history"), named("b", "blocks"));
}

#[test]
fn no_two_layouts_share_a_fingerprint() {
    type Change = fn(&mut Vec<CacheType>);
    let changes: [(&str, Change); 12] = [
        ("nothing", |_| ()),
        ("a name", |types| types[0].name = "kw".into()),
        ("a ratio", |types| types[0].kind = Kind::Compressed { ratio: 2 }),
        ("a row's bytes", |types| types[0].row_bytes = 101),
        ("a row's format", |types| types[0].row_format = "fp16".into()),
        ("a layer more", |types| types[0].layers = "0-1".parse().unwrap()),
        ("another layer", |types| types[0].layers = "1".parse().unwrap()),
        ("the order of types", |types| types.swap(0, 1)),
        ("a type less", |types| drop(types.remove(1))),
        ("a type more", |types| types.insert(2, simple_type("third", "history", Kind::Compressed { ratio: 4 }))),
        ("what belongs to which type", |types| {
            types[0].layers = "0-1".parse().unwrap();
            types[1].name = "inde".into();
        }),
        ("two names joined", |types| {
            types[0].name = "kvi".into();
            types[1].name = "ndex".into();
        }),
    ];
    let mut seen = HashSet::new();
    for (what, change) in changes {
        let mut types = vec![
            simple_type("kv", "history", Kind::Compressed { ratio: 4 }),
            simple_type("index", "history", Kind::Compressed { ratio: 4 }),
        ];
        change(&mut types);
        let model = ModelSpec::new("m", vec!["history".into()], types).unwrap();
        assert!(seen.insert(of_group(&model, 8, "history")), "a change of {what} is not seen");
        assert!(seen.insert(of_group(&model, 16, "history")), "a change of {what} and the block is not seen");
    }
}

#[test]
fn kinds_with_equal_rows_do_not_share_a_fingerprint() {
    let kinds = [
        Kind::Windowed { window_tokens: 4 },
        Kind::State { rows: 4 },
        Kind::Draft { window_tokens: 4 },
        Kind::DraftState { rows: 4 },
    ];
    let fingerprints: HashSet<Digest> = kinds
        .into_iter()
        .map(|kind| {
            let types = vec![
                simple_type("kv", "history", Kind::Compressed { ratio: 1 }),
                simple_type("swa", "window", Kind::Windowed { window_tokens: 4 }),
                simple_type("x", "more", kind),
            ];
            let groups = ["history", "window", "more"].map(String::from).into();
            of_group(&ModelSpec::new("m", groups, types).unwrap(), 8, "more")
        })
        .collect();
    assert_eq!(fingerprints.len(), 4);
}

/// Fingerprints of all groups, by name.
fn of_groups(model: &ModelSpec, block_tokens: u32) -> BTreeMap<String, Digest> {
    let layout = Layout::new(model, block_tokens).unwrap();
    layout.groups().iter().map(|group| (group.name().to_owned(), group.fingerprint())).collect()
}

/// What is changed about a type, and how.
type TypeChange = (&'static str, fn(&mut CacheType));

/// Every way to change what the bytes of one type mean, and nothing else.
fn changes() -> [TypeChange; 6] {
    [
        ("dtype", |changed| changed.row_format.push('x')),
        ("row bytes", |changed| changed.row_bytes += 1),
        ("a layer more", |changed| changed.layers = Layers::new(changed.layers.iter().chain([90])).unwrap()),
        ("other layers", |changed| {
            changed.layers = Layers::new(changed.layers.iter().map(|layer| layer + 1)).unwrap();
        }),
        ("name", |changed| changed.name.push('x')),
        ("rows", |changed| {
            changed.kind = match changed.kind {
                // Still a divisor of the block, which is doubled below for the sake of this one.
                Kind::Compressed { ratio } => Kind::Compressed { ratio: 2 * ratio },
                Kind::Windowed { window_tokens } => Kind::Windowed { window_tokens: window_tokens + 1 },
                Kind::State { rows } => Kind::State { rows: rows + 1 },
                Kind::Draft { window_tokens } => Kind::Draft { window_tokens: window_tokens + 1 },
                Kind::DraftState { rows } => Kind::DraftState { rows: rows + 1 },
            }
        }),
    ]
}

proptest! {
    /// sglang#38362: bytes of another dtype were read, for it was not in the key. Whatever changes the bytes of a type changes the
    /// fingerprint of its own group and of no other.
    #[test]
    fn a_changed_type_never_keeps_its_groups_fingerprint_nor_changes_anothers(
        (model, block_tokens) in model_and_block(),
        index in any::<Index>(),
    ) {
        let block_tokens = 2 * block_tokens;
        let before = of_groups(&model, block_tokens);
        let index = index.index(model.types().len());
        for (what, change) in changes() {
            let mut types = model.types().to_vec();
            change(&mut types[index]);
            let after = of_groups(&same_groups(&model, types), block_tokens);
            prop_assert_eq!(differing(&before, &after), vec![&model.types()[index].group], "{}", what);
        }
    }

    /// The order of types decides where their bytes lie, if they are of one group; that of groups decides nothing.
    #[test]
    fn the_order_of_types_matters_within_their_group_only((model, block_tokens) in model_and_block(), index in any::<Index>()) {
        prop_assume!(model.types().len() > 1);
        let first = index.index(model.types().len() - 1);
        let mut types = model.types().to_vec();
        types.swap(first, first + 1);
        let before = of_groups(&model, block_tokens);
        let after = of_groups(&same_groups(&model, types), block_tokens);
        let [one, other] = [first, first + 1].map(|index| &model.types()[index].group);
        let expected = if one == other { vec![one] } else { Vec::new() };
        prop_assert_eq!(differing(&before, &after), expected);
    }

    #[test]
    fn another_block_size_never_keeps_a_fingerprint((model, block_tokens) in model_and_block()) {
        let before = of_groups(&model, block_tokens);
        let after = of_groups(&model, 2 * block_tokens);
        prop_assert_eq!(differing(&before, &after), before.keys().collect::<Vec<_>>());
    }
}

fn same_groups(model: &ModelSpec, types: Vec<CacheType>) -> ModelSpec {
    let groups = model.groups().iter().map(|group| group.name.clone()).collect();
    ModelSpec::new(model.name(), groups, types).unwrap()
}

/// Groups whose fingerprints differ.
fn differing<'a>(before: &'a BTreeMap<String, Digest>, after: &BTreeMap<String, Digest>) -> Vec<&'a String> {
    before.iter().filter(|(group, fingerprint)| after[*group] != **fingerprint).map(|(group, _)| group).collect()
}
