//! Leaves of many blocks at once: the digests of [`super::portable`], several times faster.
//!
//! The leaves of a sequence do not depend on one another, so a vector unit hashes 4 to 16 of them together, one in each
//! lane. `blake3` does that for the chunks of one long input; its hidden `platform` interface does it for many short ones.
//! Hidden means that any release may change it: the workspace pins the exact version, this is the only module that uses it,
//! and the tests hold it to the portable path on every instruction set at hand. Without vectors (as on plain wasm32)
//! `platform` is a loop over its portable code, and all that is saved is the overhead of the public interface.

use alloc::vec::Vec;

use blake3::{
    IncrementCounter,
    platform::{Platform, le_bytes_from_words_32, words_from_le_bytes_32},
};

use super::{NamespaceKey, write_tokens};
use crate::Digest;

/// Blocks hashed together: what the widest vectors (AVX-512) take. Narrower ones take them in several steps.
const LANES: usize = 16;

/// Flags of the compression function and initial value: BLAKE3 specification, tables 1 and 3.
const CHUNK_START: u8 = 1 << 0;
const CHUNK_END: u8 = 1 << 1;
const ROOT: u8 = 1 << 3;
const KEYED_HASH: u8 = 1 << 4;
const IV: [u32; 8] =
    [0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A, 0x510E_527F, 0x9B05_688C, 0x1F83_D9AB, 0x5BE0_CD19];

/// Appends the digests of whole blocks without extras that follow on a digest; returns the last one.
pub(super) type Extend = fn(Platform, &NamespaceKey, Digest, &[u32], &mut Vec<Digest>) -> Digest;

/// How to hash blocks of `block_bytes` in lanes. None if they do not fit: a lane holds one BLAKE3 chunk (at most 1,024
/// bytes) in whole 64-byte units, its length known at compile time.
pub(super) fn for_blocks_of(block_bytes: usize) -> Option<Extend> {
    match block_bytes {
        64 => Some(extend::<64>),
        128 => Some(extend::<128>),
        256 => Some(extend::<256>),
        512 => Some(extend::<512>),
        1024 => Some(extend::<1024>),
        _ => None,
    }
}

fn extend<const BLOCK_BYTES: usize>(
    platform: Platform,
    key: &NamespaceKey,
    previous: Digest,
    tokens: &[u32],
    out: &mut Vec<Digest>,
) -> Digest {
    let block_tokens = const { BLOCK_BYTES / size_of::<u32>() };
    debug_assert!(key.block_bytes() == BLOCK_BYTES && tokens.len().is_multiple_of(block_tokens));
    let leaf_key = words_from_le_bytes_32(&key.root().0);
    let mut blocks = [[0; BLOCK_BYTES]; LANES];
    let mut leaves = [0; 32 * LANES];
    let mut digest = previous;
    for batch in tokens.chunks(LANES * block_tokens) {
        let count = batch.len() / block_tokens;
        write_tokens(batch, blocks.as_flattened_mut());
        platform.hash_many(
            &blocks.each_ref()[..count],
            &leaf_key,
            0,
            IncrementCounter::No,
            KEYED_HASH,
            CHUNK_START,
            CHUNK_END | ROOT,
            &mut leaves,
        );
        for leaf in &leaves.as_chunks::<32>().0[..count] {
            digest = node(platform, &digest, leaf);
            out.push(digest);
        }
    }
    digest
}

/// As [`super::portable::node`]: 64 bytes are one block of one chunk, a single compression.
#[inline]
fn node(platform: Platform, previous: &Digest, leaf: &[u8; 32]) -> Digest {
    let mut pair = [0; 64];
    pair[..32].copy_from_slice(&previous.0);
    pair[32..].copy_from_slice(leaf);
    let mut words = IV;
    platform.compress_in_place(&mut words, &pair, 64, 0, CHUNK_START | CHUNK_END | ROOT);
    Digest(le_bytes_from_words_32(&words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prefix::{Namespace, portable};

    /// Every instruction set that this machine has; the portable code is what wasm32 runs.
    fn platforms() -> Vec<Platform> {
        let mut platforms = alloc::vec![Platform::portable(), Platform::detect()];
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        platforms.extend([Platform::sse2(), Platform::sse41(), Platform::avx2()].into_iter().flatten());
        platforms
    }

    #[test]
    fn no_instruction_set_gives_other_digests_than_the_portable_path() {
        for block_tokens in [16, 32, 64, 128, 256] {
            let key = Namespace::new("model", "revision").block_tokens(block_tokens).key().unwrap();
            let extend = for_blocks_of(key.block_bytes()).unwrap();
            for blocks in [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 50] {
                let tokens: Vec<u32> = (0..blocks * block_tokens).map(|j| j.wrapping_mul(0x9E37_79B1)).collect();
                let mut bytes = alloc::vec![0; tokens.len() * 4];
                write_tokens(&tokens, &mut bytes);
                let start = Digest([7; 32]);
                let expected: Vec<Digest> = bytes
                    .chunks(key.block_bytes())
                    .scan(start, |digest, block| {
                        *digest = portable::node(digest, &portable::leaf(&key, block, core::iter::empty()));
                        Some(*digest)
                    })
                    .collect();
                for platform in platforms() {
                    let mut out = Vec::new();
                    let last = extend(platform, &key, start, &tokens, &mut out);
                    assert_eq!(out, expected, "{platform:?}, {blocks} blocks of {block_tokens} tokens");
                    assert_eq!(Some(&last), expected.last());
                }
            }
        }
    }
}
