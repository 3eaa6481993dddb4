//! One budget for blocks and windows, divided while the cache serves.
//!
//! Nobody knows beforehand how much of a budget windows are worth: that depends on the trace, the policies and the budget. So *scouts* try:
//! books of their own, as a shadow has, with fresh instances of the policies in the seats and the same budget, each with another share of it
//! for windows. They see every request and decide nothing. Every [`LOOK`] requests the tokens they saved lately are compared, and the limits
//! of the cache move to the share that leads. The group that has to give way is brought down in steps, by its own order; the other grows
//! into what has become free, so that both together never take more than the budget.
//!
//! Each scout costs about as much as the books of the cache itself: a request pays for all of them under
//! [`crate::Config::deterministic`], else a thread each does.

use std::sync::Mutex;

use serde::Serialize;

use crate::{
    cache::{Inner, lock},
    group::{Group, Shape},
    policies::PolicyError,
};

/// Shares of windows that are tried, in thousandths of the budget: nothing, and from 1 % on each twice the one before, so that none is
/// further from the best than by a factor of 1.4.
const RUNGS: [u32; 7] = [0, 10, 20, 40, 80, 160, 320];

/// The share that a cache begins with.
const FIRST: usize = 4;

/// Requests between two looks.
const LOOK: u64 = 64;

/// A sum of saved tokens loses an eighth at each look: half of it in about 350 requests.
const DECAY_SHIFT: u32 = 3;

/// Looks in a row at which another share must lead, by more than this part of what the present one saves: limits that move back and forth
/// cost records.
const LOOKS_TO_MOVE: u32 = 3;
const MARGIN_SHIFT: u32 = 7;

/// Records of each group that go at once when it has to give way: a request does not wait for more.
const STEP_BLOCKS: u32 = 512;
const STEP_CHECKPOINTS: u32 = 64;

/// How a budget is divided at present, and what it was learned from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct DivisionReport {
    /// The budget.
    pub budget_bytes: u64,
    /// Thousandths of it for windows.
    pub window_permille: u32,
    /// How often that changed.
    pub moves: u64,
    /// Requests that a scout was too far behind to be told of.
    pub missed_requests: u64,
    /// What each share that is tried would have saved.
    pub scouts: Vec<ScoutReport>,
}

/// A share that is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ScoutReport {
    /// Thousandths of the budget for windows.
    pub window_permille: u32,
    /// Tokens that needed no forward pass, of all requests since the scout began.
    pub saved_tokens: u64,
}

/// Limits of both groups, in records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub blocks: u32,
    pub checkpoints: u32,
}

/// The division of a cache's budget.
pub(crate) struct Division {
    budget_bytes: u64,
    /// Bytes of a block, and of a checkpoint with its drafts.
    block_bytes: u64,
    checkpoint_bytes: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    rung: usize,
    requests: u64,
    moves: u64,
    /// What each scout had saved at the last look, and lately.
    scores: Vec<Score>,
    /// Who leads, and for how many looks.
    leader: (usize, u32),
}

#[derive(Clone, Copy, Default)]
struct Score {
    saved: u64,
    lately: u64,
}

impl Division {
    /// Of a budget for groups of this shape; `None` if there are no windows, and nothing to divide.
    pub fn new(budget_bytes: u64, shape: &Shape) -> Option<Self> {
        let window = shape.window.as_ref()?;
        let checkpoint_bytes = window.slot_bytes + shape.draft.as_ref().map_or(0, |draft| draft.slot_bytes);
        let state = Mutex::new(State { rung: FIRST, ..State::default() });
        Some(Self { budget_bytes, block_bytes: shape.history.slot_bytes, checkpoint_bytes, state })
    }

    fn limits_at(&self, rung: usize) -> Limits {
        let window_bytes = (u128::from(self.budget_bytes) * u128::from(RUNGS[rung]) / 1000) as u64;
        let checkpoints = window_bytes / self.checkpoint_bytes;
        let blocks = (self.budget_bytes - checkpoints * self.checkpoint_bytes) / self.block_bytes;
        let records = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        Limits { blocks: records(blocks), checkpoints: records(checkpoints) }
    }

    /// What a cache begins with.
    pub fn first_limits(&self) -> Limits {
        self.limits_at(FIRST)
    }

    /// Sends scouts out for the policies in the seats of `cache`, in place of those before.
    ///
    /// # Errors
    /// When a seat is empty or a policy fails at once.
    pub fn send_scouts(&self, cache: &Inner) -> Result<(), PolicyError> {
        let limits: Vec<Limits> = (0..RUNGS.len()).map(|rung| self.limits_at(rung)).collect();
        cache.shadow.send_scouts(cache, &limits)?;
        let mut state = lock(&self.state);
        state.scores = vec![Score::default(); RUNGS.len()];
        state.leader = (state.rung, 0);
        Ok(())
    }

    /// A request is about to save: looks at the scouts if it is time, and brings the limits nearer to where they are to be.
    pub fn settle(&self, cache: &Inner, now: u64) {
        let target = {
            let mut state = lock(&self.state);
            state.requests += 1;
            if state.requests.is_multiple_of(LOOK) {
                self.look(&mut state, &cache.shadow.scouts_saved());
            }
            self.limits_at(state.rung)
        };
        let excess = {
            let mut ledger = lock(&cache.ledger);
            let (blocks, checkpoints) = (ledger.tree.limit(), ledger.tree.checkpoints().limit());
            if (blocks, checkpoints) == (target.blocks, target.checkpoints) {
                return;
            }
            // First who has to give way does, by a step.
            let fewer_checkpoints =
                target.checkpoints.max(checkpoints.saturating_sub(STEP_CHECKPOINTS)).min(checkpoints);
            let fewer_blocks = target.blocks.max(blocks.saturating_sub(STEP_BLOCKS)).min(blocks);
            ledger.tree.set_limits(fewer_blocks, fewer_checkpoints);
            while ledger.tree.trim_checkpoint() {
                ledger.counters.group_mut(Group::Window).evicted_records += 1;
                if cache.shape.draft.is_some() {
                    ledger.counters.group_mut(Group::Draft).evicted_records += 1;
                }
            }
            ledger.tree.len().saturating_sub(fewer_blocks)
        };
        if excess > 0 {
            cache.eviction.make_room_for_none(excess, now);
        }
        self.grow(cache, target);
    }

    /// Lets the group grow that may, into what the other one leaves: what is held and could not go counts.
    fn grow(&self, cache: &Inner, target: Limits) {
        let mut ledger = lock(&cache.ledger);
        let tree = &ledger.tree;
        let (blocks, checkpoints) = (tree.limit(), tree.checkpoints().limit());
        let room = |taken: u64, taken_bytes: u64, bytes: u64| {
            let free = self.budget_bytes.saturating_sub(taken * taken_bytes) / bytes;
            u32::try_from(free).unwrap_or(u32::MAX)
        };
        let blocks_room =
            room(checkpoints.max(tree.checkpoints().len()).into(), self.checkpoint_bytes, self.block_bytes);
        let more_blocks = target.blocks.min(blocks_room).max(blocks);
        let checkpoints_room = room(more_blocks.max(tree.len()).into(), self.block_bytes, self.checkpoint_bytes);
        let more_checkpoints = target.checkpoints.min(checkpoints_room).max(checkpoints);
        ledger.tree.set_limits(more_blocks, more_checkpoints);
    }

    fn look(&self, state: &mut State, saved: &[u64]) {
        if saved.len() != state.scores.len() || saved.is_empty() {
            return;
        }
        for (score, &saved) in state.scores.iter_mut().zip(saved) {
            score.lately -= score.lately >> DECAY_SHIFT;
            score.lately += saved.saturating_sub(score.saved);
            score.saved = saved;
        }
        let lately = |rung: usize| state.scores[rung].lately;
        // Among equals the smaller share: windows are written more often.
        let best = (0..RUNGS.len()).max_by_key(|&rung| (lately(rung), std::cmp::Reverse(rung))).unwrap_or(state.rung);
        let leads = lately(best) > lately(state.rung) + (lately(state.rung) >> MARGIN_SHIFT);
        state.leader = match state.leader {
            _ if !leads => (state.rung, 0),
            (rung, looks) if rung == best => (best, looks + 1),
            _ => (best, 1),
        };
        if state.leader.1 >= LOOKS_TO_MOVE {
            (state.rung, state.leader) = (best, (best, 0));
            state.moves += 1;
        }
    }

    pub fn report(&self, cache: &Inner) -> DivisionReport {
        let saved = cache.shadow.scouts_saved();
        let state = lock(&self.state);
        let scouts = RUNGS.iter().zip(saved);
        DivisionReport {
            budget_bytes: self.budget_bytes,
            window_permille: RUNGS[state.rung],
            moves: state.moves,
            missed_requests: cache.shadow.scouts_missed(),
            scouts: scouts
                .map(|(&window_permille, saved_tokens)| ScoutReport { window_permille, saved_tokens })
                .collect(),
        }
    }
}
