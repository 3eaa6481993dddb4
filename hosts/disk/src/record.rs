//! What names a record, and what the store knows about it.

use reprise_core::Digest;

use crate::Buffer;

/// The name of a record inside its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The namespace's index, from [`Store::namespace`](crate::Store::namespace).
    pub namespace: u16,
    /// The digest of the block at whose end the record was taken.
    pub digest: Digest,
    /// The token position that the record belongs to.
    pub position: u64,
}

/// One read of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Get {
    /// The record's group.
    pub group: u8,
    /// Where the record lies.
    pub slot: u32,
    /// The record's name.
    pub key: Key,
}

/// One put of a batch.
#[derive(Debug)]
pub struct Put {
    /// The record's group.
    pub group: u8,
    /// Where the record is to lie.
    pub slot: u32,
    /// The record's name.
    pub key: Key,
    /// The digest of the block before.
    pub parent: Digest,
    /// When the record was last used, in the caller's time.
    pub last_use: u64,
    /// The payload, at its start.
    pub buffer: Buffer,
}

/// A put without its payload.
#[derive(Clone, Copy)]
pub(crate) struct Head {
    pub group: u8,
    pub slot: u32,
    pub key: Key,
    pub parent: Digest,
    pub last_use: u64,
}

/// What the catalogue keeps about a namespace: enough to find its records again by model, revision or tenant, and
/// nothing secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceRecord {
    /// 64 bits that stand for the whole namespace; every checksum of its records covers them.
    pub check: u64,
    /// The model's name.
    pub model: String,
    /// The model's revision.
    pub revision: String,
    /// A hash of the tenant's salt; the salt itself is never written.
    pub salt_hash: Digest,
    /// The adapter's name, or empty.
    pub adapter: String,
    /// The rank whose rows the records hold.
    pub rank: u32,
    /// How many ranks there are.
    pub ranks: u32,
    /// Tokens of a block.
    pub block_tokens: u32,
    /// What else makes the namespace different, in a form that the caller chooses.
    pub extensions: String,
}

/// A record found when the store was opened.
///
/// Nothing was read but its table entry: whether its payload is there in full shows when it is read. If a crash undid
/// the freeing of a slot, the same key can come in two slots; either is good, and the one with the higher sequence is
/// the later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Where it lies.
    pub slot: u32,
    /// Its namespace's index.
    pub namespace: u16,
    /// Its digest.
    pub digest: Digest,
    /// The digest of the block before.
    pub parent: Digest,
    /// Its token position.
    pub position: u64,
    /// When it was last used, in the caller's time; may be older than what was last reported, and is advisory.
    pub last_use: u64,
    /// Counts the puts of the store: higher is later.
    pub sequence: u64,
}
