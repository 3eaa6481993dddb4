//! What the cache counts.

use reprise_core::plan::Explain;
use serde::Serialize;

use crate::group::Group;

/// Counts of one group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct GroupCounters {
    /// Records written and readable.
    pub written_records: u64,
    /// Their payload.
    pub written_bytes: u64,
    /// Records read and verified (without a store: records that would have been).
    pub loaded_records: u64,
    /// Their payload.
    pub loaded_bytes: u64,
    /// Records that went to make room.
    pub evicted_records: u64,
    /// Checkpoints that went because their block did.
    pub orphaned_records: u64,
    /// Records that could not be written.
    pub failed_writes: u64,
    /// Records that could not be read or did not verify.
    pub failed_reads: u64,
}

/// Counts since the cache was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Counters {
    /// Plans made.
    pub requests: u64,
    /// Plans that adopt something.
    pub hits: u64,
    /// Tokens of the prompts.
    pub prompt_tokens: u64,
    /// Tokens covered by leading resident blocks.
    pub matched_tokens: u64,
    /// Tokens whose compressed entries were taken from the cache.
    pub adopted_tokens: u64,
    /// Tokens computed again to rebuild windows.
    pub replayed_tokens: u64,
    /// Tokens that need a forward pass.
    pub computed_tokens: u64,
    /// Positions that a checkpoint policy asked for.
    pub captures_planned: u64,
    /// Of those, positions the engine did not capture or that had no place.
    pub captures_skipped: u64,
    /// Blocks that an admission policy refused, with those behind them.
    pub refused_blocks: u64,
    /// Blocks not saved because nothing could go, or the store was full.
    pub unsaved_blocks: u64,
    /// Evictions decided by the cache's own LRU, because the policy had no answer or was busy.
    pub native_evictions: u64,
    /// Checkpoint decisions taken by the native strategy in place of a policy that failed or was busy.
    pub native_checkpoints: u64,
    /// Leases that ended by their deadline.
    pub expired_leases: u64,
    explained: [u64; Explain::ALL.len()],
    groups: [GroupCounters; Group::ALL.len()],
}

impl Counters {
    /// Counts of one group.
    pub fn group(&self, group: Group) -> &GroupCounters {
        &self.groups[group as usize]
    }

    pub(crate) fn group_mut(&mut self, group: Group) -> &mut GroupCounters {
        &mut self.groups[group as usize]
    }

    /// Plans by the reason why they are not longer.
    pub fn explained(&self) -> impl Iterator<Item = (Explain, u64)> + '_ {
        Explain::ALL.into_iter().zip(self.explained)
    }

    pub(crate) fn explain(&mut self, reason: Explain) {
        self.explained[reason as usize] += 1;
    }
}
