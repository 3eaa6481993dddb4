//! The digests of one sequence, as its tokens come in.

use alloc::{boxed::Box, collections::VecDeque, vec::Vec};
use core::fmt;

use blake3::platform::Platform;
use thiserror::Error;

use super::{NamespaceKey, lanes, portable, write_tokens};
use crate::Digest;

/// A sequence on its way: the digest of its last complete block, the tokens after it, and extras that are still to come.
///
/// Costs one leaf and one node for each block completed and a copy for each token; memory is allocated for a chain and for
/// each extra, never for a block. A clone is a fork of the sequence and copies less than a block of tokens.
///
/// # Extras
///
/// What else than its tokens determines a block, such as the hash of an image behind placeholder tokens, or the bytes of
/// prompt embeddings. An extra belongs to the block that holds the token at its position, and through the chain to all blocks
/// after it; extras of one block are hashed in order of position, those at one position in the order in which they were
/// attached. The position only picks the block: if the same thing could lie elsewhere in a block under the same tokens, its
/// bytes must say where.
///
/// `Debug` shows neither tokens nor extras, which are what users wrote.
#[derive(Clone)]
pub struct Chain {
    key: NamespaceKey,
    /// Of the last complete block, or the root.
    digest: Digest,
    /// Complete blocks.
    blocks: u32,
    /// Tokens of the block in progress, as they are hashed.
    tail: Vec<u8>,
    /// Extras of the block in progress and of later ones, by position.
    extras: VecDeque<Extra>,
}

#[derive(Clone)]
struct Extra {
    position: u64,
    bytes: Box<[u8]>,
}

/// An extra came after the digest of its block had been given out without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "extra at token {position} comes too late: the blocks up to token {complete_tokens} have their digests; \
     attach an extra before the tokens that complete its block"
)]
pub struct LateExtra {
    /// Position asked for, in tokens from the start of the sequence.
    pub position: u64,
    /// End of the last complete block, in tokens.
    pub complete_tokens: u64,
}

impl Chain {
    /// A sequence without tokens.
    pub fn new(key: &NamespaceKey) -> Self {
        Self::resume(key, key.root(), 0)
    }

    /// A sequence of `blocks` complete blocks, the last of which has this `digest`. The digest must come from the same
    /// namespace: what follows on a foreign one names nothing.
    pub fn resume(key: &NamespaceKey, digest: Digest, blocks: u32) -> Self {
        let tail = Vec::with_capacity(key.block_bytes());
        Self { key: *key, digest, blocks, tail, extras: VecDeque::new() }
    }

    /// The digest of the last complete block; of none, the namespace's root.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Complete blocks, those before a [`Chain::resume`] included.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Tokens of the sequence, those after the last complete block included.
    pub fn tokens(&self) -> u64 {
        self.complete_tokens() + self.tail_tokens() as u64
    }

    /// Adds a token. Returns the digest of the block that it completes.
    #[inline]
    pub fn push(&mut self, token: u32) -> Option<Digest> {
        self.tail.extend_from_slice(&token.to_le_bytes());
        (self.tail.len() == self.key.block_bytes()).then(|| self.complete())
    }

    /// Adds tokens and appends the digests of the blocks that they complete to `out`.
    pub fn extend(&mut self, mut tokens: &[u32], out: &mut Vec<Digest>) {
        let block_tokens = self.key.block_tokens() as usize;
        out.reserve((self.tail_tokens() + tokens.len()) / block_tokens);
        let lanes = lanes::for_blocks_of(self.key.block_bytes());
        while !tokens.is_empty() {
            let plain = self.plain_blocks(tokens);
            if let (Some(extend), 1..) = (lanes, plain) {
                let (whole, rest) = tokens.split_at(plain * block_tokens);
                self.digest = extend(Platform::detect(), &self.key, self.digest, whole, out);
                self.blocks += plain as u32;
                tokens = rest;
            } else {
                let missing = block_tokens - self.tail_tokens();
                let (part, rest) = tokens.split_at(tokens.len().min(missing));
                let start = self.tail.len();
                self.tail.resize(start + size_of_val(part), 0);
                write_tokens(part, &mut self.tail[start..]);
                if part.len() == missing {
                    out.push(self.complete());
                }
                tokens = rest;
            }
        }
    }

    /// Attaches an extra to the block that holds, or will hold, the token at `position` (counted from the start of the
    /// sequence).
    ///
    /// # Errors
    ///
    /// That block is complete already.
    pub fn attach(&mut self, position: u64, extra: &[u8]) -> Result<(), LateExtra> {
        let complete_tokens = self.complete_tokens();
        if position < complete_tokens {
            return Err(LateExtra { position, complete_tokens });
        }
        let index = self.extras.partition_point(|other| other.position <= position);
        self.extras.insert(index, Extra { position, bytes: extra.into() });
        Ok(())
    }

    fn complete_tokens(&self) -> u64 {
        u64::from(self.blocks) * u64::from(self.key.block_tokens())
    }

    fn tail_tokens(&self) -> usize {
        self.tail.len() / size_of::<u32>()
    }

    /// How many whole blocks without extras `tokens` begins with. None while a block is in progress.
    fn plain_blocks(&self, tokens: &[u32]) -> usize {
        if !self.tail.is_empty() {
            return 0;
        }
        let whole = tokens.len() / self.key.block_tokens() as usize;
        match self.extras.front() {
            None => whole,
            Some(extra) => {
                let until = extra.position / u64::from(self.key.block_tokens()) - u64::from(self.blocks);
                usize::try_from(until).map_or(whole, |until| until.min(whole))
            }
        }
    }

    /// Completes the block whose tokens are all in the tail.
    fn complete(&mut self) -> Digest {
        let end = self.complete_tokens() + u64::from(self.key.block_tokens());
        let own = self.extras.partition_point(|extra| extra.position < end);
        let leaf = portable::leaf(&self.key, &self.tail, self.extras.iter().take(own).map(|extra| &*extra.bytes));
        self.extras.drain(..own);
        self.tail.clear();
        self.digest = portable::node(&self.digest, &leaf);
        self.blocks += 1;
        self.digest
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain")
            .field("key", &self.key)
            .field("digest", &self.digest)
            .field("blocks", &self.blocks)
            .field("tail_tokens", &self.tail_tokens())
            .field("extras", &self.extras.len())
            .finish()
    }
}
