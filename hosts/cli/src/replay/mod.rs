//! Driving the cache with a trace. One request after the other: look-up, load, end of lease, save, checkpoints.

mod naming;
mod outcome;
mod payload;
mod swap;

use std::time::Instant;

use reprise::{Cache, Namespace, NamespaceHandle, Sequence};
use reprise_core::{Digest, prefix::NamespaceKey};

pub use naming::{Grid, Misfit};
pub use outcome::{FailedSwap, IoTimes, Outcome};
pub use payload::{Check, Payload};
pub use swap::{Swap, SwapError};

use crate::trace::{Request, Trace};

/// How a trace is replayed.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only the first requests, in order of arrival.
    pub limit: Option<usize>,
    /// Microseconds between the starts of sessions, for session-scoped traces.
    pub session_gap_us: u64,
    /// Policies to put in on the way.
    pub swaps: Vec<Swap>,
    /// Compare every loaded byte with what it must be.
    pub verify: bool,
}

/// Why a replay did not end.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// Block sizes that do not divide.
    #[error(transparent)]
    Misfit(#[from] Misfit),
    /// The cache refused a request.
    #[error("request {number}")]
    Request {
        /// From 1.
        number: u64,
        /// Why.
        source: reprise::RequestError,
    },
    /// A policy that was to come in did not load.
    #[error("swapping in the policy {choice} before request {number}")]
    Swap {
        /// From 1.
        number: u64,
        /// What was to come in.
        choice: String,
        /// Why.
        source: Box<reprise::PolicyError>,
    },
    /// The store returned a byte that was not put.
    #[error(
        "request {number}: a loaded record is not what was saved. This must never happen: keep the store and report it"
    )]
    WrongByte {
        /// From 1.
        number: u64,
    },
}

/// Called after each request with the number of requests done, the blocks decided, and the cache.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64, &Cache);

/// Replays `trace` through `cache`.
///
/// The request number is the clock; on a store that was used before it goes on behind the latest use.
///
/// # Errors
/// When block sizes do not divide, a swap fails, or a loaded byte is wrong.
pub fn replay(cache: &Cache, trace: &Trace, options: &Options, progress: Progress<'_>) -> Result<Outcome, ReplayError> {
    let start = Instant::now();
    let shape = cache.shape();
    let grid = Grid::new(shape.block_tokens, trace.block_tokens)?;
    let mut order = trace.order_of_arrival(options.session_gap_us);
    order.truncate(options.limit.unwrap_or(usize::MAX));
    let identity = Namespace::new(cache.config().model.name(), "replayed").block_tokens(shape.block_tokens);
    let request_error = |number| move |source| ReplayError::Request { number, source };
    let namespace = cache.namespace(&identity).map_err(request_error(0))?;
    let stored = cache.config().store.is_some();
    let mut names = Names {
        key: stored.then(|| identity.key()).transpose().map_err(|error| request_error(0)(error.into()))?,
        namespace,
        grid,
        tokens: Vec::new(),
        decisions: 0,
    };
    let check = Check::new(options.verify && stored);
    let mut swaps = options.swaps.clone();
    swaps.sort_by_key(|swap| swap.before);
    let mut swaps = swaps.into_iter().peekable();
    let mut io = IoTimes::default();
    let mut failed_swaps = Vec::new();

    for (number, &index) in (1..).zip(&order) {
        while let Some(swap) = swaps.next_if(|swap| swap.before == number) {
            let Swap { role, choice, .. } = swap;
            let choice_text = choice.to_string();
            match cache.policies().swap(role, &choice) {
                Ok(()) => {}
                Err(error) if error.is_misbehaviour() => failed_swaps.push(FailedSwap {
                    before: number,
                    role,
                    policy: choice_text,
                    reason: error.to_string(),
                }),
                Err(source) => {
                    return Err(ReplayError::Swap { number, choice: choice_text, source: Box::new(source) });
                }
            }
        }
        let now = cache.recovery().last_use + number;
        let mut sequence = names.sequence(trace, &trace.requests[index as usize]);
        serve(cache, &mut sequence, &check, now, &mut io).map_err(request_error(number))?;
        if check.wrong_records() > 0 {
            return Err(ReplayError::WrongByte { number });
        }
        progress(number, names.decisions, cache);
    }
    let skipped = swaps.map(|swap| swap.before).collect();
    Ok(Outcome::new(cache, start.elapsed(), names.decisions, check.verified_bytes(), io, skipped, failed_swaps))
}

/// One request. Its lease ends before anything is saved, and what it saved is readable before the next.
fn serve(
    cache: &Cache,
    sequence: &mut Sequence,
    check: &Check,
    now: u64,
    io: &mut IoTimes,
) -> Result<(), reprise::RequestError> {
    let plan = sequence.plan(now)?;
    if plan.adopted_tokens > 0 {
        let loading = Instant::now();
        plan.restore(check.clone())?.wait();
        io.loading += loading.elapsed();
    }
    drop(plan);
    let saving = Instant::now();
    sequence.save(&mut Payload)?;
    sequence.capture(&mut Payload)?;
    cache.drain();
    io.saving += saving.elapsed();
    Ok(())
}

/// Names the blocks of requests.
struct Names {
    /// `None`: nothing is stored, and names come straight from the ids.
    key: Option<NamespaceKey>,
    namespace: NamespaceHandle,
    grid: Grid,
    tokens: Vec<u32>,
    decisions: u64,
}

impl Names {
    fn sequence(&mut self, trace: &Trace, request: &Request) -> Sequence {
        let ids = trace.ids(request);
        let blocks = self.grid.complete_blocks(request.prompt_tokens, ids.len());
        self.decisions += u64::from(blocks);
        let mut digests: Vec<Digest> = Vec::with_capacity(blocks as usize);
        match &self.key {
            Some(key) => {
                self.grid.name_by_tokens(key, request.scope, ids, blocks, &mut self.tokens, &mut digests);
            }
            None => self.grid.name_by_ids(request.scope, ids, blocks, &mut digests),
        }
        self.namespace.sequence_of_digests(u64::from(request.prompt_tokens), digests)
    }
}
