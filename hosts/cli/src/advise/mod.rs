//! Which policies to take, and how to split a budget between blocks and checkpoints: by trying them on a trace.
//!
//! [`advise`] replays the trace on paper under every pair of shipped policies, with a few splits each, in parallel. The best pairs are
//! refined: other periods, where a policy has one, and splits in between ([`crate::search`]). A trial is scored by the modelled time
//! until all prompts are in place: prefill that is left plus loads ([`crate::score`]). The result is a pure function of the question.

mod candidates;
mod file;
mod report;
mod trial;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, btree_map::Entry},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use reprise::{Config, OpenError, Shape};

pub use candidates::Pair;
pub use file::toml;
pub use report::Report;
pub use trial::{Trial, Value};

use crate::{
    bound::{self, Room},
    replay::{Misfit, ReplayError},
    search,
    trace::Trace,
};

/// Shares of the budget, in thousandths, that windows are given at first.
const COARSE: [u16; 6] = [0, 50, 125, 250, 500, 750];

/// Splits closer together than this are not told apart, in thousandths.
const FINEST: u16 = 10;

/// Pairs that are refined.
const FINALISTS: usize = 3;

/// How much longer than the best a choice may take that is told of because it writes less, in millionths.
pub const LITTLE_LONGER_PPM: u32 = 10_000;

/// What advice is asked for.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// Microseconds between the starts of sessions.
    pub session_gap_us: u64,
    /// Only the first requests, in order of arrival.
    pub limit: Option<usize>,
    /// Model, block size, planner, prices and whether plans replay. Policies and quotas are what is asked for.
    pub config: Config,
    /// Bytes for blocks and checkpoints together.
    pub budget_bytes: u64,
    /// Bytes a day that a device of this size may be given to write at most, at the pace of the trace; what writes more comes after all that
    /// does not.
    pub most_bytes_per_day: Option<u64>,
    /// Replays at once.
    pub jobs: usize,
}

/// The answer.
#[derive(Clone, Debug)]
pub struct Advice {
    /// The best trial of each of the pairs that were refined, the best pair first.
    pub finalists: Vec<Trial>,
    /// The best trial of every pair at the splits tried at first, the best first.
    pub field: Vec<Trial>,
    /// Replays made.
    pub replays: usize,
    /// Tokens that no policy saves more of with this budget on this trace.
    pub bound_tokens: u64,
}

impl Advice {
    /// What to take.
    pub fn best(&self) -> &Trial {
        &self.finalists[0]
    }

    /// What writes the least of all that takes at most [`LITTLE_LONGER_PPM`] longer than the best, if that is less than half of what the
    /// best writes: for devices that wear out.
    pub fn lighter(&self) -> Option<&Trial> {
        let best = self.best();
        let allowed = u128::from(best.time_ns()) * u128::from(1_000_000 + LITTLE_LONGER_PPM) / 1_000_000;
        let lightest = self
            .finalists
            .iter()
            .chain(&self.field)
            .filter(|trial| !trial.writes_too_much && u128::from(trial.time_ns()) <= allowed)
            .min_by_key(|trial| (trial.score.device_bytes(), trial.time_ns()))?;
        (lightest.score.device_bytes() < best.score.device_bytes() / 2).then_some(lightest)
    }
}

/// Why there is no advice.
#[derive(Debug, thiserror::Error)]
pub enum AdviseError {
    /// The model, the block size or the budget makes no cache.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Block sizes that do not divide.
    #[error(transparent)]
    Misfit(#[from] Misfit),
    /// The budget holds not one block.
    #[error("a budget of {budget_bytes} bytes does not hold one block of {slot_bytes}: give more with --budget-gib")]
    TooSmall {
        /// The budget.
        budget_bytes: u64,
        /// What a block occupies.
        slot_bytes: u64,
    },
    /// The trace has no requests.
    #[error("{trace} has no requests to go by")]
    Nothing {
        /// Its name.
        trace: String,
    },
    /// A replay failed.
    #[error("replaying under {pair}")]
    Replay {
        /// Under which policies.
        pair: String,
        /// Why.
        source: Box<ReplayError>,
    },
}

/// Finds the best policies and split. `progress` is told how many replays are done and how many are known to be needed, from any thread.
///
/// # Errors
/// When the question makes no sense, or a replay fails.
pub fn advise(question: &Question<'_>, progress: &(dyn Fn(usize, usize) + Sync)) -> Result<Advice, AdviseError> {
    let Question { trace, config, budget_bytes, .. } = question;
    if question.limit.unwrap_or(trace.requests.len()).min(trace.requests.len()) == 0 {
        return Err(AdviseError::Nothing { trace: trace.name.clone() });
    }
    let shape = Shape::new(&config.model, config.block_tokens, *budget_bytes, *budget_bytes)?;
    if shape.history.slots == 0 {
        let slot_bytes = shape.history.slot_bytes;
        return Err(AdviseError::TooSmall { budget_bytes: *budget_bytes, slot_bytes });
    }
    let room = Room::Together(*budget_bytes);
    let terms = bound::Terms {
        session_gap_us: question.session_gap_us,
        limit: question.limit,
        rooms: vec![room],
        ..bound::Terms::new(&shape, config.replay)
    };
    let bound_tokens = bound::saved_tokens(trace, &terms)?.tokens(room);

    let shares: &[u16] = if shape.window.is_some() { &COARSE } else { &COARSE[..1] };
    let pairs = candidates::pairs(config.block_tokens);
    let tries: Vec<(&Pair, u16)> =
        pairs.iter().flat_map(|pair| shares.iter().map(move |&share| (pair, share))).collect();
    let (done, known) = (AtomicUsize::new(0), AtomicUsize::new(tries.len()));
    let attempt = |pair: &Pair, share: u16| {
        let trial = trial::attempt(question, pair, share);
        progress(done.fetch_add(1, Ordering::Relaxed) + 1, known.load(Ordering::Relaxed));
        trial
    };
    let tried = in_parallel(question.jobs, &tries, |&(pair, share)| attempt(pair, share))?;
    let mut by_pair: BTreeMap<usize, BTreeMap<u16, Trial>> = BTreeMap::new();
    for (index, trial) in tried.into_iter().enumerate() {
        by_pair.entry(index / shares.len()).or_default().insert(trial.window_share, trial);
    }
    let mut field: Vec<(Trial, BTreeMap<u16, Trial>)> =
        by_pair.into_values().map(|trials| (best_of(&trials), trials)).collect();
    // Stable: of equals the pair that is told of first.
    field.sort_by_key(|(best, _)| Reverse(best.value()));

    let finalists = finalists(&field);
    let refined = in_parallel(question.jobs, &finalists, |&index| {
        let (best, trials) = &field[index];
        refine(best, trials, shares, &|pair, share| {
            known.fetch_add(1, Ordering::Relaxed);
            attempt(pair, share)
        })
    })?;
    let mut finalists = refined;
    finalists.sort_by_key(|trial| Reverse(trial.value()));
    let field = field.into_iter().map(|(best, _)| best).collect();
    Ok(Advice { finalists, field, replays: done.into_inner(), bound_tokens })
}

fn best_of(trials: &BTreeMap<u16, Trial>) -> Trial {
    let values = trials.iter().map(|(&share, trial)| (share, trial.value())).collect();
    let share = search::best(&values).map_or(0, |(share, _)| share);
    trials[&share].clone()
}

/// The first of the field, leaving out pairs that differ from a better one by settings only.
fn finalists(field: &[(Trial, BTreeMap<u16, Trial>)]) -> Vec<usize> {
    let mut names = Vec::new();
    let mut finalists = Vec::new();
    for (index, (trial, _)) in field.iter().enumerate() {
        if !names.contains(&trial.pair.names()) && finalists.len() < FINALISTS {
            names.push(trial.pair.names());
            finalists.push(index);
        }
    }
    finalists
}

/// Other periods at the same split, then other splits.
fn refine(
    best: &Trial,
    trials: &BTreeMap<u16, Trial>,
    shares: &[u16],
    attempt: &dyn Fn(&Pair, u16) -> Result<Trial, AdviseError>,
) -> Result<Trial, AdviseError> {
    let mut known = trials.clone();
    let mut pair = best.pair.clone();
    let mut value = best.value();
    for other in best.pair.neighbours() {
        let trial = attempt(&other, best.window_share)?;
        if trial.value() > value {
            value = trial.value();
            pair = other;
            known = BTreeMap::from([(trial.window_share, trial)]);
        }
    }
    search::maximise(shares, FINEST, |shares| {
        let mut values = Vec::new();
        for &share in shares {
            let trial = match known.entry(share) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry.insert(attempt(&pair, share)?),
            };
            values.push(trial.value());
        }
        Ok::<_, AdviseError>(values)
    })?;
    Ok(best_of(&known))
}

/// Does `work` on all `items`, several at once. Results come in the order of the items; the first error ends it.
fn in_parallel<T: Sync, R: Send>(
    jobs: usize,
    items: &[T],
    work: impl Fn(&T) -> Result<R, AdviseError> + Sync,
) -> Result<Vec<R>, AdviseError> {
    let next = AtomicUsize::new(0);
    let take = || -> Result<Vec<(usize, R)>, AdviseError> {
        let mut results = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return Ok(results) };
            // Whoever fails leaves nothing for the others to begin.
            results.push((index, work(item).inspect_err(|_| next.store(items.len(), Ordering::Relaxed))?));
        }
    };
    let mut results = Vec::with_capacity(items.len());
    thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.clamp(1, items.len().max(1))).map(|_| scope.spawn(take)).collect();
        for worker in workers {
            results.extend(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok::<_, AdviseError>(())
    })?;
    results.sort_by_key(|(index, _)| *index);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}
