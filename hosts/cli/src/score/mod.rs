//! What a typed replay comes to: tokens, modelled seconds, bytes by group, wear of the device.
//!
//! A [`Meter`] is shown the cache's counters after each request; what they grew by is that request's. Everything is kept in integers, so
//! that equal replays give equal scores. The formulas:
//!
//! | figure | formula | source |
//! |---|---|---|
//! | saved tokens | Σ (prompt − computed) | `replay.md`, "Result" |
//! | prefill | Σ over requests of [`Prices::prefill_ns`](reprise::Prices::prefill_ns)`(adopted − replayed, prompt)`: token t of a context costs `token_ps + context_ps · t / 1024` | a straight line through the published measurement that [`Prices`](reprise::Prices) names; attention reads all tokens before t |
//! | prefill without a cache | Σ `prefill_ns(0, prompt)` | the same line |
//! | saved seconds | prefill without a cache − prefill | |
//! | load | Σ [`Prices::load_ns`](reprise::Prices::load_ns)`(bytes, records)` of what the request loads | the measurement that [`Prices`](reprise::Prices) names |
//! | device bytes | Σ over groups of records written · slot | a record occupies a slot of whole 4 KiB pages: `hosts/disk/FORMAT.md` |
//! | bytes a day | device bytes · 86,400 s / time from the first arrival to the last | |
//! | drive writes a day | bytes a day / bytes of the budget | the usual measure of endurance (DWPD): capacity overwritten so many times a day; JEDEC JESD218 rates drives by the bytes behind it |
//!
//! What the figures leave out: the queue in front of an engine, batches, loads that overlap a prefill, the store's tables (they are reported
//! by `reprise store info`), and the device's own write amplification, by which the last two lines are to be multiplied.

mod meter;

pub use meter::Meter;

use reprise::Group;
use serde::{Deserialize, Serialize};

/// Microseconds of a day.
const DAY_US: u128 = 86_400_000_000;

/// Counts of one group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupScore {
    /// Records written.
    pub written_records: u64,
    /// Their payload.
    pub written_bytes: u64,
    /// What they occupy on the device: slots.
    pub device_bytes: u64,
    /// Records loaded.
    pub loaded_records: u64,
    /// Their payload.
    pub loaded_bytes: u64,
    /// Records that went to make room.
    pub evicted_records: u64,
    /// Checkpoints that went because their block did.
    pub orphaned_records: u64,
}

/// The score of one replay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Score {
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
    /// Nanoseconds of modelled prefill.
    pub prefill_ns: u64,
    /// The same for prompts that find nothing.
    pub cold_prefill_ns: u64,
    /// Nanoseconds of modelled loads.
    pub load_ns: u64,
    /// Compressed entries.
    pub history: GroupScore,
    /// Checkpoints.
    pub window: GroupScore,
    /// Draft records beside the checkpoints.
    pub draft: GroupScore,
    /// Blocks that admission refused, with those behind them.
    pub refused_blocks: u64,
    /// Evictions that the host decided because the policy named too few.
    pub host_evictions: u64,
    /// Microseconds from the first arrival to the last.
    pub trace_us: u64,
}

impl Score {
    /// Counts of one group.
    pub fn group(&self, group: Group) -> &GroupScore {
        match group {
            Group::History => &self.history,
            Group::Window => &self.window,
            Group::Draft => &self.draft,
        }
    }

    fn group_mut(&mut self, group: Group) -> &mut GroupScore {
        match group {
            Group::History => &mut self.history,
            Group::Window => &mut self.window,
            Group::Draft => &mut self.draft,
        }
    }

    fn sum(&self, field: fn(&GroupScore) -> u64) -> u64 {
        Group::ALL.iter().map(|&group| field(self.group(group))).sum()
    }

    /// Nanoseconds of modelled prefill that the cache spares. Loads are not taken off: see [`Score::load_ns`].
    pub fn saved_prefill_ns(&self) -> u64 {
        self.cold_prefill_ns.saturating_sub(self.prefill_ns)
    }

    /// Payload bytes written, all groups.
    pub fn written_bytes(&self) -> u64 {
        self.sum(|group| group.written_bytes)
    }

    /// Payload bytes loaded, all groups.
    pub fn loaded_bytes(&self) -> u64 {
        self.sum(|group| group.loaded_bytes)
    }

    /// Bytes that reach the device: every record in whole pages.
    pub fn device_bytes(&self) -> u64 {
        self.sum(|group| group.device_bytes)
    }

    /// Records evicted to make room, all groups.
    pub fn evicted_records(&self) -> u64 {
        self.sum(|group| group.evicted_records)
    }

    /// Device bytes a day at the pace of the trace; `None` if all requests arrive at one moment.
    pub fn device_bytes_per_day(&self) -> Option<u64> {
        let day = u128::from(self.device_bytes()) * DAY_US;
        day.checked_div(self.trace_us.into()).map(|bytes| u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// How many times a day a device of `budget_bytes` is overwritten, in thousandths; `None` as for [`Score::device_bytes_per_day`], or
    /// without a budget.
    pub fn drive_writes_per_day_milli(&self, budget_bytes: u64) -> Option<u64> {
        let bytes = u128::from(self.device_bytes_per_day()?) * 1000;
        bytes.checked_div(budget_bytes.into()).map(|writes| u64::try_from(writes).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_trace_does_not_wear_a_device_as_if_it_took_a_day() {
        let group = GroupScore { written_bytes: 5_000, device_bytes: 8_192, ..GroupScore::default() };
        let hour = Score { history: group, window: group, trace_us: 3_600_000_000, ..Score::default() };
        assert_eq!((hour.written_bytes(), hour.device_bytes()), (10_000, 16_384));
        assert_eq!(hour.device_bytes_per_day(), Some(24 * 16_384));
        assert_eq!(hour.drive_writes_per_day_milli(16_384), Some(24_000));
        assert_eq!(hour.drive_writes_per_day_milli(0), None);
        let moment = Score { trace_us: 0, ..hour };
        assert_eq!(moment.device_bytes_per_day(), None, "no rate without a time");
    }

    #[test]
    fn absurd_counts_do_not_overflow() {
        let group = GroupScore { device_bytes: u64::MAX / 4, ..GroupScore::default() };
        let score = Score { history: group, trace_us: 1, ..Score::default() };
        assert_eq!(score.device_bytes_per_day(), Some(u64::MAX));
        assert_eq!(score.drive_writes_per_day_milli(1), Some(u64::MAX));
    }
}
