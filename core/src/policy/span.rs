//! The span of tokens a checkpoint policy decides about.

/// Tokens about to be computed: from what a plan adopted to the last complete block of the prompt.
///
/// Positions are tokens from the start of the sequence. A checkpoint at `p` holds the window that ends before token `p`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Logical time.
    pub now: u64,
    /// Tokens adopted: the span starts here. A multiple of the block.
    pub start: u32,
    /// End of the last complete block.
    pub end: u32,
    /// Tokens of the prompt, the incomplete tail included.
    pub prompt_tokens: u32,
    /// Tokens found in the cache, at least `start`.
    pub matched: u32,
    /// `matched`, if the request leaves a cached path in its middle there; 0 otherwise.
    pub junction: u32,
    /// Tokens a block spans.
    pub block_tokens: u32,
}

impl Span {
    /// Whether a checkpoint at `position` may be asked for: what hosts check of every answer.
    pub const fn allows(&self, position: u32) -> bool {
        position != 0
            && position.is_multiple_of(self.block_tokens)
            && position <= self.end
            && (position > self.start || position == self.junction)
    }
}

/// Blocks before a position whose keys a checkpoint policy is told at most.
pub const TOLD_KEYS: usize = 16;

/// What checkpoints cost and replace in this cache: told once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointInfo {
    /// How many checkpoints fit their quota.
    pub capacity_checkpoints: u64,
    /// Bytes of one checkpoint.
    pub checkpoint_bytes: u64,
    /// Bytes of one block.
    pub block_bytes: u64,
    /// Tokens of a replay that needs no checkpoint; [`u32::MAX`] if plans do without replays.
    pub replay_tokens: u32,
}

/// What is known of a request beside its span. By the keys a policy recognises positions that it chose before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prompt<'a> {
    /// Namespace index, as in events.
    pub namespace: u16,
    /// Adopted tokens that the plan computes again; 0 if it loads a checkpoint at `span.start`, or adopts nothing.
    pub replayed_tokens: u32,
    /// Short keys ([`crate::Digest::short`]) of the blocks that end at `span.matched` and before, the deepest last: up to [`TOLD_KEYS`].
    pub matched_keys: &'a [u64],
    /// The same of the blocks that end at `span.end` and before.
    pub end_keys: &'a [u64],
}
