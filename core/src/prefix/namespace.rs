//! A namespace: all that must be equal, besides the tokens, for stored bytes to be reusable; and the keys derived from it.

use alloc::{collections::BTreeMap, string::String, vec::Vec};
use core::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Digest;

/// Context from which the namespace key is derived. Changes with the definition of the digests.
pub const NAMESPACE_CONTEXT: &str = "reprise 2026-11 namespace v1";

/// Context from which the key for an engine's own keys is derived.
pub const ENGINE_CONTEXT: &str = "reprise 2026-11 engine keys v1";

/// Tokens per block unless a namespace says otherwise: the lcm of the compression ratios (4 and 128) of DeepSeek-V4.
pub const DEFAULT_BLOCK_TOKENS: u32 = 128;

/// Context of [`Namespace::tenant_digest`].
const TENANT_CONTEXT: &str = "reprise 2026-11 tenant v1";

/// Most tokens a block may have.
pub const MAX_BLOCK_TOKENS: u32 = 1 << 16;

/// What a cache entry belongs to: a model with its weights, a tenant, an adapter, a rank.
///
/// A plain value, made in builder style, checked by [`Namespace::key`]. `Debug` does not show the tenant salt. A serialised
/// namespace with a field that this version does not know is refused: it names another identity than the one it would be
/// taken for.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Namespace {
    /// Name of the model.
    pub model: String,
    /// What tells these weights from others of the same name: a commit, a checksum.
    pub revision: String,
    /// Tokens per block.
    #[serde(default = "default_block_tokens")]
    pub block_tokens: u32,
    /// Secret of a tenant; empty for a cache that all share.
    #[serde(default)]
    pub tenant: Vec<u8>,
    /// Adapter, named together with its revision, for instance `sql@3f2a`; empty for the base model.
    #[serde(default)]
    pub adapter: String,
    /// Index of the tensor-parallel rank that holds these bytes. 0 of 1 where all ranks hold the same.
    #[serde(default)]
    pub rank: u32,
    /// Number of ranks that the bytes are split over.
    #[serde(default = "one_rank")]
    pub ranks: u32,
    /// Whatever else changes the bytes of an entry, such as `rope-scaling`.
    #[serde(default)]
    pub extensions: BTreeMap<String, String>,
}

fn default_block_tokens() -> u32 {
    DEFAULT_BLOCK_TOKENS
}

fn one_rank() -> u32 {
    1
}

/// Why a namespace cannot name anything.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NamespaceError {
    /// The model has no name.
    #[error("a namespace of revision `{revision}` names no model: give the model's name")]
    NoModel {
        /// The revision given.
        revision: String,
    },
    /// Without a revision, new weights under the same name would be given the old weights' cache.
    #[error("the namespace of model `{model}` has no revision: give the commit or checksum of its weights")]
    NoRevision {
        /// The model given.
        model: String,
    },
    /// Block size out of range.
    #[error("the namespace of model `{model}` has blocks of {block_tokens} tokens: give 1 to {MAX_BLOCK_TOKENS}")]
    BlockTokens {
        /// The model given.
        model: String,
        /// The block size given, in tokens.
        block_tokens: u32,
    },
    /// No such rank.
    #[error(
        "the namespace of model `{model}` is for rank {rank} of {ranks}: ranks count from 0 and there is at least one"
    )]
    Rank {
        /// The model given.
        model: String,
        /// The rank given.
        rank: u32,
        /// The number of ranks given.
        ranks: u32,
    },
}

impl Namespace {
    /// The namespace of a model and its weights, shared by all, with blocks of [`DEFAULT_BLOCK_TOKENS`], for rank 0 of 1.
    pub fn new(model: impl Into<String>, revision: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            revision: revision.into(),
            block_tokens: DEFAULT_BLOCK_TOKENS,
            tenant: Vec::new(),
            adapter: String::new(),
            rank: 0,
            ranks: 1,
            extensions: BTreeMap::new(),
        }
    }

    /// The same with blocks of `block_tokens` tokens.
    #[must_use]
    pub fn block_tokens(mut self, block_tokens: u32) -> Self {
        self.block_tokens = block_tokens;
        self
    }

    /// The same for the tenant with this secret salt.
    #[must_use]
    pub fn tenant(mut self, salt: impl Into<Vec<u8>>) -> Self {
        self.tenant = salt.into();
        self
    }

    /// The same for an adapter, named together with its revision: other weights need another name here.
    #[must_use]
    pub fn adapter(mut self, adapter: impl Into<String>) -> Self {
        self.adapter = adapter.into();
        self
    }

    /// The same for what rank `rank` of `ranks` holds.
    #[must_use]
    pub fn rank(mut self, rank: u32, ranks: u32) -> Self {
        self.rank = rank;
        self.ranks = ranks;
        self
    }

    /// The same with one more distinction; a key given twice keeps the last value.
    #[must_use]
    pub fn extension(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.extensions.insert(key.into(), value.into());
        self
    }

    /// A name for the tenant that can be written down: it groups what belongs to one salt without giving the salt away. A salt that can
    /// be guessed can be confirmed with it.
    pub fn tenant_digest(&self) -> Digest {
        Digest(blake3::derive_key(TENANT_CONTEXT, &self.tenant))
    }

    /// Checks the namespace and derives the keys that its digests start from.
    ///
    /// # Errors
    ///
    /// No model, no revision, a block size out of range, or a rank that does not exist.
    pub fn key(&self) -> Result<NamespaceKey, NamespaceError> {
        if self.model.is_empty() {
            return Err(NamespaceError::NoModel { revision: self.revision.clone() });
        }
        let model = || self.model.clone();
        if self.revision.is_empty() {
            return Err(NamespaceError::NoRevision { model: model() });
        }
        if !(1..=MAX_BLOCK_TOKENS).contains(&self.block_tokens) {
            return Err(NamespaceError::BlockTokens { model: model(), block_tokens: self.block_tokens });
        }
        if self.rank >= self.ranks {
            return Err(NamespaceError::Rank { model: model(), rank: self.rank, ranks: self.ranks });
        }
        Ok(NamespaceKey {
            root: Digest(self.derive(NAMESPACE_CONTEXT)),
            engine: self.derive(ENGINE_CONTEXT),
            block_tokens: self.block_tokens,
        })
    }

    /// The key derived in `context` from the material that the module's documentation defines.
    fn derive(&self, context: &str) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key(context);
        let mut field = |tag: u8, value: &[u8]| {
            hasher.update(&[tag]).update(&(value.len() as u64).to_le_bytes()).update(value);
        };
        field(1, self.model.as_bytes());
        field(2, self.revision.as_bytes());
        field(3, &self.block_tokens.to_le_bytes());
        field(4, &self.tenant);
        field(5, self.adapter.as_bytes());
        field(6, &self.rank.to_le_bytes());
        field(7, &self.ranks.to_le_bytes());
        for (key, value) in &self.extensions {
            field(8, key.as_bytes());
            field(9, value.as_bytes());
        }
        hasher.finalize().into()
    }
}

impl fmt::Debug for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Namespace")
            .field("model", &self.model)
            .field("revision", &self.revision)
            .field("block_tokens", &self.block_tokens)
            .field("tenant", &format_args!("<{} bytes>", self.tenant.len()))
            .field("adapter", &self.adapter)
            .field("rank", &self.rank)
            .field("ranks", &self.ranks)
            .field("extensions", &self.extensions)
            .finish()
    }
}

/// The keys of a valid [`Namespace`]: 68 bytes, copied freely.
///
/// As secret as the tenant salt: who holds it can test guesses of a tenant's prompts against digests. `Debug` shows the
/// first bytes only.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct NamespaceKey {
    root: Digest,
    engine: [u8; 32],
    block_tokens: u32,
}

impl NamespaceKey {
    /// The namespace key: the digest of the prefix without tokens, parent of every first block. Differs between any two
    /// namespaces.
    #[inline]
    pub const fn root(&self) -> Digest {
        self.root
    }

    /// Tokens per block, from 1 to [`MAX_BLOCK_TOKENS`].
    #[inline]
    pub const fn block_tokens(&self) -> u32 {
        self.block_tokens
    }

    /// The digest that stands for a key of the engine's own chain. Such a key must cover the whole prefix up to its block's
    /// end, extras included, as a chained 256-bit hash does; it need not cover the namespace.
    pub fn engine_digest(&self, key: &[u8; 32]) -> Digest {
        Digest(blake3::keyed_hash(&self.engine, key).into())
    }

    /// Bytes of a block's tokens.
    #[inline]
    pub(super) const fn block_bytes(&self) -> usize {
        self.block_tokens as usize * size_of::<u32>()
    }
}

impl fmt::Debug for NamespaceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamespaceKey")
            .field("root", &self.root)
            .field("block_tokens", &self.block_tokens)
            .finish_non_exhaustive()
    }
}
