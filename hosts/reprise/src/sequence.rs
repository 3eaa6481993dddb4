//! One sequence of tokens in one namespace: named, planned, saved.

use std::sync::Arc;

use reprise_core::{
    Digest,
    prefix::{Chain, NamespaceKey},
};
use reprise_disk::Buffer;

use crate::{
    cache::{Inner, lock},
    error::RequestError,
    group::Group,
    jobs::Presence,
    plan::{PlanGuard, Planned},
    policies::Message,
    record::{BlockSource, Record},
};

/// A namespace of an open cache.
#[derive(Clone)]
pub struct NamespaceHandle {
    pub(crate) inner: Arc<Inner>,
    pub(crate) key: NamespaceKey,
    pub(crate) index: u16,
}

impl NamespaceHandle {
    /// A sequence named by its tokens; more can follow with [`Sequence::extend`].
    pub fn sequence(&self, tokens: &[u32]) -> Sequence {
        let mut chain = Chain::new(&self.key);
        let mut digests = Vec::new();
        chain.extend(tokens, &mut digests);
        self.named(tokens.len() as u64, digests, Some(chain))
    }

    /// A sequence of `tokens` tokens named by the engine's own chained keys, one per complete block from the start, such as vLLM's
    /// block hashes. They never meet blocks that were named by tokens.
    pub fn sequence_of_keys(&self, tokens: u64, keys: &[[u8; 32]]) -> Sequence {
        let digests = keys.iter().map(|key| self.key.engine_digest(key)).collect();
        self.sequence_of_digests(tokens, digests)
    }

    /// A sequence of `tokens` tokens whose blocks were named elsewhere by the digest chain of [`reprise_core::prefix`], for instance by
    /// the core component in another language.
    pub fn sequence_of_digests(&self, tokens: u64, digests: Vec<Digest>) -> Sequence {
        self.named(tokens, digests, None)
    }

    fn named(&self, tokens: u64, digests: Vec<Digest>, chain: Option<Chain>) -> Sequence {
        let mut sequence = self.sequence_of_shared(tokens, Arc::new(digests));
        sequence.chain = chain;
        sequence
    }

    /// The same of digests that others hold, too.
    pub(crate) fn sequence_of_shared(&self, tokens: u64, digests: Arc<Vec<Digest>>) -> Sequence {
        let namespace = self.clone();
        Sequence { namespace, digests, tokens, chain: None, planned: None, staged: Vec::new(), shadowed: None }
    }

    /// Whether the records of these blocks are there, each on its own: what vLLM's `lookup` and SGLang's `batch_exists` ask.
    pub fn presence(&self, keys: &[[u8; 32]]) -> Vec<Presence> {
        let digests: Vec<Digest> = keys.iter().map(|key| self.key.engine_digest(key)).collect();
        let ledger = lock(&self.inner.ledger);
        digests
            .iter()
            .map(|digest| match ledger.tree.find(digest) {
                None => Presence::Miss,
                Some(id) if ledger.is_unreadable(id) => Presence::Miss,
                Some(id) if ledger.tree.is_pending(id) => Presence::HitPending,
                Some(_) => Presence::Hit,
            })
            .collect()
    }
}

/// What became of a save.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// Blocks that came in with this call; readable once written.
    pub new_blocks: u32,
    /// Complete blocks of the sequence that are resident now, from its start.
    pub resident_blocks: u32,
    /// Checkpoints placed with this call, staged ones included.
    pub checkpoints: u32,
}

/// A window that was captured before its block was saved.
pub(crate) struct Staged {
    pub block: u32,
    pub payloads: Vec<(Group, Buffer)>,
    /// Its share of the memory for windows that wait.
    pub staged_bytes: u64,
}

/// A prompt and what follows it.
pub struct Sequence {
    pub(crate) namespace: NamespaceHandle,
    pub(crate) digests: Arc<Vec<Digest>>,
    pub(crate) tokens: u64,
    chain: Option<Chain>,
    pub(crate) planned: Option<Planned>,
    pub(crate) staged: Vec<Staged>,
    /// Its number with the shadow, if it was told of the plan.
    pub(crate) shadowed: Option<u64>,
}

impl Sequence {
    /// Adds tokens, for instance generated ones. A block that completes costs one hash.
    ///
    /// # Panics
    /// When the sequence was named by keys or digests: use [`Sequence::extend_keys`].
    pub fn extend(&mut self, tokens: &[u32]) {
        let chain = self.chain.as_mut().expect("a sequence of tokens is extended by tokens");
        // Shared with plans that are still held: those keep the names they were made for.
        chain.extend(tokens, Arc::make_mut(&mut self.digests));
        self.tokens += tokens.len() as u64;
    }

    /// Adds `tokens` tokens and the engine's keys of the blocks that they complete.
    ///
    /// # Panics
    /// When the sequence was named by tokens: use [`Sequence::extend`].
    pub fn extend_keys(&mut self, tokens: u64, keys: &[[u8; 32]]) {
        assert!(self.chain.is_none(), "a sequence of keys is extended by keys");
        Arc::make_mut(&mut self.digests).extend(keys.iter().map(|key| self.namespace.key.engine_digest(key)));
        self.tokens += tokens;
    }

    /// Tokens so far.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Names of the complete blocks so far.
    pub fn digests(&self) -> &[Digest] {
        &self.digests
    }

    /// Complete blocks that have a name.
    pub(crate) fn complete_blocks(&self) -> u32 {
        let by_tokens = self.tokens / u64::from(self.block_tokens());
        by_tokens.min(self.digests.len() as u64) as u32
    }

    pub(crate) fn block_tokens(&self) -> u32 {
        self.namespace.inner.shape.block_tokens
    }

    pub(crate) fn record(&self, group: Group, block: u32) -> Record {
        record(&self.digests, self.block_tokens(), group, block)
    }

    /// Looks the sequence up and decides what of it to adopt. The plan holds a lease while it lives. `now` is the caller's clock: any
    /// unit, never decreasing.
    ///
    /// # Errors
    /// When the sequence is longer than positions can count.
    pub fn plan(&mut self, now: u64) -> Result<PlanGuard, RequestError> {
        crate::plan::plan(self, now, u32::MAX)
    }

    /// The same, adopting at most so many tokens: for an engine that goes on from an earlier position than it could, such as one with
    /// drafts that drops the last block of a hit and aligns again. [`Sequence::restorable`] says which positions have a checkpoint.
    ///
    /// # Errors
    /// When the sequence is longer than positions can count.
    pub fn plan_at_most(&mut self, now: u64, at_most_tokens: u32) -> Result<PlanGuard, RequestError> {
        crate::plan::plan(self, now, at_most_tokens)
    }

    /// Positions, in tokens, at which this sequence could go on from the cache now, ascending: the set SGLang's `batch_exists_v2` asks
    /// for. Without windows, every resident block end is one.
    pub fn restorable(&self) -> Vec<u32> {
        crate::plan::restorable(self)
    }

    /// Saves the complete blocks that are not resident, in order, as far as there is room. Payloads are copied out of `source` before
    /// the call returns, and written behind; waits for write buffers when they are all in use.
    ///
    /// # Errors
    /// When the sequence has no plan: saving starts where the look-up ended.
    pub fn save(&mut self, source: &mut dyn BlockSource) -> Result<Saved, RequestError> {
        crate::save::save(self, source)
    }

    /// Keeps the windows at those planned captures that are not captured yet.
    ///
    /// # Errors
    /// When the sequence has no plan.
    pub fn capture(&mut self, source: &mut dyn BlockSource) -> Result<Saved, RequestError> {
        crate::save::capture(self, None, source)
    }

    /// Keeps the window at one planned capture, as the engine passes it. If the block that ends there is not saved yet, the window waits
    /// for it.
    ///
    /// # Errors
    /// When the sequence has no plan, or the plan does not list the position.
    pub fn capture_at(&mut self, position_tokens: u32, source: &mut dyn BlockSource) -> Result<Saved, RequestError> {
        crate::save::capture(self, Some(position_tokens), source)
    }
}

impl Drop for Sequence {
    /// Counts the planned captures that the engine passed over, and gives the memory of windows back whose block was never saved.
    fn drop(&mut self) {
        let inner = Arc::clone(&self.namespace.inner);
        let skipped = self.planned.as_ref().map_or(0, |planned| planned.captures.len()) + self.staged.len();
        if let Some(threads) = &inner.threads {
            for window in self.staged.drain(..) {
                threads.writer.unstage(window.staged_bytes);
                window.payloads.into_iter().for_each(|(_, buffer)| threads.writer.give_back(buffer));
            }
        }
        if let Some(request) = self.shadowed {
            inner.shadow.tell(Message::Ended { request });
        }
        if skipped > 0 {
            lock(&inner.ledger).counters.captures_skipped += skipped as u64;
        }
    }
}

/// The record of `group` at `block`.
pub(crate) fn record(digests: &[Digest], block_tokens: u32, group: Group, block: u32) -> Record {
    Record { group, block, position_tokens: (block + 1) * block_tokens, digest: digests[block as usize] }
}
