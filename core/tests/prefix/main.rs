//! Prefix digests: the golden vectors, the laws, what isolates namespaces, and what is not allocated.

mod allocation;
mod golden;
mod isolation;
mod laws;

use reprise_core::{
    Digest,
    prefix::{Chain, NamespaceKey},
};

/// The digests of a sequence, its tokens pushed one at a time.
fn one_by_one(key: &NamespaceKey, tokens: &[u32]) -> Vec<Digest> {
    let mut chain = Chain::new(key);
    tokens.iter().filter_map(|&token| chain.push(token)).collect()
}

/// The digests of a sequence, all at once.
fn at_once(key: &NamespaceKey, tokens: &[u32]) -> Vec<Digest> {
    let mut out = Vec::new();
    reprise_core::prefix::digests(key, tokens, &mut out);
    out
}
