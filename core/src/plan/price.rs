//! What a plan costs: time to load records and time to compute tokens, at prices that the caller gives.

use serde::{Deserialize, Serialize};

use super::Candidate;

/// What loading and computing cost.
///
/// Both defaults are measured, each on one machine: give your own. Loads: batches of 32 reads from a busy virtual disk past the page cache,
/// verified (`reprise bench disk`): 675 MB a second in records of 644,024 bytes, 55 µs each in records of 4,096; a straight line through both. Prefill: DeepSeek-V4.1-Flash on four B200 under SGLang (sgl-project/sglang#40352): 262,144 tokens in
/// 6.77 s, the last 16,384 of them in 544 ms; a straight line through both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Prices {
    /// Bytes a second that a restore reads, verifies and hands over.
    pub load_bytes_per_second: u64,
    /// Nanoseconds for each record besides its bytes.
    pub load_record_ns: u64,
    /// Picoseconds that prefill takes for a token at the start of a context.
    pub token_ps: u64,
    /// Picoseconds more for each 1,024 tokens of context before it: what attention and the indexer add.
    pub context_ps: u64,
}

impl Default for Prices {
    fn default() -> Self {
        Self { load_bytes_per_second: 712_000_000, load_record_ns: 49_000, token_ps: 17_900_000, context_ps: 61_700 }
    }
}

/// What lies in the records that a plan loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordSizes {
    /// Tokens of a block.
    pub block_tokens: u32,
    /// Payload of a block's record.
    pub block_bytes: u64,
    /// Payload of all records of a checkpoint, drafts included; 0 for a model without windows.
    pub checkpoint_bytes: u64,
    /// How many these are.
    pub checkpoint_records: u32,
}

/// What a plan costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Cost {
    /// Payload bytes loaded.
    pub load_bytes: u64,
    /// Nanoseconds to load them.
    pub load_ns: u64,
    /// Nanoseconds to compute what is not adopted or replayed.
    pub prefill_ns: u64,
}

impl Cost {
    /// Nanoseconds until the prompt is in place: a load comes before the prefill that builds on it.
    pub const fn total_ns(&self) -> u64 {
        self.load_ns.saturating_add(self.prefill_ns)
    }
}

impl Prices {
    /// What `plan` costs.
    pub fn cost(&self, plan: &Candidate, sizes: &RecordSizes) -> Cost {
        let blocks = u64::from(plan.adopted_tokens / sizes.block_tokens);
        let checkpoints = u64::from(plan.loads_checkpoint());
        let load_bytes = blocks * sizes.block_bytes + checkpoints * sizes.checkpoint_bytes;
        let records = blocks + checkpoints * u64::from(sizes.checkpoint_records);
        let start = plan.adopted_tokens - plan.replayed_tokens;
        Cost {
            load_bytes,
            load_ns: self.load_ns(load_bytes, records),
            prefill_ns: self.prefill_ns(start, start + plan.computed_tokens),
        }
    }

    /// Nanoseconds to load `bytes` in `records`; saturates.
    pub fn load_ns(&self, bytes: u64, records: u64) -> u64 {
        let transfer = u128::from(bytes) * 1_000_000_000 / u128::from(self.load_bytes_per_second.max(1));
        let overhead = u128::from(records) * u128::from(self.load_record_ns);
        u64::try_from(transfer + overhead).unwrap_or(u64::MAX)
    }

    /// Nanoseconds to compute the tokens from `start` to `end` of a context, the former included; saturates.
    ///
    /// Token t costs `token_ps + context_ps · t / 1024`; the sum of the second part is `context_ps · (end² - start² - (end - start)) / 2048`.
    pub fn prefill_ns(&self, start: u32, end: u32) -> u64 {
        let tokens = u128::from(end.saturating_sub(start));
        // Σ t for start ≤ t < end.
        let places = tokens * (u128::from(start) + u128::from(end)).saturating_sub(1) / 2;
        let picoseconds = tokens * u128::from(self.token_ps) + places * u128::from(self.context_ps) / 1024;
        u64::try_from(picoseconds / 1000).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The two measurements that the default is a line through.
    #[test]
    fn the_default_prefill_is_not_another_than_the_one_measured() {
        let prices = Prices::default();
        let milliseconds = |start, end| prices.prefill_ns(start, end) / 1_000_000;
        assert!((6_700..6_850).contains(&milliseconds(0, 262_144)), "{}", milliseconds(0, 262_144));
        assert!((540..549).contains(&milliseconds(262_144 - 16_384, 262_144)));
    }

    #[test]
    fn a_prefill_in_two_parts_does_not_cost_more_or_less_than_in_one() {
        let prices = Prices { token_ps: 1_000, context_ps: 1_024_000, ..Prices::default() };
        // Token t costs 1 + t nanoseconds.
        assert_eq!(prices.prefill_ns(0, 4), 1 + 2 + 3 + 4);
        assert_eq!(prices.prefill_ns(4, 10), 5 + 6 + 7 + 8 + 9 + 10);
        assert_eq!(prices.prefill_ns(0, 10), 55);
        assert_eq!(prices.prefill_ns(7, 7), 0);
    }

    #[test]
    fn absurd_prices_do_not_overflow() {
        let prices =
            Prices { load_bytes_per_second: 0, load_record_ns: u64::MAX, token_ps: u64::MAX, context_ps: u64::MAX };
        let plan = Candidate { computed_tokens: 1, adopted_tokens: u32::MAX - 1, replayed_tokens: 0 };
        let sizes =
            RecordSizes { block_tokens: 1, block_bytes: 1 << 31, checkpoint_bytes: 1 << 31, checkpoint_records: 2 };
        let cost = prices.cost(&plan, &sizes);
        assert_eq!(cost.total_ns(), u64::MAX);
        assert_eq!(prices.prefill_ns(0, u32::MAX), u64::MAX);
    }

    #[test]
    fn a_plan_is_not_priced_without_the_windows_it_loads() {
        let sizes =
            RecordSizes { block_tokens: 128, block_bytes: 1_000, checkpoint_bytes: 10_000, checkpoint_records: 2 };
        let prices =
            Prices { load_bytes_per_second: 1_000_000_000, load_record_ns: 100, token_ps: 1_000_000, context_ps: 0 };
        for (computed_tokens, adopted_tokens, replayed_tokens, expected) in [
            (300, 0, 0, Cost { load_bytes: 0, load_ns: 0, prefill_ns: 300_000 }),
            (44, 256, 0, Cost { load_bytes: 12_000, load_ns: 12_400, prefill_ns: 44_000 }),
            (94, 256, 50, Cost { load_bytes: 2_000, load_ns: 2_200, prefill_ns: 94_000 }),
        ] {
            let plan = Candidate { computed_tokens, adopted_tokens, replayed_tokens };
            assert_eq!(prices.cost(&plan, &sizes), expected);
        }
    }
}
