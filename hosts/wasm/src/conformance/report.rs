//! What came of a check, for a reader.

use std::time::Duration;

use crate::component::{Component, Description};

/// One thing that is expected of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What is expected, a sentence.
    pub name: &'static str,
    /// How it failed; `None` if it passed.
    pub failure: Option<String>,
}

/// Calls of the long run: `step` with 256 events each, or `choose`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calls {
    /// How many.
    pub calls: u64,
    /// Events that they handed over, or spans.
    pub items: u64,
    /// Half of them took no longer, boundary included.
    pub median: Duration,
    /// 99 of a hundred took no longer.
    pub p99: Duration,
    /// Fuel that an item used on average, in a run that counts it.
    pub fuel_per_item: Option<u64>,
}

/// What came of [`check`](crate::check).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What the policy says of itself.
    pub description: Description,
    /// All that was tried, in order.
    pub checks: Vec<Check>,
    /// What its calls cost; `None` if the long run failed.
    pub calls: Option<Calls>,
    /// Linear memory that an instance had at most, in bytes.
    pub memory_bytes: usize,
}

impl Report {
    pub(super) fn of(component: &Component) -> Self {
        Self { description: component.description().clone(), checks: Vec::new(), calls: None, memory_bytes: 0 }
    }

    /// Whether nothing failed.
    pub fn passed(&self) -> bool {
        self.checks.iter().all(|check| check.failure.is_none())
    }

    /// Notes what came of one check, and gives what it found.
    pub(super) fn note<T>(&mut self, name: &'static str, outcome: Result<T, impl ToString>) -> Option<T> {
        let (found, failure) = match outcome {
            Ok(found) => (Some(found), None),
            Err(failure) => (None, Some(failure.to_string())),
        };
        self.checks.push(Check { name, failure });
        found
    }

    /// Notes how much memory an instance has.
    pub(super) fn saw_memory(&mut self, bytes: usize) {
        self.memory_bytes = self.memory_bytes.max(bytes);
    }
}

/// The median and the 99th percentile; `None` of no time at all.
pub(super) fn quantiles(times: &mut [Duration]) -> Option<(Duration, Duration)> {
    times.sort_unstable();
    let at = |percent: usize| times.get((times.len() * percent / 100).min(times.len().checked_sub(1)?)).copied();
    Some((at(50)?, at(99)?))
}
