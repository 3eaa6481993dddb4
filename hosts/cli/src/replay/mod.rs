//! Driving the cache with a trace. One request after the other: look-up, load, end of lease, save, checkpoints.

mod driver;
mod naming;
mod outcome;
mod payload;
mod shadow;
mod swap;

use std::time::Instant;

use driver::Driver;
use reprise::{Cache, PlanGuard, Shadowing};

pub use naming::{Grid, Misfit};
pub use outcome::{FailedSwap, Integers, IoTimes, Outcome};
pub use payload::{Check, Payload};
pub use shadow::{ShadowChoice, ShadowError, shadowing};
pub use swap::{Swap, SwapError};

use crate::trace::Trace;

/// How a trace is replayed.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only the first requests, in order of arrival.
    pub limit: Option<usize>,
    /// Microseconds between the starts of sessions, for session-scoped traces.
    pub session_gap_us: u64,
    /// Policies to put in on the way.
    pub swaps: Vec<Swap>,
    /// Candidates to run beside the policies that serve.
    pub shadow: Option<Shadowing>,
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
    /// The candidates of a shadow did not come in.
    #[error("putting the candidates into the shadow")]
    Shadow {
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
    let mut driver = Driver::new(cache, trace, options)?;
    while let Some(turn) = driver.next_turn()? {
        driver.serve(turn, &mut *progress)?;
    }
    Ok(driver.outcome(start.elapsed()))
}

/// The plan of one request, and what went wrong on the way to it.
pub struct Planned {
    /// What the replay would do with the request.
    pub plan: PlanGuard,
    /// Swaps up to the request that were not made because the policy failed on its way in; the running one stayed.
    pub failed_swaps: Vec<FailedSwap>,
}

/// Replays what comes before request `number` (from 1), and plans that request, adopting at most `at_most_tokens`; `None` if the
/// replay ends before.
///
/// # Errors
/// As for [`replay`].
pub fn plan(
    cache: &Cache,
    trace: &Trace,
    options: &Options,
    (number, at_most_tokens): (u64, u32),
    progress: Progress<'_>,
) -> Result<Option<Planned>, ReplayError> {
    let mut driver = Driver::new(cache, trace, options)?;
    while let Some(turn) = driver.next_turn()? {
        if turn.number == number {
            let plan = turn.plan(at_most_tokens)?;
            return Ok(Some(Planned { plan, failed_swaps: driver.failed_swaps }));
        }
        driver.serve(turn, &mut *progress)?;
    }
    Ok(None)
}
