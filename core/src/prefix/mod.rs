//! Names of blocks: a namespace and a chain of digests over the tokens, to the byte.
//!
//! What is stored under a digest is reused wherever the digest comes up again. Two prefixes may therefore share a name only
//! if they have the same model and weights, adapter, tenant, rank, block size, tokens and images. Names are 256 bits of
//! BLAKE3 and the same in every process, on every platform.
//!
//! # Definition
//!
//! Integers are little endian. `‖` puts bytes after one another. A *field* is its tag (one byte) ‖ length of its value
//! (u64) ‖ value.
//!
//! *Material* of a [`Namespace`]: these fields, in this order, each of them present even if its value is empty:
//!
//! | tag | value |
//! |---|---|
//! | 1 | model, UTF-8 |
//! | 2 | revision, UTF-8 |
//! | 3 | tokens per block, u32 |
//! | 4 | tenant salt |
//! | 5 | adapter, UTF-8 |
//! | 6 | rank, u32 |
//! | 7 | ranks, u32 |
//! | 8, then 9 | key, then value of an extension, UTF-8; one pair of fields for each extension, in byte order of the keys |
//!
//! Every value has its tag and its length before it, so two namespaces that differ have different material.
//!
//! | what | definition |
//! |---|---|
//! | namespace key | BLAKE3 `derive_key`, context [`NAMESPACE_CONTEXT`], of the material |
//! | engine key | BLAKE3 `derive_key`, context [`ENGINE_CONTEXT`], of the material |
//! | leaf of block i | BLAKE3 keyed with the namespace key, of the block's tokens (each u32) ‖ for each of its extras: length (u64) ‖ bytes |
//! | digest of block i | BLAKE3 of (digest of block i-1 ‖ leaf of block i), 64 bytes |
//! | digest before block 0 | the namespace key |
//! | digest for an engine's own key | BLAKE3 keyed with the engine key, of the engine's 32 bytes |
//!
//! The token part of a leaf has the same length in all blocks of a namespace, so tokens and extras are never mistaken for
//! each other. The layout of records is not in here: each group has its own fingerprint in its record keys, so that a
//! changed window layout does not lose history.
//!
//! Engines that pass keys, not tokens, have a chain already. Their keys are taken as they come, in the engine's order: the
//! parent of a key is the key before it ([`NamespaceKey::engine_digest`]).
//!
//! # Example
//!
//! ```
//! use reprise_core::prefix::{Chain, Namespace, digests};
//!
//! let key = Namespace::new("deepseek-v4-flash", "9b1f00d").block_tokens(128).tenant(*b"salt").key()?;
//! let prompt: Vec<u32> = (0..300).collect();
//!
//! let mut all = Vec::new();
//! digests(&key, &prompt, &mut all);
//! assert_eq!(all.len(), 2); // 44 tokens are left over
//!
//! // The same, as the tokens come in.
//! let mut chain = Chain::new(&key);
//! let one_by_one: Vec<_> = prompt.iter().filter_map(|&token| chain.push(token)).collect();
//! assert_eq!(one_by_one, all);
//! # Ok::<(), reprise_core::prefix::NamespaceError>(())
//! ```

mod chain;
mod lanes;
mod namespace;
mod portable;

use alloc::vec::Vec;

pub use chain::{Chain, LateExtra};
pub use namespace::{
    DEFAULT_BLOCK_TOKENS, ENGINE_CONTEXT, MAX_BLOCK_TOKENS, NAMESPACE_CONTEXT, Namespace, NamespaceError, NamespaceKey,
};

use crate::Digest;

/// Appends the digest of every complete block of `tokens`, a sequence from its start and without extras, to `out`.
///
/// Tokens after the last complete block have no digest yet; [`Chain`] keeps them for a sequence that goes on.
pub fn digests(key: &NamespaceKey, tokens: &[u32], out: &mut Vec<Digest>) {
    Chain::new(key).extend(tokens, out);
}

/// Writes the tokens as little-endian u32 to the first bytes of `bytes`, which are at least four a token. On a little-endian
/// machine this compiles to a copy.
fn write_tokens(tokens: &[u32], bytes: &mut [u8]) {
    let (words, _) = bytes.as_chunks_mut::<4>();
    debug_assert!(words.len() >= tokens.len());
    for (word, token) in words.iter_mut().zip(tokens) {
        *word = token.to_le_bytes();
    }
}
