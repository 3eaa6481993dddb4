//! Replay without types: one pool of equal blocks, no checkpoints, no model. It gives the integers of the public simulator
//! `kvcache-simulator` 0.1.3, so that an eviction policy can be held against published figures and against the best
//! that is possible in hindsight.
//!
//! Its rules, where they differ from those of the typed replay:
//!
//! - Requests are taken in file order. One without ids, or with an empty prompt, is left out. Blocks are the trace's own: block i of a
//!   prompt of N tokens counts max(1, min(S, N - i·S)) tokens, the partial last block included.
//! - Only the last half of the requests is measured, from request floor(n / 2) + 1 on. If the pool was never full before, what was
//!   found says little about the capacity, and the result is 0 ([`Mode::Underfilled`]).
//! - [`Eviction`] says which block goes.

mod eviction;
mod fifo;
mod leaves;
mod order;
mod paths;
mod report;

use std::time::{Duration, Instant};

use serde::Serialize;

pub use eviction::{Eviction, UnknownEviction};
pub use report::Report;

use crate::trace::Trace;
use fifo::Fifo;
use leaves::Leaves;
use order::{FurthestUse, LeastRecent};
use paths::Paths;

/// What is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Blocks the pool holds. With 0 nothing is found.
    pub capacity_blocks: u32,
    /// Which block goes when the pool is full.
    pub eviction: Eviction,
    /// Only the first requests, in file order, not counting those that are left out.
    pub limit: Option<usize>,
}

/// Whether the measured half began with a pool that had been full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Mode {
    /// It had: the last half of the requests was measured.
    #[serde(rename = "fixed_window")]
    FixedWindow,
    /// It had not: what was found tells of a cold start rather than of the capacity.
    #[serde(rename = "underfilled_at_window")]
    Underfilled,
}

/// What a replay without types gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Requests replayed.
    pub requests: usize,
    /// How many of them, the last ones, were measured.
    pub measured_requests: usize,
    /// Blocks of all prompts.
    pub blocks: u64,
    /// Different blocks among them; a block is known by its whole path.
    pub distinct_blocks: u32,
    /// Tokens of the measured prompts.
    pub measured_tokens: u64,
    /// Tokens of the measured prompts that were found in the pool, whatever the mode.
    pub found_tokens: u64,
    /// Whether `found_tokens` counts.
    pub mode: Mode,
    /// Time from the decoded trace to the result.
    pub elapsed: Duration,
}

impl Outcome {
    /// Tokens found, as the public simulator reports them: 0 if the pool was underfilled.
    pub fn hit_tokens(&self) -> u64 {
        match self.mode {
            Mode::FixedWindow => self.found_tokens,
            Mode::Underfilled => 0,
        }
    }
}

/// Why there is nothing to replay.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UntypedError {
    /// No request has both tokens and ids.
    #[error("replaying {trace} without types: none of its requests has both a prompt and block ids")]
    NothingToReplay {
        /// The trace.
        trace: String,
    },
    /// A limit of no requests.
    #[error("replaying without types: --limit 0 leaves no request to measure")]
    NoRequests,
}

/// Replays `trace` through one pool of blocks. Offline: `optimal` knows every later request.
///
/// Memory beside the trace: at most about 60 bytes per distinct block, most of it while paths are numbered.
///
/// # Errors
/// When no request is left to replay.
pub fn replay(trace: &Trace, options: &Options) -> Result<Outcome, UntypedError> {
    let start = Instant::now();
    if options.limit == Some(0) {
        return Err(UntypedError::NoRequests);
    }
    let paths = Paths::of(trace, options.limit.unwrap_or(usize::MAX));
    if paths.requests() == 0 {
        return Err(UntypedError::NothingToReplay { trace: trace.name.clone() });
    }
    let capacity = options.capacity_blocks;
    let (found_tokens, filled) = match options.eviction {
        // Nothing can be found, and nothing can be said about filling what holds nothing.
        _ if capacity == 0 => (0, true),
        Eviction::Fifo => found(&paths, Fifo::new(capacity, paths.blocks())),
        Eviction::Lru => found(&paths, Leaves::new(capacity, paths.parents(), LeastRecent::default())),
        Eviction::Optimal => found(&paths, Leaves::new(capacity, paths.parents(), FurthestUse::new(&paths))),
    };
    let warm_up = warm_up(&paths);
    Ok(Outcome {
        requests: paths.requests(),
        measured_requests: paths.requests() - warm_up,
        blocks: (0..paths.requests()).map(|request| paths.len(request) as u64).sum(),
        distinct_blocks: paths.blocks(),
        measured_tokens: (warm_up..paths.requests())
            .map(|request| paths.leading_tokens(request, paths.len(request)))
            .sum(),
        found_tokens,
        mode: if filled { Mode::FixedWindow } else { Mode::Underfilled },
        elapsed: start.elapsed(),
    })
}

/// A pool of blocks under some policy.
trait Pool {
    /// Looks a path up, then inserts what is missing. Returns how many of its leading blocks were found.
    fn serve(&mut self, path: &[u32]) -> usize;

    /// Whether the pool has ever held as many blocks as it can.
    fn was_full(&self) -> bool;
}

/// Requests that are not measured.
fn warm_up(paths: &Paths) -> usize {
    paths.requests() / 2
}

/// Tokens found in the measured half, and whether the pool had been full before it.
fn found(paths: &Paths, mut pool: impl Pool) -> (u64, bool) {
    let mut path = Vec::new();
    let mut tokens = 0;
    let mut filled = false;
    for request in 0..paths.requests() {
        if request == warm_up(paths) {
            filled = pool.was_full();
        }
        paths.fill(request, &mut path);
        let blocks = pool.serve(&path);
        if request >= warm_up(paths) {
            tokens += paths.leading_tokens(request, blocks);
        }
    }
    (tokens, filled)
}
