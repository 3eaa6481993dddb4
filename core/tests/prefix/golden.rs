//! A digest that differs from process to process, from machine to machine or from release to release finds nothing again
//! (LMCache#2979). These were made by another implementation, see vectors.py.

use reprise_core::prefix::{Chain, Namespace};

use crate::vectors::{BLOCKS, VECTORS, Vector};

fn namespace(vector: &Vector) -> Namespace {
    let plain = Namespace::new("deepseek-v4-flash", "9b1f00d")
        .block_tokens(vector.block_tokens)
        .tenant(vector.tenant)
        .adapter(vector.adapter)
        .rank(vector.rank.0, vector.rank.1);
    vector.extensions.iter().fold(plain, |namespace, &(key, value)| namespace.extension(key, value))
}

fn tokens(vector: &Vector) -> Vec<u32> {
    (0..BLOCKS * vector.block_tokens).map(|j| j.wrapping_mul(2_654_435_761) >> vector.shift).collect()
}

#[test]
fn a_digest_never_depends_on_the_process_the_machine_or_the_call() {
    for vector in VECTORS {
        let key = namespace(vector).key().unwrap();
        assert_eq!(key.root().to_string(), vector.root, "{}", vector.name);
        let tokens = tokens(vector);
        for piece in [1, 3, 64, 100, 129, 1000, tokens.len()] {
            let mut chain = Chain::new(&key);
            for &(position, extra) in vector.extras {
                chain.attach(position, extra.as_bytes()).unwrap();
            }
            let mut digests = Vec::new();
            tokens.chunks(piece).for_each(|piece| chain.extend(piece, &mut digests));
            assert_eq!(digests.len(), BLOCKS as usize);
            for &(block, digest) in vector.digests {
                assert_eq!(digests[block].to_string(), digest, "{}: block {block}, pieces of {piece}", vector.name);
            }
        }
    }
}

#[test]
fn a_digest_for_an_engine_key_never_depends_on_the_process() {
    let engine_key = std::array::from_fn(|i| i as u8);
    for vector in VECTORS {
        let key = namespace(vector).key().unwrap();
        assert_eq!(key.engine_digest(&engine_key).to_string(), vector.engine, "{}", vector.name);
    }
}
