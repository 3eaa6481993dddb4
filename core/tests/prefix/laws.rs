//! Laws of the chain, against the definition written out with the public interface of `blake3`.

use proptest::{collection::vec, prelude::*, sample::Index};
use reprise_core::{
    Digest,
    prefix::{Chain, LateExtra, Namespace, NamespaceKey},
};

fn key(block_tokens: u32) -> NamespaceKey {
    Namespace::new("model", "revision").block_tokens(block_tokens).key().unwrap()
}

/// The definition: no batch, no tail, no lanes.
fn reference(key: &NamespaceKey, tokens: &[u32], extras: &[(u64, Vec<u8>)]) -> Vec<Digest> {
    let block_tokens = key.block_tokens() as usize;
    let mut extras = extras.to_vec();
    extras.sort_by_key(|(position, _)| *position);
    let mut digest = key.root();
    let mut digests = Vec::new();
    for (i, block) in tokens.chunks_exact(block_tokens).enumerate() {
        let mut input: Vec<u8> = block.iter().flat_map(|token| token.to_le_bytes()).collect();
        for (_, extra) in extras.iter().filter(|(position, _)| *position as usize / block_tokens == i) {
            input.extend((extra.len() as u64).to_le_bytes());
            input.extend(extra);
        }
        let leaf = blake3::keyed_hash(&key.root().0, &input);
        digest = Digest(blake3::hash(&[digest.0, *leaf.as_bytes()].concat()).into());
        digests.push(digest);
    }
    digests
}

/// Block sizes that take the lanes, and others.
fn block_tokens() -> impl Strategy<Value = u32> {
    prop_oneof![1_u32..70, prop::sample::select(vec![16, 32, 64, 128, 256, 300, 512])]
}

/// A block size and the tokens of up to 40 blocks.
fn sequence() -> impl Strategy<Value = (u32, Vec<u32>)> {
    block_tokens().prop_flat_map(|block_tokens| (Just(block_tokens), vec(any::<u32>(), 0..=40 * block_tokens as usize)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_split_into_calls_changes_a_digest((block_tokens, tokens) in sequence(), cuts in vec(any::<Index>(), 0..6)) {
        let key = key(block_tokens);
        let expected = reference(&key, &tokens, &[]);
        prop_assert_eq!(&crate::at_once(&key, &tokens), &expected);
        prop_assert_eq!(&crate::one_by_one(&key, &tokens), &expected);

        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(tokens.len() + 1)).collect();
        cuts.extend([0, tokens.len()]);
        cuts.sort_unstable();
        let mut chain = Chain::new(&key);
        let mut digests = Vec::new();
        for cut in cuts.windows(2) {
            chain.extend(&tokens[cut[0]..cut[1]], &mut digests);
            prop_assert_eq!(chain.tokens(), cut[1] as u64);
            prop_assert_eq!(chain.blocks() as usize, digests.len());
            prop_assert_eq!(chain.digest(), digests.last().copied().unwrap_or(key.root()));
        }
        prop_assert_eq!(digests, expected);
    }

    #[test]
    fn a_resumed_chain_never_leaves_the_path((block_tokens, tokens) in sequence(), at in any::<Index>()) {
        let key = key(block_tokens);
        let expected = reference(&key, &tokens, &[]);
        let blocks = at.index(expected.len() + 1);
        let from = if blocks == 0 { key.root() } else { expected[blocks - 1] };
        let mut chain = Chain::resume(&key, from, blocks as u32);
        let mut digests = expected[..blocks].to_vec();
        chain.extend(&tokens[blocks * block_tokens as usize..], &mut digests);
        prop_assert_eq!(digests, expected);
        prop_assert_eq!(chain.tokens(), tokens.len() as u64);
    }

    #[test]
    fn an_extra_changes_no_block_before_its_own_and_all_from_there(
        (block_tokens, tokens) in sequence(),
        at in any::<Index>(),
        extra in vec(any::<u8>(), 0..1500),
    ) {
        prop_assume!(!tokens.is_empty());
        let key = key(block_tokens);
        let position = at.index(tokens.len());
        let mut chain = Chain::new(&key);
        chain.attach(position as u64, &extra).unwrap();
        let mut digests = Vec::new();
        chain.extend(&tokens, &mut digests);
        let plain = reference(&key, &tokens, &[]);
        let block = (position / block_tokens as usize).min(plain.len());
        prop_assert_eq!(&digests[..block], &plain[..block]);
        prop_assert!(digests[block..].iter().zip(&plain[block..]).all(|(with, without)| with != without));
        prop_assert_eq!(digests, reference(&key, &tokens, &[(position as u64, extra)]));
    }

    #[test]
    fn neither_splits_nor_the_moment_of_attaching_change_digests_with_extras(
        (block_tokens, tokens) in sequence(),
        extras in vec((any::<Index>(), vec(any::<u8>(), 0..40)), 0..5),
        piece in 1_usize..300,
    ) {
        let key = key(block_tokens);
        let extras: Vec<(u64, Vec<u8>)> =
            extras.into_iter().map(|(at, bytes)| (at.index(tokens.len() + 1) as u64, bytes)).collect();
        let expected = reference(&key, &tokens, &extras);

        // All before the first token.
        let mut chain = Chain::new(&key);
        extras.iter().for_each(|(position, bytes)| chain.attach(*position, bytes).unwrap());
        let mut digests = Vec::new();
        tokens.chunks(piece).for_each(|piece| chain.extend(piece, &mut digests));
        prop_assert_eq!(&digests, &expected);

        // Each just before its block is completed.
        let mut chain = Chain::new(&key);
        let mut digests = Vec::new();
        for (j, &token) in tokens.iter().enumerate() {
            if (j + 1) % block_tokens as usize == 0 {
                let block = j / block_tokens as usize;
                for (position, bytes) in extras.iter().filter(|(at, _)| *at as usize / block_tokens as usize == block) {
                    chain.attach(*position, bytes).unwrap();
                }
            }
            digests.extend(chain.push(token));
        }
        prop_assert_eq!(&digests, &expected);
    }
}

#[test]
fn an_extra_for_a_block_already_named_is_refused() {
    let key = key(4);
    let mut chain = Chain::new(&key);
    chain.extend(&[1, 2, 3, 4, 5], &mut Vec::new());
    assert_eq!(chain.attach(3, b"late"), Err(LateExtra { position: 3, complete_tokens: 4 }));
    assert_eq!(chain.attach(4, b"in time"), Ok(()));
}

#[test]
fn two_extras_never_pass_for_one() {
    let key = key(4);
    let digest = |extras: &[&[u8]]| {
        let mut chain = Chain::new(&key);
        extras.iter().for_each(|extra| chain.attach(0, extra).unwrap());
        [1, 2, 3, 4].map(|token| chain.push(token))[3].unwrap()
    };
    let digests = [
        digest(&[]),
        digest(&[b""]),
        digest(&[b"", b""]),
        digest(&[b"ab"]),
        digest(&[b"a", b"b"]),
        digest(&[b"b", b"a"]),
        digest(&[b"a\x01\0\0\0\0\0\0\0b"]),
    ];
    let distinct: std::collections::HashSet<_> = digests.iter().collect();
    assert_eq!(distinct.len(), digests.len());
}

#[test]
fn a_fork_never_disturbs_the_sequence_it_came_from() {
    let key = key(4);
    let mut chain = Chain::new(&key);
    chain.extend(&[1, 2, 3], &mut Vec::new());
    let mut fork = chain.clone();
    assert_eq!(fork.push(9), Some(crate::at_once(&key, &[1, 2, 3, 9])[0]));
    assert_eq!(chain.push(4), Some(crate::at_once(&key, &[1, 2, 3, 4])[0]));
}

#[test]
fn a_chain_is_never_bound_to_a_thread() {
    fn assert_send<T: Send + Sync + Clone + 'static>() {}
    assert_send::<Chain>();
    assert_send::<NamespaceKey>();
    assert_send::<Namespace>();
}
