//! How eviction policies come and go: one in the seat, at most one newcomer that is being told what there is.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use reprise_core::policy::GroupInfo;

use super::{
    PolicyError, Role,
    handover::Newcomer,
    occupied::{Occupied, Trial},
    offstage::Curtain,
    runner::{CacheRunner, Origin, SavedState},
    seat::{Script, Seat, Sentence, restart_delay},
};
use crate::cache::{Vault, lock};

/// Between two slices of a hand-over, so that requests get at the ledger.
const PAUSE: Duration = Duration::from_micros(20);

/// What the requests and the jobs of the eviction seat share.
pub(super) struct Stage {
    pub seat: Mutex<Occupied>,
    pub vault: Arc<Vault>,
    /// Held by who brings a newcomer: the ledger keeps changes for one.
    entrance: Mutex<()>,
    groups: Vec<GroupInfo>,
    allowed_strikes: u32,
}

impl Stage {
    /// With nobody in the seat.
    pub fn new(groups: Vec<GroupInfo>, allowed_strikes: u32, vault: Arc<Vault>) -> Self {
        let seat = Mutex::new(Occupied::new(Seat::empty(Role::Eviction)));
        Self { seat, vault, entrance: Mutex::default(), groups, allowed_strikes }
    }

    /// The first policy, told what a store kept.
    pub fn first(&self, script: Script, fresh: CacheRunner) -> Result<Seat<CacheRunner>, PolicyError> {
        let newcomer = Newcomer::told(fresh, script.saved.as_ref(), &self.vault.ledger, &mut || true)?;
        let running = newcomer.take_over(|_| ()).inspect_err(|_| self.stop_recording())?;
        Ok(Seat::new(Role::Eviction, script, running, self.allowed_strikes))
    }

    /// Nobody listens any more.
    pub fn stop_recording(&self) {
        let mut ledger = lock(&self.vault.ledger);
        ledger.recording = false;
        ledger.events.clear();
    }

    /// Makes a policy anew after failures, as long as it may fail again and nobody else has taken the seat meanwhile.
    pub fn remake(&self, mut script: Script, strikes: u32, generation: u64, curtain: &Curtain) {
        let mut strikes = strikes;
        while curtain.wait(restart_delay(strikes)) {
            let error = match self.reseat(&script, generation, curtain) {
                Ok(()) | Err(PolicyError::Closing) => return,
                Err(error) => error,
            };
            let mut turn = lock(&self.seat);
            if turn.generation != generation {
                return;
            }
            match turn.seat.strike(&error).0 {
                Sentence::Again(next) | Sentence::Back(next) => script = next,
                Sentence::Retired => return,
            }
            strikes = turn.seat.status.strikes;
        }
    }

    fn reseat(&self, script: &Script, generation: u64, curtain: &Curtain) -> Result<(), PolicyError> {
        let _entrance = lock(&self.entrance);
        let fresh = script.origin.cache(&self.groups)?;
        let mut between = || curtain.wait(PAUSE);
        let newcomer = Newcomer::told(fresh, script.saved.as_ref(), &self.vault.ledger, &mut between)?;
        let mut turn = lock(&self.seat);
        if turn.generation == generation {
            let running = newcomer.take_over(|ledger| ledger.events.clear()).inspect_err(|_| self.stop_recording())?;
            turn.seat.sit_down(running);
        }
        Ok(())
    }

    /// The same by a request that holds the seat, without waiting.
    pub fn remake_at_once(&self, occupied: &mut Occupied, mut script: Script) {
        loop {
            let error = match self.remade(&script) {
                Ok(running) => return occupied.seat.sit_down(running),
                Err(error) => error,
            };
            self.stop_recording();
            match occupied.seat.strike(&error).0 {
                Sentence::Again(next) | Sentence::Back(next) => script = next,
                Sentence::Retired => return,
            }
        }
    }

    fn remade(&self, script: &Script) -> Result<CacheRunner, PolicyError> {
        let fresh = script.origin.cache(&self.groups)?;
        Newcomer::told(fresh, script.saved.as_ref(), &self.vault.ledger, &mut || true)?
            .take_over(|ledger| ledger.events.clear())
    }

    /// Seats another policy, pausing between slices or not.
    pub fn swap(
        &self,
        origin: Origin,
        saved: Option<SavedState>,
        pause: bool,
        curtain: &Curtain,
    ) -> Result<(), PolicyError> {
        let _entrance = lock(&self.entrance);
        let fresh = origin.cache(&self.groups)?;
        let mut turn = lock(&self.seat);
        let (name, state) = state_of(&mut turn);
        // Without pauses a request may repair the seat on the spot: not while the ledger keeps changes for this newcomer.
        let held = (!pause).then_some(turn);
        let saved = saved.or_else(|| state.clone().filter(|_| name == origin.name));
        let mut between = || if pause { curtain.wait(PAUSE) } else { curtain.is_open() };
        let newcomer = Newcomer::told(fresh, saved.as_ref(), &self.vault.ledger, &mut between)?;

        let mut turn = held.unwrap_or_else(|| lock(&self.seat));
        let occupied = &mut *turn;
        let Occupied { events: waiting, trial, .. } = occupied;
        let running = newcomer
            .take_over(|ledger| {
                // What the running one was not told stays with it: it goes on if the new one fails here.
                waiting.append(&ledger.events);
                if let Some(trial) = trial {
                    trial.events.append(&ledger.events);
                }
                ledger.events.clear();
            })
            .inspect_err(|_| {
                if occupied.seat.running.is_none() {
                    self.stop_recording();
                }
            })?;
        let mut next = Seat::new(Role::Eviction, Script { origin, saved }, running, self.allowed_strikes);
        if !occupied.seat.status.retired {
            next.predecessor = occupied.seat.script.clone().map(|script| Script { saved: state, ..script });
        }
        let old = occupied.take_place(next);
        drop(turn);
        drop(old);
        Ok(())
    }
}

/// Name and state of the policy in the seat; while it is being made anew, what it is made anew with. One that fails even here is the
/// more reason to replace it: its successor begins without.
fn state_of(occupied: &mut Occupied) -> (String, Option<SavedState>) {
    let Seat { running, script, status, .. } = &mut occupied.seat;
    let state = match running {
        Some(running) => running.save().unwrap_or_default(),
        None => script.as_ref().and_then(|script| script.saved.clone()),
    };
    (status.name.clone(), state)
}

impl Occupied {
    /// Gives the seat to `next`. The policy in it stays at hand until `next` has answered, if it runs. Returns what is not needed any
    /// more.
    fn take_place(&mut self, next: Seat<CacheRunner>) -> (Option<Trial>, Option<Seat<CacheRunner>>) {
        let events = std::mem::take(&mut self.events);
        let old = self.seat.give_to(next);
        self.generation += 1;
        if old.running.is_some() {
            (self.trial.replace(Trial { seat: old, events }), None)
        } else {
            (self.trial.take(), Some(old))
        }
    }

    /// Gives the seat back to the policy before, if the one in it was still on trial. Returns the one that failed.
    pub fn return_seat(&mut self, error: &PolicyError) -> Option<Seat<CacheRunner>> {
        let Trial { seat, events } = self.trial.take()?;
        self.generation += 1;
        self.events = events;
        Some(self.seat.return_to(seat, error))
    }
}
