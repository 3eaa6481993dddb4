//! Planning one request: look-up, the choice among exact plans, the lease, the captures.

use std::{
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use reprise_core::{
    Digest,
    plan::{Candidate, Candidates, Circumstances, Explain, Explanation, Lookup},
    policy::{Prompt, Span, TOLD_KEYS},
    tree::Found,
};
use serde::{Deserialize, Serialize};

use crate::{
    cache::{Inner, Vault, lock},
    error::RequestError,
    lease::{Lease, LeaseId},
    ledger::Ledger,
    policies::{LivePlan, Message, OfferedPlan},
    record::BlockSink,
    restore::Restore,
    sequence::Sequence,
};

/// Events that wait for the eviction policy until a plan hands them over: as a rule a save does, long before.
const MANY_EVENTS: usize = 4096;

/// What to do for one request: a plain value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Plan {
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Tokens covered by leading resident blocks.
    pub matched_tokens: u32,
    /// Tokens whose compressed entries to take from the cache: the write floor. What a replay computes below it is inexact in deep
    /// layers and must not overwrite what was loaded.
    pub adopted_tokens: u32,
    /// The last of these, to be computed again to rebuild the windows; 0 if a checkpoint is loaded.
    pub replayed_tokens: u32,
    /// Tokens that need a forward pass: replayed and not adopted ones.
    pub computed_tokens: u32,
    /// Whether the checkpoint at the end of what is adopted is loaded.
    pub loads_checkpoint: bool,
    /// Whether the draft layers go on as if the whole prompt had been computed: their windows are loaded with the checkpoint or rebuilt by the
    /// replay. `false` for a hit with a model that declares no draft group: drafts are off then until their windows have filled anew.
    pub drafts: bool,
    /// Why the plan does not adopt more, and what it costs.
    pub explanation: Explanation,
    /// Positions at which to capture the window while the rest is computed, ascending.
    pub captures: Vec<u32>,
    /// What keeps the records of the plan; `None` if nothing is adopted, or leases hold as much as they may: the restore then may find
    /// less than planned.
    pub lease: Option<LeaseId>,
}

impl Plan {
    /// Why the plan does not adopt more, by group: a value, and a line for people by its `Display`.
    pub fn explain(&self) -> &Explanation {
        &self.explanation
    }
}

/// Tokens below which nothing may be saved that the engine computed: what a replay adopts, and 0 without one. Set by the plan, and again by
/// a restore that was shortened.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteFloor(Arc<AtomicU32>);

impl WriteFloor {
    pub fn set(&self, taken: &Candidate) {
        let floor = if taken.replayed_tokens > 0 { taken.adopted_tokens } else { 0 };
        self.0.store(floor, Ordering::Release);
    }

    pub fn tokens(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }
}

/// What a sequence remembers of its plan.
pub(crate) struct Planned {
    pub now: u64,
    pub write_floor: WriteFloor,
    /// Planned captures not captured yet.
    pub captures: Vec<u32>,
}

/// Ends a lease when the last user of its records is done.
pub(crate) struct LeaseGuard {
    vault: Arc<Vault>,
    id: LeaseId,
    now: u64,
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        lock(&self.vault.ledger).end_lease(self.id, self.now);
    }
}

/// A plan with its lease, which ends when this is dropped and every restore from it is done.
pub struct PlanGuard {
    inner: Arc<Inner>,
    plan: Plan,
    digests: Arc<Vec<Digest>>,
    write_floor: WriteFloor,
    namespace: u16,
    now: u64,
    lease: Option<Arc<LeaseGuard>>,
}

impl Deref for PlanGuard {
    type Target = Plan;

    fn deref(&self) -> &Plan {
        &self.plan
    }
}

impl PlanGuard {
    /// Loads what the plan adopts into `sink`, behind the caller's back.
    ///
    /// # Errors
    /// None today; a tier that cannot take the request will say so here.
    pub fn restore<S: BlockSink>(&self, sink: S) -> Result<Restore<S>, RequestError> {
        let request = crate::restore::Request {
            plan: self.plan.clone(),
            digests: Arc::clone(&self.digests),
            write_floor: self.write_floor.clone(),
            namespace: self.namespace,
            now: self.now,
            replay: self.inner.config.replay,
            planner: self.inner.config.planner,
            prices: self.inner.config.prices,
            io: self.inner.config.io,
            _lease: self.lease.clone(),
        };
        Ok(Restore::start(&self.inner, request, sink))
    }
}

/// What a look-up finds, as the planner needs it.
pub(crate) struct Path {
    /// The deepest resident block of the sequence, readable or not.
    pub resident: Found,
    /// The deepest block that may be adopted.
    pub matched: Found,
    /// The checkpoint to go on from: its slot and the block it ends.
    pub checkpoint: Option<(u32, Found)>,
}

impl Path {
    /// Looks `digests` up; at most `may_hit_blocks` may be adopted.
    pub fn find(ledger: &Ledger, digests: &[Digest], may_hit_blocks: u32) -> Self {
        let resident = ledger.tree.look_up(digests);
        let readable = ledger.readable(digests, resident);
        let matched =
            if readable.depth <= may_hit_blocks { readable } else { ledger.tree.at_depth(digests, may_hit_blocks) };
        let checkpoint = ledger.tree.deepest_checkpoint(&digests[..matched.depth as usize]);
        Self { resident, matched, checkpoint }
    }

    /// What is wrong with the block behind what was matched.
    fn beyond(&self, ledger: &Ledger, digests: &[Digest]) -> Explain {
        if self.resident.depth <= self.matched.depth {
            return Explain::NoBlock;
        }
        let next = ledger.tree.at_depth(digests, self.matched.depth + 1).id;
        if ledger.is_unreadable(next) { Explain::Unreadable } else { Explain::Pending }
    }

    /// The exact plans' starting point.
    pub fn lookup(&self, vault: &Vault, prompt_tokens: u32, replay: bool) -> Lookup {
        let block_tokens = vault.shape.block_tokens;
        let matched_tokens = self.matched.depth * block_tokens;
        let windows = vault.shape.window.is_some();
        Lookup {
            prompt_tokens,
            matched_tokens,
            checkpoint_tokens: match self.checkpoint {
                _ if !windows => matched_tokens,
                Some((_, at)) => at.depth * block_tokens,
                None => 0,
            },
            replay_tokens: (replay && windows).then_some(vault.shape.replay_tokens),
        }
    }
}

/// Plans for `sequence`, adopting no more than `at_most_tokens`.
pub(crate) fn plan(sequence: &mut Sequence, now: u64, at_most_tokens: u32) -> Result<PlanGuard, RequestError> {
    let inner = Arc::clone(&sequence.namespace.inner);
    let block_tokens = sequence.block_tokens();
    let prompt_tokens =
        u32::try_from(sequence.tokens).map_err(|_| RequestError::TooLong { tokens: sequence.tokens })?;
    let blocks = sequence.complete_blocks();
    let could_hit_blocks = blocks.min(prompt_tokens.saturating_sub(1) / block_tokens);
    let may_hit_blocks = could_hit_blocks.min(at_most_tokens / block_tokens);
    let digests = &sequence.digests[..blocks as usize];

    let mut ledger = lock(&inner.ledger);
    ledger.expire_leases(now);
    let mut path = Path::find(&ledger, digests, may_hit_blocks);
    let mut lookup = path.lookup(&inner.vault, prompt_tokens, inner.config.replay);
    let (prices, sizes) = (&inner.config.prices, inner.shape.record_sizes());
    let mut candidates = Candidates::new(&lookup);
    let mut by_policy = None;
    if candidates.as_slice().len() > 1 && inner.checkpoints.chooses_plans() {
        drop(ledger);
        by_policy = choose_plan(&inner, &candidates);
        ledger = lock(&inner.ledger);
        path = Path::find(&ledger, digests, may_hit_blocks);
        let found = path.lookup(&inner.vault, prompt_tokens, inner.config.replay);
        if found != lookup {
            // What it chose from is not what there is any more.
            by_policy = None;
            candidates = Candidates::new(&found);
            lookup = found;
        }
    }
    let taken = by_policy.unwrap_or_else(|| inner.config.planner.choose(&candidates, prices, &sizes));
    let circumstances = Circumstances {
        may_adopt_tokens: may_hit_blocks * block_tokens,
        at_most: if may_hit_blocks < could_hit_blocks { Explain::Limit } else { Explain::Complete },
        beyond: path.beyond(&ledger, digests),
        windows: inner.shape.window.is_some(),
        drafts: inner.shape.draft.is_some(),
    };
    let explanation = Explanation::new(&lookup, &taken, &circumstances, prices, &sizes);
    let leaves_path = path.matched.depth > 0
        && path.matched.depth < blocks
        && path.resident.depth == path.matched.depth
        && ledger.tree.has_children(path.matched.id);
    ledger.touch(path.resident, now);
    let checkpoint = path.checkpoint.filter(|_| taken.loads_checkpoint()).map(|(slot, _)| slot);
    if let Some(slot) = checkpoint {
        ledger.tree.touch_checkpoint(slot, now);
    }
    let adopted = ledger.tree.at_depth(digests, taken.adopted_tokens / block_tokens);
    let lease = lease(&inner, &mut ledger, adopted, checkpoint, now);
    count(&mut ledger, &lookup, &taken, explanation.reason);
    let behind = ledger.events.len() >= MANY_EVENTS;
    drop(ledger);
    if behind {
        inner.eviction.catch_up(now);
    }

    let span = Span {
        now,
        start: taken.adopted_tokens,
        end: blocks * block_tokens,
        prompt_tokens,
        matched: lookup.matched_tokens,
        junction: if leaves_path { lookup.matched_tokens } else { 0 },
        block_tokens,
    };
    let captures = choose_captures(&inner, &span, sequence, taken.replayed_tokens);
    let write_floor = WriteFloor::default();
    write_floor.set(&taken);
    sequence.planned = Some(Planned { now, write_floor: write_floor.clone(), captures: captures.clone() });
    let plan = Plan {
        prompt_tokens,
        matched_tokens: lookup.matched_tokens,
        adopted_tokens: taken.adopted_tokens,
        replayed_tokens: taken.replayed_tokens,
        computed_tokens: taken.computed_tokens,
        loads_checkpoint: checkpoint.is_some(),
        drafts: taken.adopted_tokens == 0 || inner.shape.draft.is_some(),
        explanation,
        captures,
        lease: lease.as_ref().map(|lease| lease.id),
    };
    tell_shadow(&inner, sequence, &plan, now, at_most_tokens);
    Ok(PlanGuard {
        plan,
        digests: Arc::clone(&sequence.digests),
        write_floor,
        namespace: sequence.namespace.index,
        now,
        lease: lease.map(Arc::new),
        inner,
    })
}

/// Tells a shadow of the plan, and that there is nothing more of the one before it.
fn tell_shadow(inner: &Inner, sequence: &mut Sequence, plan: &Plan, now: u64, at_most_tokens: u32) {
    if let Some(request) = sequence.shadowed.take() {
        inner.shadow.tell(Message::Ended { request });
    }
    sequence.shadowed = inner.shadow.planned(|request| Message::Planned {
        request,
        key: sequence.namespace.key,
        namespace: sequence.namespace.index,
        digests: Arc::clone(&sequence.digests),
        tokens: sequence.tokens,
        now,
        at_most_tokens,
        live: LivePlan::of(plan),
    });
}

fn lease(inner: &Inner, ledger: &mut Ledger, adopted: Found, checkpoint: Option<u32>, now: u64) -> Option<LeaseGuard> {
    if adopted.depth == 0 {
        return None;
    }
    let deadline = now.saturating_add(inner.config.lease_ticks);
    let lease = Lease { block: adopted.id, checkpoint, blocks: adopted.depth, deadline };
    let id = ledger.lease(lease, inner.config.leased_ppm, now)?;
    Some(LeaseGuard { vault: Arc::clone(&inner.vault), id, now })
}

fn count(ledger: &mut Ledger, lookup: &Lookup, taken: &Candidate, explain: Explain) {
    let counters = &mut ledger.counters;
    counters.requests += 1;
    counters.hits += u64::from(taken.adopted_tokens > 0);
    counters.prompt_tokens += u64::from(lookup.prompt_tokens);
    counters.matched_tokens += u64::from(lookup.matched_tokens);
    counters.adopted_tokens += u64::from(taken.adopted_tokens);
    counters.replayed_tokens += u64::from(taken.replayed_tokens);
    counters.computed_tokens += u64::from(taken.computed_tokens);
    counters.explain(explain);
}

/// The plan that the checkpoint policy takes, if it has a say.
fn choose_plan(inner: &Inner, candidates: &Candidates) -> Option<Candidate> {
    let (prices, sizes) = (&inner.config.prices, inner.shape.record_sizes());
    let offered: Vec<OfferedPlan> = candidates
        .as_slice()
        .iter()
        .map(|plan| OfferedPlan {
            computed_tokens: plan.computed_tokens,
            adopted_tokens: plan.adopted_tokens,
            replayed_tokens: plan.replayed_tokens,
            loaded_bytes: prices.cost(plan, &sizes).load_bytes,
        })
        .collect();
    candidates.as_slice().get(inner.checkpoints.choose_plan(&offered)?).copied()
}

fn choose_captures(inner: &Inner, span: &Span, sequence: &Sequence, replayed_tokens: u32) -> Vec<u32> {
    let mut captures = Vec::new();
    if inner.shape.window.is_some() && (span.end > span.start || span.junction != 0) {
        let (mut matched, mut end) = ([0; TOLD_KEYS], [0; TOLD_KEYS]);
        let prompt = Prompt {
            namespace: sequence.namespace.index,
            replayed_tokens,
            matched_keys: keys(sequence, span.matched, &mut matched),
            end_keys: keys(sequence, span.end, &mut end),
        };
        let asked = inner.checkpoints.choose(span, &prompt, &mut captures);
        let mut ledger = lock(&inner.ledger);
        ledger.counters.captures_planned += captures.len() as u64;
        ledger.counters.native_checkpoints += u64::from(!asked);
    }
    captures
}

/// Short keys of the last blocks before `position`, the deepest last.
fn keys<'a>(sequence: &Sequence, position: u32, keys: &'a mut [u64; TOLD_KEYS]) -> &'a [u64] {
    let end = (position / sequence.block_tokens()) as usize;
    let told = &sequence.digests[end.saturating_sub(TOLD_KEYS)..end];
    for (key, digest) in keys.iter_mut().zip(told) {
        *key = digest.short();
    }
    &keys[..told.len()]
}

pub(crate) fn restorable(sequence: &Sequence) -> Vec<u32> {
    let inner = &sequence.namespace.inner;
    let block_tokens = sequence.block_tokens();
    let may_hit_blocks = (sequence.tokens.saturating_sub(1) / u64::from(block_tokens)) as u32;
    let digests = &sequence.digests[..sequence.complete_blocks() as usize];
    let ledger = lock(&inner.ledger);
    let path = Path::find(&ledger, digests, may_hit_blocks.min(digests.len() as u32));
    if inner.shape.window.is_none() {
        return (1..=path.matched.depth).map(|depth| depth * block_tokens).collect();
    }
    let mut positions = Vec::new();
    let mut checkpoint = path.checkpoint;
    while let Some((_, found)) = checkpoint {
        positions.push(found.depth * block_tokens);
        checkpoint = ledger.tree.deepest_checkpoint(&digests[..found.depth as usize - 1]);
    }
    positions.reverse();
    positions
}
