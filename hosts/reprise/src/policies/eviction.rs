//! Who comes in and who goes: the eviction policy asked, its answer checked against the ledger, the shortfall filled by
//! the tree's own LRU.

use std::sync::{Arc, MutexGuard, TryLockError};

use reprise_core::policy::GroupInfo;

use super::{
    Notice, PolicyError, PolicyStatus, Question, Role,
    occupied::Occupied,
    offstage::Offstage,
    runner::{CacheRunner, Origin, SavedState},
    seat::{Script, Seat, Sentence},
    stage::Stage,
};
use crate::cache::{Vault, lock};

/// Events that may wait before the policy is told even when no room is needed.
const BATCH_EVENTS: usize = 256;

/// The seat of the eviction policy.
pub(crate) struct EvictionSeat {
    stage: Arc<Stage>,
    offstage: Offstage,
    /// Failures are dealt with where they happen, so that a run can be repeated: what takes long delays the request.
    deterministic: bool,
}

/// How many blocks of a path may come in, and the seat held for the eviction that follows.
pub(crate) struct Admitted<'a> {
    turn: Option<MutexGuard<'a, Occupied>>,
    /// Leading missing blocks that may come in.
    pub blocks: u32,
}

impl EvictionSeat {
    /// Seats the policy that `loaded` gives, named `name`, told everything in the ledger. One that fails before it sits leaves the
    /// seat to the fallback.
    ///
    /// # Errors
    /// When there is no policy to run.
    pub fn new(
        loaded: Result<(Script, CacheRunner), PolicyError>,
        name: &str,
        groups: Vec<GroupInfo>,
        vault: &Arc<Vault>,
        (allowed_strikes, deterministic): (u32, bool),
    ) -> Result<Self, PolicyError> {
        let stage = Stage::new(groups, allowed_strikes, Arc::clone(vault));
        let seated = loaded.and_then(|(script, fresh)| stage.first(script, fresh));
        let seat = match seated {
            Err(error) if error.is_misbehaviour() => Seat::vacant(Role::Eviction, name, &error),
            seated => seated?,
        };
        lock(&stage.seat).seat.give_to(seat);
        Ok(Self { stage: Arc::new(stage), offstage: Offstage::default(), deterministic })
    }

    /// Takes the seat for one request, or nothing if another request has it: the caller then decides natively, and the events wait in
    /// the ledger for who comes next.
    fn enter(&self) -> Option<MutexGuard<'_, Occupied>> {
        match self.stage.seat.try_lock() {
            Ok(seat) => Some(seat),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Asks how many of the `missing` blocks behind `question.first` may come in.
    pub fn admit(&self, question: &dyn Fn() -> Question, missing: u32) -> Admitted<'_> {
        let Some(mut turn) = self.enter() else { return Admitted { turn: None, blocks: missing } };
        let asks = turn.seat.running.as_ref().is_some_and(|running| running.admission);
        if !asks {
            return Admitted { turn: Some(turn), blocks: missing };
        }
        let question = question();
        let occupied = &mut *turn;
        occupied.take_events(&self.stage.vault.ledger);
        let blocks = match occupied.ask_admission(&question, missing) {
            Ok(blocks) => {
                self.offstage.let_go(occupied.end_trial(true), self.deterministic);
                blocks
            }
            Err(error) => {
                self.punish(occupied, &error);
                missing
            }
        };
        Admitted { turn: Some(turn), blocks }
    }

    /// Makes room for `want` blocks: asks the policy, evicts what stands the checks, fills up from the tree's LRU. Returns how many
    /// went, which is less than `want` only if nothing else may go.
    pub fn make_room(&self, admitted: Admitted<'_>, want: u32, now: u64) -> u32 {
        let ledger = &self.stage.vault.ledger;
        let mut evicted = 0;
        if let Some(mut turn) = admitted.turn {
            evicted = self.ask(&mut turn, want, now);
        }
        if evicted < want {
            let mut ledger = lock(ledger);
            while evicted < want {
                let Some(id) = ledger.tree.least_recent() else { break };
                if ledger.evict(id, now, false).is_err() {
                    break;
                }
                evicted += 1;
                ledger.counters.native_evictions += 1;
            }
        }
        evicted
    }

    /// Evicts up to `want` blocks although nothing is about to come in.
    pub fn make_room_for_none(&self, want: u32, now: u64) -> u32 {
        self.make_room(Admitted { turn: self.enter(), blocks: 0 }, want, now)
    }

    /// Tells the policy what happened, if nobody else is about to: for requests that only plan.
    pub fn catch_up(&self, now: u64) {
        if let Some(mut turn) = self.enter() {
            self.ask(&mut turn, 0, now);
        }
    }

    /// Evicts up to `want` blocks that the policy names; tells it what happened, if that is much. Returns how many went.
    fn ask(&self, occupied: &mut Occupied, want: u32, now: u64) -> u32 {
        let ledger = &self.stage.vault.ledger;
        if occupied.seat.running.is_none() {
            return 0;
        }
        let version = occupied.take_events(ledger);
        if want == 0 && occupied.events.len() < BATCH_EVENTS {
            return 0;
        }
        if let Err(error) = occupied.ask_victims(want) {
            self.punish(occupied, &error);
            return 0;
        }
        // The ledger's lock ends with this statement: punishing takes it again.
        let (evicted, error) = occupied.evict(&mut lock(ledger), version, now);
        match error {
            None => self.offstage.let_go(occupied.end_trial(want > 0), self.deterministic),
            Some(error) => self.punish(occupied, &error),
        }
        evicted
    }

    /// Notes a failure. A policy that has just come in gives the seat back; another one is made anew, or retired.
    fn punish(&self, occupied: &mut Occupied, error: &PolicyError) {
        if let Some(failed) = occupied.return_seat(error) {
            self.offstage.let_go(Some(failed), self.deterministic);
            return;
        }
        let (sentence, running) = occupied.seat.strike(error);
        occupied.events.clear();
        self.stage.stop_recording();
        match sentence {
            Sentence::Retired => self.offstage.let_go(running, self.deterministic),
            Sentence::Again(script) | Sentence::Back(script) if self.deterministic => {
                self.stage.remake_at_once(occupied, script);
            }
            Sentence::Again(script) | Sentence::Back(script) => {
                let (stage, generation) = (Arc::clone(&self.stage), occupied.generation);
                let strikes = occupied.seat.status.strikes;
                let begun = self.offstage.run(move |curtain| {
                    drop(running);
                    stage.remake(script, strikes, generation, curtain);
                });
                if let Err(error) = begun {
                    occupied.seat.retire();
                    occupied.seat.notice(format!("cannot be made anew, the machine has no thread for it: {error}"));
                }
            }
        }
    }

    /// Seats another policy, with what a predecessor of the same name knows or with `saved`. The running one is kept if the new one
    /// fails on its way in, and until it has answered.
    pub fn swap(&self, origin: Origin, saved: Option<SavedState>) -> Result<(), PolicyError> {
        let pause = !self.deterministic;
        self.stage.swap(origin, saved, pause, self.offstage.curtain())
    }

    /// What the policy in the seat is made of, as it is.
    pub fn origin(&self) -> Option<Origin> {
        let turn = lock(&self.stage.seat);
        let script = turn.seat.script.as_ref().filter(|_| !turn.seat.status.retired)?;
        Some(script.origin.clone())
    }

    /// What the policy in the seat remembers; nothing if it keeps nothing, or fails at it.
    pub fn save_state(&self) -> Option<SavedState> {
        lock(&self.stage.seat).seat.running.as_mut()?.save().unwrap_or_default()
    }

    pub fn remark(&self, text: String) {
        lock(&self.stage.seat).seat.remark(text);
    }

    pub fn status(&self) -> PolicyStatus {
        lock(&self.stage.seat).seat.status.clone()
    }

    pub fn take_notices(&self) -> Vec<Notice> {
        lock(&self.stage.seat).seat.take_notices()
    }
}
