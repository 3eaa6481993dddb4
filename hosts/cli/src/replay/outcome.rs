//! What a replay gives: the integers of the result, and what else a person wants to know.

use std::{fmt, time::Duration};

use reprise::{Cache, Counters, DivisionReport, Group, Role, ShadowReport, Stats};
use serde::Serialize;

/// The integers that two replays of the same trace with the same options agree on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Integers {
    /// Requests replayed.
    pub requests: u64,
    /// Requests that adopted something.
    pub hits: u64,
    /// Tokens asked for.
    pub prompt_tokens: u64,
    /// Tokens covered by resident blocks.
    pub matched_tokens: u64,
    /// Tokens taken from the cache.
    pub adopted_tokens: u64,
    /// Tokens computed again to rebuild windows.
    pub replayed_tokens: u64,
    /// Tokens that need a forward pass.
    pub computed_tokens: u64,
    /// Tokens that need none.
    pub saved_tokens: u64,
    /// Payload bytes.
    pub loaded_history: u64,
    /// Payload bytes.
    pub loaded_window: u64,
    /// Payload bytes.
    pub written_history: u64,
    /// Payload bytes.
    pub written_window: u64,
    /// Records.
    pub evicted_history: u64,
    /// Records.
    pub evicted_window: u64,
    /// Records.
    pub orphaned_window: u64,
    /// Bytes of the slots in use at the end.
    pub final_history_bytes: u64,
    /// Bytes of the slots in use at the end.
    pub final_window_bytes: u64,
}

/// Time spent on I/O, as the driver sees it.
#[derive(Clone, Copy, Debug, Default)]
pub struct IoTimes {
    /// Waiting for restores, verification included.
    pub loading: Duration,
    /// Saving and waiting until it is readable.
    pub saving: Duration,
}

/// A finished replay.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The integers of the result.
    pub integers: Integers,
    /// Counts and sizes of the cache at the end.
    pub stats: Stats,
    /// From the decoded trace to here.
    pub elapsed: Duration,
    /// Complete blocks of all prompts.
    pub decisions: u64,
    /// Loaded bytes that were compared.
    pub verified_bytes: u64,
    /// Time spent on I/O.
    pub io: IoTimes,
    /// Request numbers of swaps that the trace was too short for.
    pub skipped_swaps: Vec<u64>,
    /// Swaps that were not made because the policy failed on its way in; the running one stayed.
    pub failed_swaps: Vec<FailedSwap>,
    /// What the candidates of a shadow would have done.
    pub shadow: Option<ShadowReport>,
    /// How one budget for both groups was divided.
    pub division: Option<DivisionReport>,
}

/// A policy that failed on its way in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailedSwap {
    /// Number of the request before which it was to come in.
    pub before: u64,
    /// Which seat.
    pub role: Role,
    /// What was to come in.
    pub policy: String,
    /// What it did.
    pub reason: String,
}

impl fmt::Display for FailedSwap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { before, role, policy, reason } = self;
        write!(
            f,
            "the {role} policy `{policy}` did not come in before request {before}: {reason}; the running one stayed"
        )
    }
}

impl Outcome {
    pub(super) fn new(
        cache: &Cache,
        elapsed: Duration,
        decisions: u64,
        verified_bytes: u64,
        io: IoTimes,
        skipped_swaps: Vec<u64>,
        failed_swaps: Vec<FailedSwap>,
    ) -> Self {
        let stats = cache.stats();
        let integers = Integers::of(&stats);
        let (shadow, division) = (cache.policies().end_shadow(), cache.policies().division());
        Self { integers, stats, elapsed, decisions, verified_bytes, io, skipped_swaps, failed_swaps, shadow, division }
    }
}

impl Integers {
    /// The integers in a snapshot of a cache that served nothing but the replay.
    pub fn of(stats: &Stats) -> Self {
        let counters: &Counters = &stats.counters;
        let (history, window) = (counters.group(Group::History), counters.group(Group::Window));
        Self {
            requests: counters.requests,
            hits: counters.hits,
            prompt_tokens: counters.prompt_tokens,
            matched_tokens: counters.matched_tokens,
            adopted_tokens: counters.adopted_tokens,
            replayed_tokens: counters.replayed_tokens,
            computed_tokens: counters.computed_tokens,
            saved_tokens: counters.prompt_tokens - counters.computed_tokens,
            loaded_history: history.loaded_bytes,
            loaded_window: window.loaded_bytes,
            written_history: history.written_bytes,
            written_window: window.written_bytes,
            evicted_history: history.evicted_records,
            evicted_window: window.evicted_records,
            orphaned_window: window.orphaned_records,
            final_history_bytes: stats.resident_bytes[Group::History as usize],
            final_window_bytes: stats.resident_bytes[Group::Window as usize],
        }
    }
}
