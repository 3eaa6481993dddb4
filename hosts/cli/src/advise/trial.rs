//! One pair of policies with one split, tried.

use std::cmp::Reverse;

use reprise::{Cache, Config};

use super::{AdviseError, Pair, Question};
use crate::{
    replay::{Integers, Options, replay},
    score::{Meter, Score},
};

/// What came of a pair with a split.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The policies.
    pub pair: Pair,
    /// Share of the budget for windows, in thousandths.
    pub window_share: u16,
    /// Quota of blocks.
    pub history_bytes: u64,
    /// Quota of checkpoints.
    pub window_bytes: u64,
    /// What a replay with these gives.
    pub integers: Integers,
    /// What it costs and spares.
    pub score: Score,
    /// Whether it writes more a day than the question allows.
    pub writes_too_much: bool,
}

/// What a trial is worth: the less time the better, then the fewer bytes written; less than any other if it writes too much.
pub type Value = Reverse<(bool, u64, u64)>;

impl Trial {
    /// Modelled nanoseconds until all prompts are in place, one after the other.
    pub fn time_ns(&self) -> u64 {
        self.score.prefill_ns.saturating_add(self.score.load_ns)
    }

    /// What it is worth.
    pub fn value(&self) -> Value {
        Reverse((self.writes_too_much, self.time_ns(), self.score.device_bytes()))
    }
}

/// What a configuration for this pair and split is.
pub(super) fn configuration(question: &Question<'_>, pair: &Pair, window_share: u16) -> Config {
    let window = u128::from(question.budget_bytes) * u128::from(window_share) / 1000;
    let window_bytes = u64::try_from(window).unwrap_or(u64::MAX);
    Config {
        history_bytes: question.budget_bytes.saturating_sub(window_bytes),
        window_bytes,
        eviction: pair.eviction.clone(),
        checkpoints: pair.checkpoints.clone(),
        ..question.config.clone()
    }
}

/// Replays the trace on paper.
pub(super) fn attempt(question: &Question<'_>, pair: &Pair, window_share: u16) -> Result<Trial, AdviseError> {
    let config = Config {
        store: None,
        native_policies: true,
        deterministic: true,
        ..configuration(question, pair, window_share)
    };
    let (history_bytes, window_bytes) = (config.history_bytes, config.window_bytes);
    let mut meter = Meter::new(config.prices);
    let cache = Cache::open(config)?;
    let options = Options { limit: question.limit, session_gap_us: question.session_gap_us, ..Options::default() };
    let mut observe = |_: u64, _: u64, cache: &Cache| {
        meter.observe(&cache.stats().counters);
    };
    let outcome = replay(&cache, question.trace, &options, &mut observe)
        .map_err(|source| AdviseError::Replay { pair: pair.to_string(), source: Box::new(source) })?;
    let score = meter.score(cache.shape(), span_us(question));
    let per_day = score.device_bytes_per_day();
    let writes_too_much = question.most_bytes_per_day.zip(per_day).is_some_and(|(most, bytes)| bytes > most);
    let integers = outcome.integers;
    Ok(Trial { pair: pair.clone(), window_share, history_bytes, window_bytes, integers, score, writes_too_much })
}

/// Microseconds from the first arrival to the last.
fn span_us(question: &Question<'_>) -> u64 {
    let Question { trace, session_gap_us, limit, .. } = question;
    let order = trace.order_of_arrival(*session_gap_us);
    let arrival = |index: &u32| trace.arrival_us(&trace.requests[*index as usize], *session_gap_us);
    let replayed = &order[..limit.unwrap_or(order.len()).min(order.len())];
    match replayed {
        [first, .., last] => arrival(last) - arrival(first),
        _ => 0,
    }
}
