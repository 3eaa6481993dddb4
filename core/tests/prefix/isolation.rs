//! What must never share a name: tenants, adapters, weights, ranks, block sizes, engines' keys.

use std::collections::{HashMap, HashSet};

use proptest::{
    collection::{btree_map, btree_set, vec},
    prelude::*,
};
use reprise_core::{
    Digest,
    prefix::{Chain, DEFAULT_BLOCK_TOKENS, MAX_BLOCK_TOKENS, Namespace, NamespaceError},
};

use crate::{at_once, one_by_one};

fn base() -> Namespace {
    Namespace::new("model", "revision")
}

/// Every name that a namespace gives, on every path, to one sequence of tokens and one key of an engine.
fn names(namespace: &Namespace) -> Vec<(&'static str, Digest)> {
    let key = namespace.key().unwrap();
    let tokens: Vec<u32> = (0..8 * key.block_tokens()).map(|j| j % 7).collect();
    let mut with_extra = Chain::new(&key);
    with_extra.attach(0, b"image").unwrap();
    let mut names = vec![("root", key.root()), ("engine", key.engine_digest(&[5; 32]))];
    names.extend(at_once(&key, &tokens).into_iter().map(|digest| ("at once", digest)));
    names.extend(tokens.iter().filter_map(|&token| with_extra.push(token)).map(|digest| ("extra", digest)));
    names
}

/// Panics if any two of the namespaces share a name, on whatever path.
fn assert_disjoint(namespaces: &[Namespace]) {
    let mut seen = HashMap::new();
    for (index, namespace) in namespaces.iter().enumerate() {
        for (path, digest) in names(namespace) {
            if let Some((other, other_path)) = seen.insert(digest, (index, path)) {
                panic!("{path} of {namespace:?} is {other_path} of {:?}: {digest}", namespaces[other]);
            }
        }
    }
}

/// vllm#53495, sglang#37160: a path that forgets the salt serves one tenant what another one computed.
#[test]
fn a_salt_is_never_ignored_on_any_path() {
    assert_disjoint(&[base(), base().tenant(*b"a"), base().tenant(*b"b"), base().tenant([0]), base().tenant([0, 0])]);
    let [salted, plain] = [base().tenant(*b"a"), base()].map(|namespace| namespace.key().unwrap());
    let tokens = [1; 300];
    assert_ne!(one_by_one(&salted, &tokens), one_by_one(&plain, &tokens));
    assert_eq!(one_by_one(&salted, &tokens), at_once(&salted, &tokens));
}

/// vllm#44701: an adapter called like another tenant's salt read that tenant's cache.
#[test]
fn an_adapter_never_collides_with_a_salt() {
    assert_disjoint(&[
        base().adapter("x"),
        base().tenant(*b"x"),
        base().adapter("xy"),
        base().adapter("x").tenant(*b"y"),
        base().adapter("y").tenant(*b"x"),
        base().tenant(*b"xy"),
        base().extension("x", ""),
        base().extension("", "x"),
        base().extension("adapter", "x"),
        // A salt that looks like the fields after it.
        base().tenant(*b"\x05\x01\0\0\0\0\0\0\0x"),
    ]);
}

#[test]
fn no_byte_moves_from_one_field_to_the_next() {
    assert_disjoint(&[
        Namespace::new("ab", "c"),
        Namespace::new("a", "bc"),
        Namespace::new("a", "b").adapter("c"),
        Namespace::new("a", "b").extension("c", ""),
        Namespace::new("a", "b").extension("c", "d").extension("e", "f"),
        Namespace::new("a", "b").extension("c", "d\x08\x01\0\0\0\0\0\0\0e\x09\x01\0\0\0\0\0\0\0f"),
        Namespace::new("a", "b").extension("c", "f").extension("e", "d"),
    ]);
}

/// vllm#49261, sglang#26792: stale KV after an update of the weights.
#[test]
fn the_same_name_with_other_weights_shares_nothing() {
    assert_disjoint(&[
        Namespace::new("model", "1"),
        Namespace::new("model", "2"),
        Namespace::new("model", "1").adapter("sql@1"),
        Namespace::new("model", "1").adapter("sql@2"),
    ]);
}

/// sglang#31926: ranks that shared a name overwrote each other's files.
#[test]
fn ranks_never_share_a_name() {
    assert_disjoint(&[base(), base().rank(0, 2), base().rank(1, 2), base().rank(1, 4), base().rank(2, 4)]);
}

#[test]
fn blocks_of_different_sizes_never_share_a_digest() {
    assert_disjoint(&[1, 2, 4, 16, 64, 128, 256, 512].map(|block_tokens| base().block_tokens(block_tokens)));
}

/// An engine's key may be any 32 bytes, those of our own digests included.
#[test]
fn an_engine_key_is_never_taken_for_tokens() {
    let key = base().block_tokens(8).key().unwrap();
    let tokens = [3; 64];
    let digests = at_once(&key, &tokens);
    let leaf_input: [u8; 32] = std::array::from_fn(|i| [3, 0, 0, 0][i % 4]);
    let named = [&digests[..], &[key.root()]].concat();
    for engine_key in named.iter().map(|digest| digest.0).chain([leaf_input]) {
        let digest = key.engine_digest(&engine_key);
        assert_ne!(digest.0, engine_key);
        assert!(!named.contains(&digest));
    }
}

#[test]
fn a_namespace_that_could_name_two_things_is_refused() {
    let model = || String::from("model");
    let cases = [
        (Namespace::new("", "1"), NamespaceError::NoModel { revision: "1".into() }),
        (Namespace::new("model", ""), NamespaceError::NoRevision { model: model() }),
        (base().block_tokens(0), NamespaceError::BlockTokens { model: model(), block_tokens: 0 }),
        (
            base().block_tokens(MAX_BLOCK_TOKENS + 1),
            NamespaceError::BlockTokens { model: model(), block_tokens: MAX_BLOCK_TOKENS + 1 },
        ),
        (base().rank(0, 0), NamespaceError::Rank { model: model(), rank: 0, ranks: 0 }),
        (base().rank(2, 2), NamespaceError::Rank { model: model(), rank: 2, ranks: 2 }),
    ];
    for (namespace, error) in cases {
        assert_eq!(namespace.key(), Err(error));
    }
}

#[test]
fn a_namespace_means_the_same_after_a_trip_over_a_wire() {
    let full = base().block_tokens(64).tenant(*b"salt").adapter("a").rank(1, 2).extension("k", "v");
    for namespace in [base(), full] {
        let text = serde_json::to_string(&namespace).unwrap();
        let back: Namespace = serde_json::from_str(&text).unwrap();
        assert_eq!(back, namespace);
        assert_eq!(back.key(), namespace.key());
    }
    let short: Namespace = serde_json::from_str(r#"{"model": "model", "revision": "revision"}"#).unwrap();
    assert_eq!(short, base().block_tokens(DEFAULT_BLOCK_TOKENS));
}

#[test]
fn a_field_of_a_later_version_is_not_dropped_from_the_identity() {
    let text = r#"{"model": "model", "revision": "revision", "quantisation": "fp4"}"#;
    let error = serde_json::from_str::<Namespace>(text).unwrap_err();
    assert!(error.to_string().contains("quantisation"), "{error}");
}

#[test]
fn neither_a_salt_nor_a_prompt_is_ever_printed() {
    let namespace = base().tenant(*b"secret");
    let key = namespace.key().unwrap();
    let mut chain = Chain::new(&key);
    chain.extend(&[115, 101], &mut Vec::new());
    chain.attach(0, b"secret").unwrap();
    let printed = format!("{namespace:?} {key:?} {chain:?}");
    assert!(printed.contains("<6 bytes>") && printed.contains("tail_tokens: 2"), "{printed}");
    assert!(!printed.contains("secret") && !printed.contains("115"), "{printed}");
}

/// A random namespace whose rank is not the last.
fn namespace() -> impl Strategy<Value = Namespace> {
    let text = || "[a-c\\x00]{0,3}";
    let extensions = btree_map("[a-c]{1,2}", text(), 0..3);
    (("[a-c]{1,3}", "[a-c]{1,3}", text()), vec(any::<u8>(), 0..4), (0_u32..4, 0_u32..4), 1_u32..9, extensions).prop_map(
        |((model, revision, adapter), salt, (rank, more_ranks), block_tokens, extensions)| {
            let base = Namespace::new(model, revision).tenant(salt).adapter(adapter).block_tokens(block_tokens);
            let ranked = base.rank(rank, rank + 2 + more_ranks);
            extensions.into_iter().fold(ranked, |namespace, (key, value)| namespace.extension(key, value))
        },
    )
}

/// Every way to change one field of a namespace.
fn changes() -> [fn(&mut Namespace); 9] {
    [
        |changed| changed.model.push('x'),
        |changed| changed.revision.push('x'),
        |changed| changed.tenant.push(0),
        |changed| changed.adapter.push('x'),
        |changed| changed.rank += 1,
        |changed| changed.ranks += 1,
        |changed| changed.block_tokens += 1,
        |changed| drop(changed.extensions.insert("x".into(), String::new())),
        |changed| changed.extensions.values_mut().for_each(|value| value.push('x')),
    ]
}

proptest! {
    /// One field decides over every block of a sequence: not one digest is left, at its own place or at any other, on whatever path.
    #[test]
    fn no_digest_survives_a_change_of_one_field(base in namespace()) {
        let mut namespaces = vec![base.clone()];
        for change in changes() {
            let mut changed = base.clone();
            change(&mut changed);
            if !namespaces.contains(&changed) {
                namespaces.push(changed);
            }
        }
        prop_assert!(namespaces.len() >= 9);
        assert_disjoint(&namespaces);
    }

    /// What the engine attaches to the first block, such as an image's checksum, decides over every block.
    #[test]
    fn no_digest_survives_another_extra_at_the_start(
        base in namespace(),
        extras in btree_set(vec(any::<u8>(), 0..5), 2..5),
        tokens in vec(any::<u32>(), 1..100),
    ) {
        let key = base.key().unwrap();
        let mut seen = HashSet::new();
        let mut blocks = 0;
        for extra in extras.iter().map(Some).chain([None]) {
            let mut chain = Chain::new(&key);
            if let Some(extra) = extra {
                chain.attach(0, extra).unwrap();
            }
            let mut digests = Vec::new();
            chain.extend(&tokens, &mut digests);
            blocks += digests.len();
            seen.extend(digests);
        }
        prop_assert_eq!(seen.len(), blocks);
    }
}
