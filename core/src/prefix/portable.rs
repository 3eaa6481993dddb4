//! One block at a time, with the public interface of `blake3`: for a block that completes token by token, for blocks with
//! extras, and for the block sizes that [`super::lanes`] does not take.

use super::NamespaceKey;
use crate::Digest;

/// The leaf of a block: its tokens as bytes, and its extras in order.
pub(super) fn leaf<'a>(key: &NamespaceKey, tokens: &[u8], mut extras: impl Iterator<Item = &'a [u8]>) -> [u8; 32] {
    let Some(first) = extras.next() else {
        return blake3::keyed_hash(&key.root().0, tokens).into();
    };
    let mut hasher = blake3::Hasher::new_keyed(&key.root().0);
    hasher.update(tokens);
    for extra in core::iter::once(first).chain(extras) {
        hasher.update(&(extra.len() as u64).to_le_bytes()).update(extra);
    }
    hasher.finalize().into()
}

/// The digest of a block, from that of the block before it and its leaf.
pub(super) fn node(previous: &Digest, leaf: &[u8; 32]) -> Digest {
    let mut pair = [0; 64];
    pair[..32].copy_from_slice(&previous.0);
    pair[32..].copy_from_slice(leaf);
    Digest(blake3::hash(&pair).into())
}
