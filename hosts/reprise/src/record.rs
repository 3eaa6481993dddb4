//! Records as an engine sees them: what it fills when they are saved and takes when they are restored.

use reprise_core::Digest;
use serde::{Deserialize, Serialize};

use crate::group::Group;

/// Names one record of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Record {
    /// What it holds.
    pub group: Group,
    /// Index of the block, from 0: of the block itself for `history`, of the block that ends at the checkpoint otherwise.
    pub block: u32,
    /// Tokens from the start of the sequence to the end of the block.
    pub position_tokens: u32,
    /// Name of the prefix that ends there.
    pub digest: Digest,
}

/// Where payloads come from when records are saved. Called on the thread that saves, before the call returns.
pub trait BlockSource {
    /// Writes the whole payload of `record`; `bytes` has the size and order that the layout of its group says, and holds anything
    /// before.
    fn fill(&mut self, record: &Record, bytes: &mut [u8]);
}

/// Where payloads go when records are restored. Called on the cache's reading thread.
pub trait BlockSink: Send + 'static {
    /// Takes the whole payload of `record`, already verified. Blocks come in order from the start of the sequence; the checkpoint comes
    /// last. What was accepted counts only as far as [`crate::Restored`] says in the end.
    fn accept(&mut self, record: &Record, bytes: &[u8]);
}
