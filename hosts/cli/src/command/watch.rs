//! What a person sees of a replay on its way.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use reprise::{Cache, Group, Stats};

use crate::{figures::human_bytes, progress::bar, replay::FailedSwap};

/// Shows how far a replay is, and warns when a policy fails.
pub(super) struct Watch {
    bar: ProgressBar,
    shown: Instant,
    policy_failures: usize,
}

impl Watch {
    /// Counts to `requests`; without a bar if `quiet`.
    pub fn new(requests: u64, quiet: bool) -> Self {
        Self { bar: bar(requests, "requests", quiet), shown: Instant::now(), policy_failures: 0 }
    }

    /// So many requests are done.
    pub fn progress(&mut self, done: u64, cache: &Cache) {
        self.warn(cache);
        if self.shown.elapsed() >= Duration::from_millis(200) {
            self.shown = Instant::now();
            self.bar.set_position(done);
            self.bar.set_message(speed(&cache.stats()));
        }
    }

    /// Takes the bar away.
    pub fn finish(&mut self, cache: &Cache) {
        // Of a replay without requests, too.
        self.warn(cache);
        self.bar.finish_and_clear();
    }

    /// Warns of policies that did not come in. Returns how many failures there were of all kinds.
    pub fn failures(self, failed_swaps: &[FailedSwap]) -> usize {
        failed_swaps.iter().for_each(|failed| eprintln!("reprise: warning: {failed}"));
        self.policy_failures + failed_swaps.len()
    }

    fn warn(&mut self, cache: &Cache) {
        for notice in cache.policies().take_notices() {
            self.policy_failures += usize::from(notice.failure);
            let kind = if notice.failure { "warning" } else { "note" };
            self.bar.suspend(|| eprintln!("reprise: {kind}: {notice}"));
        }
    }
}

fn speed(stats: &Stats) -> String {
    let counters = &stats.counters;
    let saved = counters.prompt_tokens - counters.computed_tokens;
    let share = if counters.prompt_tokens == 0 { 0.0 } else { 100.0 * saved as f64 / counters.prompt_tokens as f64 };
    let written: u64 = Group::ALL.iter().map(|&group| counters.group(group).written_bytes).sum();
    let loaded: u64 = Group::ALL.iter().map(|&group| counters.group(group).loaded_bytes).sum();
    format!("{share:.0} % of tokens saved, {} written, {} read", human_bytes(written), human_bytes(loaded))
}
