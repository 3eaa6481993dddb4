//! One replay with types, scored as it goes.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use reprise::{Budget, Cache, Config, OpenError, PolicyStatus, Shape};

use super::{
    Contender, Figures, Subject,
    figures::Verdict,
    split::{self, Division},
};
use crate::{
    replay::{Options, replay},
    score::Meter,
};

/// What is the same for every cell with types.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Model, block, planner, prices: everything but quotas and policies.
    pub config: Config,
    /// Microseconds between the starts of sessions.
    pub session_gap_us: u64,
    /// What the model's records are like.
    shape: Shape,
}

impl Setting {
    /// A setting without quotas and policies: those of `config` are not used.
    ///
    /// # Errors
    /// When the model does not fit the block.
    pub fn new(config: Config, session_gap_us: u64) -> Result<Self, OpenError> {
        let shape = Shape::new(&config.model, config.block_tokens, 0, 0)?;
        Ok(Self { config, session_gap_us, shape })
    }

    /// What the model's records are like; it says nothing of how many there are.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Refuses a budget that holds more records than can be kept track of.
    ///
    /// # Errors
    /// When it does.
    pub fn check(&self, budget_bytes: u64) -> Result<(), OpenError> {
        Shape::new(&self.config.model, self.config.block_tokens, budget_bytes, budget_bytes).map(drop)
    }

    /// The configuration of one replay, with `share` thousandths of the budget for windows unless they are learned.
    pub fn configure(&self, contender: &Contender, budget_bytes: u64, (division, share): (Division, u32)) -> Config {
        let (history_bytes, window_bytes) = split::quotas(budget_bytes, share, &self.shape);
        let checkpoints = contender.checkpoints.clone().unwrap_or_else(|| self.config.checkpoints.clone());
        let budget = (division == Division::Learned).then_some(Budget { bytes: budget_bytes });
        Config {
            budget,
            history_bytes,
            window_bytes,
            eviction: contender.eviction.clone(),
            checkpoints,
            ..self.config.clone()
        }
    }
}

/// Replays `subject` through a cache on paper. `decisions` counts on while it runs.
///
/// # Errors
/// When the cache does not open, or refuses a request.
pub fn evaluate(
    subject: &Subject,
    config: Config,
    session_gap_us: u64,
    decisions: &AtomicU64,
) -> anyhow::Result<Verdict> {
    let named = format!("{}+{}", config.eviction, config.checkpoints);
    let trace = &subject.trace;
    let replaying = || format!("replaying {} with {named}", subject.label);
    let mut meter = Meter::new(config.prices);
    let cache = Cache::open(config).with_context(replaying)?;
    let mut sums = subject.sessions.sums();
    let options = Options { limit: Some(subject.order.len()), session_gap_us, ..Options::default() };
    let mut counted = 0;
    let mut progress = |number: u64, decided: u64, cache: &Cache| {
        let saved_tokens = meter.observe(&cache.stats().counters);
        subject.sessions.add(&mut sums, subject.order[number as usize - 1], saved_tokens);
        decisions.fetch_add(decided - counted, Ordering::Relaxed);
        counted = decided;
    };
    let outcome = replay(&cache, trace, &options, &mut progress).with_context(replaying)?;
    if let Some(failed) = outcome.stats.policies.iter().find(|policy| policy.strikes > 0 || policy.retired) {
        return Ok(Err(failure(failed)));
    }
    let score = Box::new(meter.score(cache.shape(), subject.trace_us));
    let learned_permille = outcome.division.map(|division| division.window_permille);
    Ok(Ok(Figures::Typed { score, sessions: subject.sessions.figures(&sums), learned_permille }))
}

fn failure(policy: &PolicyStatus) -> String {
    let why = policy.last_strike.as_deref().unwrap_or("it was retired");
    let times = if policy.strikes == 1 { "once".to_owned() } else { format!("{} times", policy.strikes) };
    // What a policy says of itself may hold anything.
    let why: String = why.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("the {} policy `{}` failed {times}: {why}", policy.role, policy.name)
}
