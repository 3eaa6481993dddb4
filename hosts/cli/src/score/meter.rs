//! From the counters of a cache, request by request, to a score.

use reprise::{Counters, Group, Prices, Shape};

use super::Score;

/// Adds up what a replay costs and spares, a request at a time.
pub struct Meter {
    prices: Prices,
    before: Counters,
    prefill_ns: u64,
    cold_prefill_ns: u64,
    load_ns: u64,
}

impl Meter {
    /// For a cache that has served nothing yet.
    pub fn new(prices: Prices) -> Self {
        Self { prices, before: Counters::default(), prefill_ns: 0, cold_prefill_ns: 0, load_ns: 0 }
    }

    /// Takes the counters after a request. Returns the tokens that request was spared.
    pub fn observe(&mut self, counters: &Counters) -> u64 {
        let before = std::mem::replace(&mut self.before, counters.clone());
        let grown = |field: fn(&Counters) -> u64| field(counters) - field(&before);
        // A prompt has fewer than 2^32 tokens.
        let tokens = |field| grown(field) as u32;
        let prompt = tokens(|counters| counters.prompt_tokens);
        let start = tokens(|counters| counters.adopted_tokens) - tokens(|counters| counters.replayed_tokens);
        self.prefill_ns += self.prices.prefill_ns(start, prompt);
        self.cold_prefill_ns += self.prices.prefill_ns(0, prompt);
        let loaded = |field: fn(&reprise::GroupCounters) -> u64| -> u64 {
            Group::ALL.iter().map(|&group| field(counters.group(group)) - field(before.group(group))).sum()
        };
        self.load_ns += self.prices.load_ns(loaded(|group| group.loaded_bytes), loaded(|group| group.loaded_records));
        u64::from(prompt) - grown(|counters| counters.computed_tokens)
    }

    /// The score of what was observed, over a time of `trace_us`.
    pub fn score(self, shape: &Shape, trace_us: u64) -> Score {
        let counters = &self.before;
        let mut score = Score {
            requests: counters.requests,
            hits: counters.hits,
            prompt_tokens: counters.prompt_tokens,
            matched_tokens: counters.matched_tokens,
            adopted_tokens: counters.adopted_tokens,
            replayed_tokens: counters.replayed_tokens,
            computed_tokens: counters.computed_tokens,
            saved_tokens: counters.prompt_tokens - counters.computed_tokens,
            prefill_ns: self.prefill_ns,
            cold_prefill_ns: self.cold_prefill_ns,
            load_ns: self.load_ns,
            refused_blocks: counters.refused_blocks,
            host_evictions: counters.native_evictions,
            trace_us,
            ..Score::default()
        };
        for group in Group::ALL {
            let counted = counters.group(group);
            let slot_bytes = shape.group(group).map_or(0, |shape| shape.slot_bytes);
            *score.group_mut(group) = super::GroupScore {
                written_records: counted.written_records,
                written_bytes: counted.written_bytes,
                device_bytes: counted.written_records.saturating_mul(slot_bytes),
                loaded_records: counted.loaded_records,
                loaded_bytes: counted.loaded_bytes,
                evicted_records: counted.evicted_records,
                orphaned_records: counted.orphaned_records,
            };
        }
        score
    }
}

#[cfg(test)]
mod tests {
    use reprise::{Cache, Config};

    use super::*;
    use crate::{
        replay::{Options, replay},
        trace::{ReadOptions, Trace},
    };

    /// Token t of a context costs 1 + t microseconds, a byte 1 ns and a record nothing.
    const PRICES: Prices = Prices {
        load_bytes_per_second: 1_000_000_000,
        load_record_ns: 0,
        token_ps: 1_000_000,
        context_ps: 1_024_000_000,
    };

    fn microseconds(from: u64, to: u64) -> u64 {
        (from..to).map(|token| 1 + token).sum()
    }

    #[test]
    fn a_token_behind_a_hit_is_not_priced_like_one_at_the_start() {
        let lines: String =
            (0..2).map(|i| format!("{{\"timestamp\":{i},\"input_length\":1100,\"hash_ids\":[1,2,3]}}\n")).collect();
        let trace = Trace::from_reader("t", lines.as_bytes(), &ReadOptions::default()).unwrap();
        let config = Config {
            history_bytes: 1 << 30,
            window_bytes: 1 << 30,
            native_policies: true,
            deterministic: true,
            ..Config::new("v4-flash").unwrap()
        };
        let cache = Cache::open(config).unwrap();
        let mut meter = Meter::new(PRICES);
        let mut saved = Vec::new();
        replay(&cache, &trace, &Options::default(), &mut |_, _, cache: &Cache| {
            saved.push(meter.observe(&cache.stats().counters));
        })
        .unwrap();
        // The second adopts the eight complete blocks of the first, with the checkpoint behind them.
        assert_eq!(saved, [0, 1024]);
        let shape = cache.shape().clone();
        let score = meter.score(&shape, 1_000);
        assert_eq!(score.cold_prefill_ns, 2 * 1000 * microseconds(0, 1100));
        assert_eq!(score.prefill_ns, 1000 * (microseconds(0, 1100) + microseconds(1024, 1100)));
        assert_eq!(score.saved_prefill_ns(), 1000 * microseconds(0, 1024));
        assert_eq!(score.load_ns, score.loaded_bytes());
        assert_eq!((score.history.loaded_records, score.window.loaded_records), (8, 1));
        assert_eq!(score.history.device_bytes, 8 * shape.history.slot_bytes);
        assert!(score.history.device_bytes > score.history.written_bytes, "slots are whole pages");
        let counters = cache.stats().counters;
        assert_eq!(score.computed_tokens, counters.computed_tokens);
        assert_eq!(score.saved_tokens, 1024);
    }
}
