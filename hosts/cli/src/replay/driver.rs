//! The requests of a trace, one after the other: named, with the policies in that are to serve them, and served.

use std::{
    iter::Peekable,
    time::{Duration, Instant},
    vec::IntoIter,
};

use reprise::{Cache, Namespace, NamespaceHandle, PlanGuard, RequestError, Sequence};
use reprise_core::{Digest, prefix::NamespaceKey};

use super::{Check, FailedSwap, Grid, IoTimes, Options, Outcome, Payload, Progress, ReplayError, Swap};
use crate::trace::{Request, Trace};

/// A replay on its way.
pub(super) struct Driver<'a> {
    cache: &'a Cache,
    trace: &'a Trace,
    /// Requests still to come, with their numbers.
    order: std::iter::Zip<std::ops::RangeFrom<u64>, IntoIter<u32>>,
    names: Names,
    check: Check,
    swaps: Peekable<IntoIter<Swap>>,
    io: IoTimes,
    pub failed_swaps: Vec<FailedSwap>,
}

/// A request whose turn it is.
pub(super) struct Turn {
    /// From 1.
    pub number: u64,
    now: u64,
    sequence: Sequence,
}

impl Turn {
    /// Plans the request, adopting at most `at_most_tokens`.
    pub fn plan(mut self, at_most_tokens: u32) -> Result<PlanGuard, ReplayError> {
        self.sequence.plan_at_most(self.now, at_most_tokens).map_err(request_error(self.number))
    }
}

impl<'a> Driver<'a> {
    /// At the start of `trace`.
    pub fn new(cache: &'a Cache, trace: &'a Trace, options: &Options) -> Result<Self, ReplayError> {
        let mut order = trace.order_of_arrival(options.session_gap_us);
        order.truncate(options.limit.unwrap_or(usize::MAX));
        let mut swaps = options.swaps.clone();
        swaps.sort_by_key(|swap| swap.before);
        let names = Names::new(cache, trace)?;
        if let Some(shadowing) = &options.shadow {
            let begun = cache.policies().shadow(shadowing);
            begun.map_err(|source| ReplayError::Shadow { source: Box::new(source) })?;
        }
        let check = Check::new(options.verify && names.key.is_some());
        Ok(Self {
            cache,
            trace,
            order: (1..).zip(order),
            names,
            check,
            swaps: swaps.into_iter().peekable(),
            io: IoTimes::default(),
            failed_swaps: Vec::new(),
        })
    }

    /// The next request, after the swaps that come before it; `None` at the end.
    pub fn next_turn(&mut self) -> Result<Option<Turn>, ReplayError> {
        let Some((number, index)) = self.order.next() else { return Ok(None) };
        self.swap_before(number)?;
        let now = self.cache.recovery().last_use + number;
        let sequence = self.names.sequence(self.trace, &self.trace.requests[index as usize]);
        Ok(Some(Turn { number, now, sequence }))
    }

    fn swap_before(&mut self, number: u64) -> Result<(), ReplayError> {
        while let Some(Swap { role, choice, .. }) = self.swaps.next_if(|swap| swap.before == number) {
            let choice_text = choice.to_string();
            match self.cache.policies().swap(role, &choice) {
                Ok(()) => {}
                Err(error) if error.is_misbehaviour() => self.failed_swaps.push(FailedSwap {
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
        Ok(())
    }

    /// Serves a request and tells `progress`.
    pub fn serve(&mut self, turn: Turn, progress: Progress<'_>) -> Result<(), ReplayError> {
        let Turn { number, now, mut sequence } = turn;
        self.serve_sequence(&mut sequence, now).map_err(request_error(number))?;
        if self.check.wrong_records() > 0 {
            return Err(ReplayError::WrongByte { number });
        }
        progress(number, self.names.decisions, self.cache);
        Ok(())
    }

    /// The lease ends before anything is saved, and what was saved is readable before the next request.
    fn serve_sequence(&mut self, sequence: &mut Sequence, now: u64) -> Result<(), RequestError> {
        let plan = sequence.plan(now)?;
        if plan.adopted_tokens > 0 {
            let loading = Instant::now();
            plan.restore(self.check.clone())?.wait();
            self.io.loading += loading.elapsed();
        }
        drop(plan);
        let saving = Instant::now();
        sequence.save(&mut Payload)?;
        sequence.capture(&mut Payload)?;
        self.cache.drain();
        self.io.saving += saving.elapsed();
        Ok(())
    }

    /// What the replay gave, which took `elapsed`.
    pub fn outcome(self, elapsed: Duration) -> Outcome {
        let Self { cache, names, check, swaps, io, failed_swaps, .. } = self;
        let skipped = swaps.map(|swap| swap.before).collect();
        Outcome::new(cache, elapsed, names.decisions, check.verified_bytes(), io, skipped, failed_swaps)
    }
}

fn request_error(number: u64) -> impl Fn(RequestError) -> ReplayError {
    move |source| ReplayError::Request { number, source }
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
    fn new(cache: &Cache, trace: &Trace) -> Result<Self, ReplayError> {
        let block_tokens = cache.shape().block_tokens;
        let grid = Grid::new(block_tokens, trace.block_tokens)?;
        let identity = Namespace::new(cache.config().model.name(), "replayed").block_tokens(block_tokens);
        let namespace = cache.namespace(&identity).map_err(request_error(0))?;
        let stored = cache.config().store.is_some();
        let key = stored.then(|| identity.key()).transpose().map_err(|error| request_error(0)(error.into()))?;
        Ok(Self { key, namespace, grid, tokens: Vec::new(), decisions: 0 })
    }

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
