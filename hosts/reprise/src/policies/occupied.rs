//! The policy in the seat, and the calls that are made to it.

use std::{collections::HashSet, sync::Mutex};

use reprise_core::{
    policy::{Admission, Event, EventBuffer},
    tree::Refusal,
};

use super::{PolicyError, runner::CacheRunner, seat::Seat};
use crate::{
    cache::lock,
    ledger::{HISTORY, Ledger},
};

/// Events that a policy which lost its seat is kept informed of, while its successor has not decided anything. Past it, the
/// successor has taken so many without a failure that this counts as an answer.
const TRIAL_EVENTS: usize = 1 << 16;

/// What is needed to make a call, kept between calls.
pub(super) struct Occupied {
    pub seat: Seat<CacheRunner>,
    /// Events that the policy in the seat has not been told.
    pub events: EventBuffer,
    /// Changes whenever another policy takes the seat.
    pub generation: u64,
    /// The policy before, until the one in the seat has answered.
    pub trial: Option<Trial>,
    victims: Vec<u32>,
    verdicts: Vec<bool>,
}

/// A policy that gave its seat to another and can have it back at once.
pub(super) struct Trial {
    pub seat: Seat<CacheRunner>,
    /// Events that it has not been told.
    pub events: EventBuffer,
}

/// An admission question that owns its keys.
pub(crate) struct Question {
    pub now: u64,
    pub keys: Vec<u64>,
    pub first: u32,
    pub free: u32,
}

impl Occupied {
    pub fn new(seat: Seat<CacheRunner>) -> Self {
        let (events, victims, verdicts) = (EventBuffer::default(), Vec::new(), Vec::new());
        Self { seat, events, generation: 0, trial: None, victims, verdicts }
    }

    /// The policy before, once it is not needed any more: the one in the seat has `decided`, or has taken many events.
    pub fn end_trial(&mut self, decided: bool) -> Option<Trial> {
        self.trial.take_if(|trial| decided || trial.events.len() > TRIAL_EVENTS)
    }

    /// Moves the ledger's events here. Returns the version of the ledger that they lead to.
    pub fn take_events(&mut self, ledger: &Mutex<Ledger>) -> u64 {
        let mut ledger = lock(ledger);
        if let Some(trial) = &mut self.trial {
            trial.events.append(&ledger.events);
        }
        if self.events.is_empty() {
            std::mem::swap(&mut self.events, &mut ledger.events);
        } else {
            self.events.append(&ledger.events);
            ledger.events.clear();
        }
        ledger.version
    }

    pub fn ask_admission(&mut self, question: &Question, missing: u32) -> Result<u32, PolicyError> {
        let Some(running) = &mut self.seat.running else { return Ok(missing) };
        if !self.events.is_empty() {
            self.seat.status.calls += 1;
            running.step(self.events.words(), 0, &mut self.victims)?;
            self.events.clear();
        }
        self.verdicts.clear();
        self.seat.status.calls += 1;
        let Question { now, first, free, .. } = *question;
        let keys = &question.keys[..];
        running.admit(&Admission { now, group: 0, keys, first, free }, &mut self.verdicts)?;
        let asked = keys.len() - first as usize;
        if self.verdicts.len() != asked {
            return Err(PolicyError::Answer(format!(
                "{} verdicts on {asked} blocks: there must be one for each",
                self.verdicts.len()
            )));
        }
        let admitted = self.verdicts.iter().take(missing as usize).take_while(|&&admitted| admitted).count();
        Ok(admitted as u32)
    }

    pub fn ask_victims(&mut self, want: u32) -> Result<(), PolicyError> {
        let Some(running) = &mut self.seat.running else { return Ok(()) };
        self.victims.clear();
        self.seat.status.calls += 1;
        running.step(self.events.words(), want, &mut self.victims)?;
        self.events.clear();
        if self.victims.len() > want as usize {
            return Err(PolicyError::Answer(format!("{} victims where {want} were asked for", self.victims.len())));
        }
        Ok(())
    }

    /// Evicts the victims that stand the checks. What does not is told back to the policy, and is its failure if the ledger is
    /// still what the policy was told of.
    pub fn evict(&mut self, ledger: &mut Ledger, version: u64, now: u64) -> (u32, Option<PolicyError>) {
        let told_all = ledger.version == version;
        ledger.tree.warm_blocks(&self.victims);
        // An id that was given out again while the policy answered is another block than the one it named, and it hears of that.
        let reused: HashSet<u32> = if told_all { HashSet::new() } else { ledger.inserted_untold().collect() };
        let mut evicted = 0;
        let mut refused = Vec::new();
        let mut error = None;
        for &id in self.victims.iter().filter(|id| !reused.contains(id)) {
            match ledger.evict(id, now, true) {
                Ok(()) => {
                    evicted += 1;
                    // The policy before did not name it, and may be back in a moment.
                    if let Some(trial) = &mut self.trial {
                        trial.events.push(Event::Evicted { id, group: HISTORY, now });
                    }
                }
                Err(refusal) => {
                    if told_all && error.is_none() {
                        error = Some(PolicyError::Answer(format!("victim {id}: {refusal}")));
                    }
                    if refusal != Refusal::Absent {
                        refused.push(id);
                    }
                }
            }
        }
        for &id in refused.iter().rev() {
            ledger.keep(id, now);
        }
        self.seat.status.decisions += u64::from(evicted);
        (evicted, error)
    }
}
