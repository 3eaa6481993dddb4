//! Why a cache does not open, and why a request is refused.

use std::path::PathBuf;

use reprise_core::{layout::LayoutError, prefix::NamespaceError};
use thiserror::Error;

use crate::policies::PolicyError;

/// Why a cache does not open.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The model has no layout with the block size.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// Two groups of one role.
    #[error(
        "model \"{model}\" has the groups \"{first}\" and \"{second}\" of the same role; this cache keeps one group of blocks, one of \
         checkpoints and one of drafts: merge them"
    )]
    SeveralGroups {
        /// The model.
        model: String,
        /// One group.
        first: String,
        /// The other.
        second: String,
    },
    /// No group of compressed types.
    #[error("model \"{model}\" has no group of compressed types, so there is nothing to keep by block")]
    NoHistory {
        /// The model.
        model: String,
    },
    /// A quota for more records than can be kept track of.
    #[error(
        "the quota of group \"{group}\" ({quota_bytes} bytes) is too large: at most {most_bytes} bytes can be kept track of"
    )]
    QuotaTooLarge {
        /// The group.
        group: String,
        /// The quota.
        quota_bytes: u64,
        /// The most it may be.
        most_bytes: u64,
    },
    /// A budget that would be divided while the cache serves, and a store.
    #[error(
        "a store in {}, and one budget to be divided while the cache serves: quotas of a store are fixed while it is open. Give both          quotas: `reprise compare` and `reprise advise` find the split, and so does a replay without a store",
        directory.display()
    )]
    BudgetOfStore {
        /// Where the store was to be.
        directory: PathBuf,
    },
    /// A policy does not load.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The store does not open.
    #[error("opening the store in {}", directory.display())]
    Store {
        /// Where.
        directory: PathBuf,
        /// Why.
        source: reprise_disk::StoreError,
    },
    /// A thread could not be started.
    #[error("starting the {thread} thread: too many threads or too little memory")]
    Thread {
        /// What for.
        thread: &'static str,
        /// Why.
        source: std::io::Error,
    },
}

/// Why a request is refused.
#[derive(Debug, Error)]
pub enum RequestError {
    /// The namespace makes no sense.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The namespace's block size is not the cache's.
    #[error("the namespace has blocks of {namespace_tokens} tokens, the cache of {cache_tokens}: they must be equal")]
    BlockTokens {
        /// The namespace's.
        namespace_tokens: u32,
        /// The cache's.
        cache_tokens: u32,
    },
    /// The store's catalogue could not take the namespace.
    #[error("entering the namespace into the store's catalogue")]
    Catalogue(#[source] reprise_disk::StoreError),
    /// More namespaces than records can name.
    #[error("this cache knows 65,535 namespaces already: open another one")]
    TooManyNamespaces,
    /// Longer than positions can count.
    #[error("a sequence of {tokens} tokens is longer than 2^32 - 1")]
    TooLong {
        /// Its length.
        tokens: u64,
    },
    /// A capture at a position that the plan does not list.
    #[error("position {position_tokens} is not one of the captures of the sequence's plan: {planned:?}")]
    NotPlanned {
        /// The position.
        position_tokens: u32,
        /// What is planned.
        planned: Vec<u32>,
    },
    /// Something that needs a plan was called before `plan`.
    #[error("the sequence has no plan yet: call `plan` first")]
    NoPlan,
}
