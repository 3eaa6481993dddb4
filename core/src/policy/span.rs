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
