//! Who comes in and who goes: the eviction policy asked, its answer checked against the ledger, the shortfall filled by
//! the tree's own LRU.

use std::sync::{Mutex, MutexGuard, TryLockError};

use reprise_core::{
    policy::{Admission, EventBuffer, GroupInfo},
    tree::Refusal,
};

use super::{
    Notice, PolicyError, PolicyStatus, Role,
    runner::{CacheRunner, Origin},
    seat::Seat,
};
use crate::{cache::lock, ledger::Ledger};

/// Events that may wait before the policy is told even when no room is needed.
const BATCH_EVENTS: usize = 256;

/// The seat of the eviction policy.
pub(crate) struct EvictionSeat {
    seat: Mutex<Occupied>,
    groups: Vec<GroupInfo>,
    allowed_strikes: u32,
}

/// What is needed to make a call, kept between calls.
struct Occupied {
    seat: Seat<CacheRunner>,
    events: EventBuffer,
    victims: Vec<u32>,
    verdicts: Vec<bool>,
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
        loaded: Result<(Origin, CacheRunner), PolicyError>,
        name: &str,
        groups: Vec<GroupInfo>,
        allowed_strikes: u32,
        ledger: &Mutex<Ledger>,
    ) -> Result<Self, PolicyError> {
        let seated = loaded.and_then(|(origin, fresh)| {
            let running = introduce(fresh, None, ledger)?;
            Ok(Seat::new(Role::Eviction, origin, running, allowed_strikes))
        });
        let seat = match seated {
            Err(error) if error.is_misbehaviour() => {
                lock(ledger).recording = false;
                Seat::vacant(Role::Eviction, name, &error)
            }
            seated => seated?,
        };
        let occupied = Occupied { seat, events: EventBuffer::default(), victims: Vec::new(), verdicts: Vec::new() };
        Ok(Self { seat: Mutex::new(occupied), groups, allowed_strikes })
    }

    /// Takes the seat for one request, or nothing if another request has it: the caller then decides natively, and the events wait in
    /// the ledger for who comes next.
    fn enter(&self) -> Option<MutexGuard<'_, Occupied>> {
        match self.seat.try_lock() {
            Ok(seat) => Some(seat),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Asks how many of the `missing` blocks behind `question.first` may come in.
    pub fn admit(&self, ledger: &Mutex<Ledger>, question: &dyn Fn() -> Question, missing: u32) -> Admitted<'_> {
        let Some(mut turn) = self.enter() else { return Admitted { turn: None, blocks: missing } };
        let asks = turn.seat.running.as_ref().is_some_and(|running| running.admission);
        if !asks {
            return Admitted { turn: Some(turn), blocks: missing };
        }
        let question = question();
        let occupied = &mut *turn;
        occupied.take_events(ledger);
        let answer = occupied.ask_admission(&question, missing);
        let blocks = match answer {
            Ok(blocks) => blocks,
            Err(error) => {
                self.punish(&mut turn, &error, ledger);
                missing
            }
        };
        Admitted { turn: Some(turn), blocks }
    }

    /// Makes room for `want` blocks: asks the policy, evicts what stands the checks, fills up from the tree's LRU. Returns how many
    /// went, which is less than `want` only if nothing else may go.
    pub fn make_room(&self, ledger: &Mutex<Ledger>, admitted: Admitted<'_>, want: u32, now: u64) -> u32 {
        let mut named = 0;
        if let Some(mut turn) = admitted.turn {
            let occupied = &mut *turn;
            if occupied.seat.running.is_some() {
                let version = occupied.take_events(ledger);
                if want > 0 || occupied.events.len() >= BATCH_EVENTS {
                    match occupied.ask_victims(want) {
                        Ok(()) => {
                            // The ledger's lock ends with this statement: punishing takes it again.
                            let (evicted, error) = occupied.evict(&mut lock(ledger), version, now);
                            named = evicted;
                            if let Some(error) = error {
                                self.punish(&mut turn, &error, ledger);
                            }
                        }
                        Err(error) => self.punish(&mut turn, &error, ledger),
                    }
                }
            }
        }
        let mut evicted = named;
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

    /// Notes a failure; gives the policy a fresh start from the ledger, or retires it.
    fn punish(&self, turn: &mut MutexGuard<'_, Occupied>, error: &PolicyError, ledger: &Mutex<Ledger>) {
        let occupied = &mut **turn;
        occupied.events.clear();
        if occupied.seat.strike(error) {
            let again = |origin: &Origin| introduce(origin.cache(&self.groups)?, None, ledger);
            match occupied.seat.origin.as_ref().map(again) {
                Some(Ok(fresh)) => occupied.seat.running = Some(fresh),
                _ => occupied.seat.retire(),
            }
        }
        if occupied.seat.running.is_none() {
            let mut ledger = lock(ledger);
            ledger.recording = false;
            ledger.events.clear();
        }
    }

    /// Seats another policy. The running one is kept if the new one fails on its way in.
    pub fn swap(&self, origin: Origin, ledger: &Mutex<Ledger>) -> Result<(), PolicyError> {
        let fresh = origin.cache(&self.groups)?;
        let mut turn = lock(&self.seat);
        let same = turn.seat.status.name == origin.name;
        let saved = match &mut turn.seat.running {
            // Admission memory is part of the state, and what waits in the ledger is not: it is in the introduction. A policy that
            // fails even here is the more reason to replace it: its successor begins without.
            Some(running) if same => running.save().unwrap_or_default(),
            _ => None,
        };
        let (waiting, recording) = {
            let ledger = lock(ledger);
            (ledger.events.clone(), ledger.recording)
        };
        match introduce(fresh, saved, ledger) {
            Ok(fresh) => {
                turn.events.clear();
                turn.seat.give_to(Seat::new(Role::Eviction, origin, fresh, self.allowed_strikes));
                Ok(())
            }
            Err(error) => {
                let mut ledger = lock(ledger);
                let since = std::mem::replace(&mut ledger.events, waiting);
                ledger.events.append(&since);
                ledger.recording = recording;
                if !recording {
                    ledger.events.clear();
                }
                Err(error)
            }
        }
    }

    pub fn status(&self) -> PolicyStatus {
        lock(&self.seat).seat.status.clone()
    }

    pub fn take_notices(&self) -> Vec<Notice> {
        lock(&self.seat).seat.take_notices()
    }
}

/// Tells a fresh instance everything in the ledger, and what a predecessor saved. From here on the ledger records.
fn introduce(
    mut fresh: CacheRunner,
    saved: Option<(u32, Vec<u8>)>,
    ledger: &Mutex<Ledger>,
) -> Result<CacheRunner, PolicyError> {
    if let Some((schema, bytes)) = saved {
        fresh.load(schema, &bytes)?;
    }
    let events = {
        let mut ledger = lock(ledger);
        ledger.recording = true;
        ledger.events.clear();
        ledger.introduction()
    };
    fresh.step(events.words(), 0, &mut Vec::new())?;
    Ok(fresh)
}

/// An admission question that owns its keys.
pub(crate) struct Question {
    pub now: u64,
    pub keys: Vec<u64>,
    pub first: u32,
    pub free: u32,
}

impl Occupied {
    /// Moves the ledger's events here. Returns the version of the ledger that they lead to.
    fn take_events(&mut self, ledger: &Mutex<Ledger>) -> u64 {
        let mut ledger = lock(ledger);
        if self.events.is_empty() {
            std::mem::swap(&mut self.events, &mut ledger.events);
        } else {
            self.events.append(&ledger.events);
            ledger.events.clear();
        }
        ledger.version
    }

    fn ask_admission(&mut self, question: &Question, missing: u32) -> Result<u32, PolicyError> {
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

    fn ask_victims(&mut self, want: u32) -> Result<(), PolicyError> {
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
    fn evict(&mut self, ledger: &mut Ledger, version: u64, now: u64) -> (u32, Option<PolicyError>) {
        let told_all = ledger.version == version;
        ledger.tree.warm_blocks(&self.victims);
        let mut evicted = 0;
        let mut refused = Vec::new();
        let mut error = None;
        for &id in &self.victims {
            match ledger.evict(id, now, true) {
                Ok(()) => evicted += 1,
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
