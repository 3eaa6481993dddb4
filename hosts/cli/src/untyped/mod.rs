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
//! - [`Eviction`] says which block goes: a [`Rule`] of the simulation, or any cache policy. The policy `lru` gives the integers of
//!   [`Rule::Lru`].
//!
//! Paths are numbered once and replayed as often as one likes, on any number of threads:
//!
//! ```
//! use reprise_cli::{trace::Trace, untyped::{Options, Paths, Rule, replay_paths}};
//!
//! let paths = Paths::of(&Trace::sample()?, None)?;
//! let lru = |capacity_blocks| replay_paths(&paths, &Options { capacity_blocks, eviction: Rule::Lru.into() });
//! assert!(lru(1_000)?.found_tokens < lru(10_000)?.found_tokens);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod eviction;
mod fifo;
mod flat;
mod leaves;
mod list;
mod order;
mod paths;
mod policed;
mod report;
mod s3_fifo;

use std::time::{Duration, Instant};

use reprise::PolicyError;
use serde::Serialize;

pub use eviction::{Eviction, Rule};
pub use paths::Paths;
pub use report::Report;

use fifo::Fifo;
use flat::{FlatLru, FlatPool};
use leaves::Leaves;
use order::{FurthestUse, LeastRecent};
use policed::Policed;
use s3_fifo::S3Fifo;

/// What is simulated.
#[derive(Clone)]
pub struct Options {
    /// Blocks the pool holds. With 0 nothing is found.
    pub capacity_blocks: u32,
    /// Which block goes when the pool is full.
    pub eviction: Eviction,
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
    /// Tokens of the measured prompts that were found in the pool from the start on, whatever the mode.
    pub found_tokens: u64,
    /// Whether `found_tokens` counts.
    pub mode: Mode,
    /// Blocks of all prompts that were found. A flat rule finds blocks behind one that is missing, too: as libCacheSim counts, over the
    /// whole trace.
    pub found_blocks: u64,
    /// Blocks that came into the pool over the whole trace, each as often as it did.
    pub written_blocks: u64,
    /// Those of them that came in with measured requests.
    pub measured_written_blocks: u64,
    /// What the policy did wrong, if it did: leaf LRU decided from there on.
    pub failure: Option<PolicyFailure>,
    /// Time from the numbered paths to the result.
    pub elapsed: Duration,
}

/// A policy that failed and was replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PolicyFailure {
    /// How it was asked for.
    pub policy: String,
    /// At which request, from 1; 0 before the first.
    pub request: u64,
    /// What it did.
    pub error: String,
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
#[derive(Debug, thiserror::Error)]
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
    /// The policy cannot be run as it was asked for.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}

/// Replays `paths` through one pool of blocks. Offline: [`Rule::Optimal`] knows every later request.
///
/// Memory beside the paths: at most about 40 bytes per distinct block, and what a policy takes.
///
/// # Errors
/// When the policy refuses its settings. One that fails later is replaced, see [`Outcome::failure`].
pub fn replay_paths(paths: &Paths, options: &Options) -> Result<Outcome, UntypedError> {
    let start = Instant::now();
    let (capacity, blocks) = (options.capacity_blocks, paths.blocks());
    let tally = match &options.eviction {
        // Nothing can be found, and nothing can be said about filling what holds nothing.
        _ if capacity == 0 => Tally { filled: true, ..Tally::default() },
        Eviction::Rule(Rule::Fifo) => Tally::of(paths, Fifo::new(capacity, blocks)),
        Eviction::Rule(Rule::Lru) => Tally::of(paths, Leaves::new(capacity, paths.parents(), LeastRecent::default())),
        Eviction::Rule(Rule::Optimal) => {
            Tally::of(paths, Leaves::new(capacity, paths.parents(), FurthestUse::new(paths)))
        }
        Eviction::Rule(Rule::FlatLru) => Tally::of(paths, FlatPool::new(FlatLru::new(capacity, blocks), capacity)),
        Eviction::Rule(Rule::FlatS3Fifo) => Tally::of(paths, FlatPool::new(S3Fifo::new(capacity, blocks), capacity)),
        Eviction::Policy { choice, loaded } => {
            let group = policed::group(capacity, paths.block_tokens());
            let started = match loaded.start(std::slice::from_ref(&group)) {
                Err(error) if !error.is_misbehaviour() => return Err(error.into()),
                started => started,
            };
            Tally::of(paths, Policed::new(group, blocks, &choice.to_string(), started))
        }
    };
    let warm_up = warm_up(paths);
    Ok(Outcome {
        requests: paths.requests(),
        measured_requests: paths.requests() - warm_up,
        blocks: (0..paths.requests()).map(|request| paths.len(request) as u64).sum(),
        distinct_blocks: blocks,
        measured_tokens: (warm_up..paths.requests())
            .map(|request| paths.leading_tokens(request, paths.len(request)))
            .sum(),
        found_tokens: tally.found_tokens,
        mode: if tally.filled { Mode::FixedWindow } else { Mode::Underfilled },
        found_blocks: tally.found_blocks,
        written_blocks: tally.written_blocks,
        measured_written_blocks: tally.measured_written_blocks,
        failure: tally.failure,
        elapsed: start.elapsed(),
    })
}

/// A pool of blocks under some rule or policy.
trait Pool {
    /// Looks a path up, then inserts what is missing.
    fn serve(&mut self, path: &[u32]) -> Served;

    /// Whether the pool has ever held as many blocks as it can.
    fn was_full(&self) -> bool;

    /// What went wrong.
    fn failure(&mut self) -> Option<PolicyFailure> {
        None
    }
}

/// What became of a path, in blocks.
#[derive(Default)]
struct Served {
    /// Found from the start on.
    leading: usize,
    /// Found at all.
    hits: usize,
    /// Inserted.
    written: usize,
}

/// Requests that are not measured.
fn warm_up(paths: &Paths) -> usize {
    paths.requests() / 2
}

/// What all paths of a trace add up to.
#[derive(Default)]
struct Tally {
    /// In the measured half.
    found_tokens: u64,
    /// Whether the pool had been full before the measured half.
    filled: bool,
    found_blocks: u64,
    written_blocks: u64,
    measured_written_blocks: u64,
    failure: Option<PolicyFailure>,
}

impl Tally {
    /// Sends all paths through a pool.
    fn of(paths: &Paths, mut pool: impl Pool) -> Self {
        let mut path = Vec::new();
        let mut tally = Self::default();
        for request in 0..paths.requests() {
            if request == warm_up(paths) {
                tally.filled = pool.was_full();
            }
            paths.fill(request, &mut path);
            let Served { leading, hits, written } = pool.serve(&path);
            tally.found_blocks += hits as u64;
            tally.written_blocks += written as u64;
            if request >= warm_up(paths) {
                tally.found_tokens += paths.leading_tokens(request, leading);
                tally.measured_written_blocks += written as u64;
            }
        }
        tally.failure = pool.failure();
        tally
    }
}
