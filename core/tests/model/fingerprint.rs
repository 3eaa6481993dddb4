//! Fingerprints: stable, and different for everything that changes what a record's bytes mean.

use std::collections::HashSet;

use reprise_core::{
    Digest,
    layout::Layout,
    model::{CacheType, Kind, ModelSpec, preset},
};

use super::simple_type;

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
        ("v4-pro:draft=on", "draft", "d8aa997892f736ef261624bd6439f9e0ef7538cb3615f015263fe1d0b1b5512e"),
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
    let kinds = [Kind::Windowed { window_tokens: 4 }, Kind::State { rows: 4 }, Kind::Draft { window_tokens: 4 }];
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
    assert_eq!(fingerprints.len(), 3);
}
