//! The books of a shadow: a cache without a store, in which candidates have the seats.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use reprise_core::{
    policy::Kind,
    tree::{Kept, Tree},
};

use super::{LivePlan, LiveSeats, Message, Promotion, ShadowFigures, ShadowReport, Shadowing};
use crate::{
    cache::{Inner, lock},
    choice::PolicyChoice,
    division::Limits,
    group::Group,
    ledger::Ledger,
    plan,
    policies::{PolicyError, Script, runner::Origin},
    record::{BlockSource, Record},
    sequence::{NamespaceHandle, Sequence},
};

/// Ids that are looked at under one lock of the live ledger.
const SLICE_IDS: u32 = 1024;

/// Requests that are under way at once, at most: those of an engine that forgets to drop its sequences push the oldest out.
const OPEN_REQUESTS: usize = 1 << 14;

/// Books with the candidates in the seats, and what they are compared with.
pub(crate) struct Books {
    cache: Arc<Inner>,
    open: HashMap<u64, Sequence>,
    live: LiveSeats,
    candidates: Candidates,
    rule: Option<Promotion>,
    report: Arc<Mutex<ShadowReport>>,
}

/// What takes the seats at a promotion.
struct Candidates {
    eviction: Option<Origin>,
    checkpoints: Option<Origin>,
}

/// There are no payloads.
struct Nothing;

impl BlockSource for Nothing {
    fn fill(&mut self, _: &Record, _: &mut [u8]) {}
}

/// What is resident, for a tree of the same capacity. Read in slices: what changes meanwhile may be missing, with what is behind it.
fn copy(live: &Mutex<Ledger>, capacity: (u32, u32), mut between: impl FnMut()) -> Tree {
    let mut kept: Vec<Kept> = Vec::new();
    let mut next = 0;
    loop {
        {
            let ledger = lock(live);
            if next >= ledger.tree.slots_used() {
                break;
            }
            kept.extend(ledger.tree.kept_among(next..next.saturating_add(SLICE_IDS)));
        }
        next = next.saturating_add(SLICE_IDS);
        between();
    }
    kept.sort_unstable_by_key(|kept| (kept.block.inserted, kept.block.depth));
    let mut tree = Tree::new(capacity.0, capacity.1);
    tree.restore(kept.iter().map(|kept| (kept.slot, kept.block)));
    kept.sort_unstable_by_key(|kept| kept.checkpoint);
    for kept in &kept {
        if let Some((slot, last_use)) = kept.checkpoint
            && tree.find(&kept.block.digest) == Some(kept.slot)
        {
            tree.restore_checkpoint(slot, kept.slot, last_use);
        }
    }
    tree
}

impl Books {
    /// The books of a shadow of `live`, as it is now.
    pub fn open(live: &Inner, shadowing: &Shadowing) -> Result<Self, PolicyError> {
        let load = |choice: &Option<PolicyChoice>, kind| {
            choice.as_ref().map(|choice| live.loader.load(choice, kind)).transpose()
        };
        let candidates = Candidates {
            eviction: load(&shadowing.eviction, Kind::Cache)?,
            checkpoints: load(&shadowing.checkpoints, Kind::Checkpoint)?,
        };
        let eviction = candidates.eviction.clone().or_else(|| live.eviction.origin());
        let eviction = eviction.ok_or(PolicyError::NoPolicy { role: "eviction" })?;
        let checkpoints = candidates.checkpoints.clone().or_else(|| live.checkpoints.origin());
        let checkpoints = checkpoints.ok_or(PolicyError::NoPolicy { role: "checkpoint" })?;
        let capacity = {
            let ledger = lock(&live.ledger);
            (ledger.tree.capacity(), ledger.tree.checkpoints().capacity())
        };
        let tree = copy(&live.ledger, capacity, std::thread::yield_now);
        let same = eviction.name == live.eviction.status().name;
        let saved = if same { live.eviction.save_state() } else { None };
        let cache = Inner::on_paper(live, tree, Script { origin: eviction, saved }, checkpoints)?;
        let seats = LiveSeats { eviction: Arc::clone(&live.eviction), checkpoints: Arc::clone(&live.checkpoints) };
        Ok(Self::new(cache, seats, candidates, shadowing.promotion))
    }

    /// Empty books with these limits, and the policies in the seats of `live`.
    pub fn scout(live: &Inner, limits: Limits) -> Result<Self, PolicyError> {
        let eviction = live.eviction.origin().ok_or(PolicyError::NoPolicy { role: "eviction" })?;
        let checkpoints = live.checkpoints.origin().ok_or(PolicyError::NoPolicy { role: "checkpoint" })?;
        let mut tree = {
            let ledger = lock(&live.ledger);
            Tree::new(ledger.tree.capacity(), ledger.tree.checkpoints().capacity())
        };
        tree.set_limits(limits.blocks, limits.checkpoints);
        let cache = Inner::on_paper(live, tree, Script { origin: eviction, saved: None }, checkpoints)?;
        let seats = LiveSeats { eviction: Arc::clone(&live.eviction), checkpoints: Arc::clone(&live.checkpoints) };
        Ok(Self::new(cache, seats, Candidates { eviction: None, checkpoints: None }, None))
    }

    fn new(cache: Inner, live: LiveSeats, candidates: Candidates, rule: Option<Promotion>) -> Self {
        let report = ShadowReport {
            requests: 0,
            missed_requests: 0,
            active: ShadowFigures::default(),
            shadow: ShadowFigures::default(),
            policies: [cache.eviction.status(), cache.checkpoints.status()],
            leading_requests: 0,
            promoted: false,
            promotion_failure: None,
        };
        let report = Arc::new(Mutex::new(report));
        Self { cache: Arc::new(cache), open: HashMap::new(), live, candidates, rule, report }
    }

    pub fn report(&self) -> Arc<Mutex<ShadowReport>> {
        Arc::clone(&self.report)
    }

    /// Goes through one message.
    pub fn take(&mut self, message: Message) {
        match message {
            Message::Planned { request, key, namespace, digests, tokens, now, at_most_tokens, live } => {
                let namespace = NamespaceHandle { inner: Arc::clone(&self.cache), key, index: namespace };
                let sequence = namespace.sequence_of_shared(tokens, digests);
                self.plan(request, sequence, (now, at_most_tokens), live);
            }
            Message::Saved { request, digests, tokens, blocks, checkpoints } => {
                let Some(sequence) = self.open.get_mut(&request) else { return };
                sequence.digests = digests;
                sequence.tokens = tokens;
                // Both fail only without a plan, and it has one.
                let saved = sequence.save(&mut Nothing).unwrap_or_default();
                let captured = sequence.capture(&mut Nothing).unwrap_or_default();
                // Requests wait for the report: not for a candidate that is being made anew.
                let policies = [self.cache.eviction.status(), self.cache.checkpoints.status()];
                let mut report = lock(&self.report);
                written(&self.cache, &mut report.active, blocks, checkpoints);
                written(&self.cache, &mut report.shadow, saved.new_blocks, saved.checkpoints + captured.checkpoints);
                report.policies = policies;
            }
            Message::Captured { request, checkpoints } => {
                let Some(sequence) = self.open.get_mut(&request) else { return };
                let captured = sequence.capture(&mut Nothing).unwrap_or_default();
                let mut report = lock(&self.report);
                written(&self.cache, &mut report.active, 0, checkpoints);
                written(&self.cache, &mut report.shadow, 0, captured.checkpoints);
            }
            Message::Ended { request } => {
                self.open.remove(&request);
            }
        }
    }

    fn plan(&mut self, request: u64, mut sequence: Sequence, (now, at_most_tokens): (u64, u32), live: LivePlan) {
        // Too long for one is too long for the other: the live plan was made.
        let Ok(guard) = plan::plan(&mut sequence, now, at_most_tokens) else { return };
        let shadow = LivePlan::of(&guard);
        drop(guard);
        if self.open.len() >= OPEN_REQUESTS
            && let Some(&oldest) = self.open.keys().min()
        {
            self.open.remove(&oldest);
        }
        self.open.insert(request, sequence);
        let promote = {
            let mut report = lock(&self.report);
            report.requests += 1;
            planned(&self.cache, &mut report.active, &live);
            planned(&self.cache, &mut report.shadow, &shadow);
            let Some(rule) = self.rule else { return };
            let leads = report.lead_ppm() >= i64::from(rule.margin_ppm.max(1))
                && report.policies.iter().all(|policy| policy.strikes == 0);
            report.leading_requests = if leads { report.leading_requests + 1 } else { 0 };
            !report.promoted && report.leading_requests >= rule.requests.max(1)
        };
        if promote && self.promote().is_err() {
            // It has to earn it anew.
            lock(&self.report).leading_requests = 0;
        }
    }

    /// Puts the candidates into the seats, with what they remember.
    pub fn promote(&mut self) -> Result<(), PolicyError> {
        if lock(&self.report).promoted {
            return Ok(());
        }
        let promoted = self.try_promote();
        let mut report = lock(&self.report);
        report.promotion_failure = promoted.as_ref().err().map(ToString::to_string);
        report.promoted = promoted.is_ok();
        promoted
    }

    fn try_promote(&self) -> Result<(), PolicyError> {
        let (requests, lead) = {
            let report = lock(&self.report);
            (report.requests, report.lead_ppm() as f64 / 1e4)
        };
        let text = format!(
            "takes the seat after {requests} requests in the shadow: {lead:+.2} % of the prompts' tokens saved"
        );
        // What may fail about the one comes before the other has its seat.
        let ready =
            self.candidates.checkpoints.clone().map(|origin| self.live.checkpoints.prepare(origin)).transpose()?;
        if let Some(origin) = &self.candidates.eviction {
            let saved = self.cache.eviction.save_state();
            self.live.eviction.swap(origin.clone(), saved)?;
            self.live.eviction.remark(text.clone());
        }
        if let Some(ready) = ready {
            self.live.checkpoints.seat(ready);
            self.live.checkpoints.remark(text);
        }
        Ok(())
    }
}

impl LivePlan {
    pub fn of(plan: &plan::Plan) -> Self {
        Self {
            prompt_tokens: plan.prompt_tokens,
            matched_tokens: plan.matched_tokens,
            adopted_tokens: plan.adopted_tokens,
            replayed_tokens: plan.replayed_tokens,
            loads_checkpoint: plan.loads_checkpoint,
        }
    }
}

fn planned(cache: &Inner, figures: &mut ShadowFigures, plan: &LivePlan) {
    figures.prompt_tokens += u64::from(plan.prompt_tokens);
    figures.matched_tokens += u64::from(plan.matched_tokens);
    figures.adopted_tokens += u64::from(plan.adopted_tokens);
    figures.replayed_tokens += u64::from(plan.replayed_tokens);
    let blocks = plan.adopted_tokens / cache.shape.block_tokens;
    add(cache, &mut figures.loaded_bytes, blocks, u32::from(plan.loads_checkpoint));
}

fn written(cache: &Inner, figures: &mut ShadowFigures, blocks: u32, checkpoints: u32) {
    add(cache, &mut figures.written_bytes, blocks, checkpoints);
}

/// Payload bytes of so many blocks and checkpoints.
fn add(cache: &Inner, bytes: &mut [u64; Group::ALL.len()], blocks: u32, checkpoints: u32) {
    bytes[Group::History as usize] += u64::from(blocks) * cache.shape.history.record_bytes;
    for (group, shape) in cache.shape.checkpoint_groups() {
        bytes[group as usize] += u64::from(checkpoints) * shape.record_bytes;
    }
}
