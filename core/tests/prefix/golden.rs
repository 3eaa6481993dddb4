//! A digest that differs from process to process, from machine to machine or from release to release finds nothing again
//! (LMCache#2979). These were made by another implementation, see tests/portable/vectors.py.

use reprise_core::prefix::{Chain, Namespace};
use serde::Deserialize;

/// What every host of the core must give.
const VECTORS: &str = include_str!("../../../tests/portable/vectors.json");

#[derive(Deserialize)]
struct Vectors {
    /// Of each sequence.
    blocks: u32,
    digests: Vec<Vector>,
}

/// The digests of one sequence in one namespace.
#[derive(Deserialize)]
struct Vector {
    name: String,
    namespace: Namespace,
    /// Token j is (j * 2654435761 mod 2^32) >> shift.
    shift: u32,
    /// Position in tokens, and what is attached there, in order of the calls.
    extras: Vec<(u64, String)>,
    root: String,
    /// Index of a block and its digest.
    digests: Vec<(usize, String)>,
    /// The digest for the engine's key 00 01 … 1f.
    engine: String,
}

fn vectors() -> Vectors {
    serde_json::from_str(VECTORS).expect("what vectors.py wrote")
}

#[test]
fn a_digest_never_depends_on_the_process_the_machine_or_the_call() {
    let Vectors { blocks, digests } = vectors();
    assert!(!digests.is_empty());
    for vector in digests {
        let key = vector.namespace.key().unwrap();
        assert_eq!(key.root().to_string(), vector.root, "{}", vector.name);
        let tokens: Vec<u32> = (0..blocks * vector.namespace.block_tokens)
            .map(|j| j.wrapping_mul(2_654_435_761) >> vector.shift)
            .collect();
        for piece in [1, 3, 64, 100, 129, 1000, tokens.len()] {
            let mut chain = Chain::new(&key);
            for (position, extra) in &vector.extras {
                chain.attach(*position, extra.as_bytes()).unwrap();
            }
            let mut named = Vec::new();
            tokens.chunks(piece).for_each(|piece| chain.extend(piece, &mut named));
            assert_eq!(named.len(), blocks as usize);
            for (block, digest) in &vector.digests {
                assert_eq!(named[*block].to_string(), *digest, "{}: block {block}, pieces of {piece}", vector.name);
            }
        }
    }
}

#[test]
fn a_digest_for_an_engine_key_never_depends_on_the_process() {
    let engine_key = std::array::from_fn(|i| i as u8);
    for vector in vectors().digests {
        let key = vector.namespace.key().unwrap();
        assert_eq!(key.engine_digest(&engine_key).to_string(), vector.engine, "{}", vector.name);
    }
}
