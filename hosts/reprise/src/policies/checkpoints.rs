//! Where windows are kept: the checkpoint policy asked, its answer checked.

use std::sync::{Arc, Mutex, TryLockError};

use reprise_core::{
    checkpoint::Strategy,
    policy::{CheckpointInfo, Prompt, Span},
};

use super::{
    Notice, PolicyError, PolicyStatus, Role,
    offstage::{Curtain, Offstage},
    runner::{CheckpointRunner, OfferedPlan, Origin},
    seat::{Script, Seat, Sentence, restart_delay},
};
use crate::cache::lock;

/// What answers for a policy that cannot.
const FALLBACK: Strategy = Strategy::Events { back_blocks: 0 };

/// The seat of the checkpoint policy.
pub(crate) struct CheckpointSeat {
    stage: Arc<Stage>,
    offstage: Offstage,
    /// Failures are dealt with where they happen, so that a run can be repeated.
    deterministic: bool,
}

/// What the requests and the jobs of the seat share.
struct Stage {
    seat: Mutex<Occupied>,
    info: CheckpointInfo,
    allowed_strikes: u32,
}

/// Who sits there, and who did until the present one has answered.
struct Occupied {
    seat: Seat<CheckpointRunner>,
    trial: Option<Seat<CheckpointRunner>>,
    /// Changes whenever another policy takes the seat.
    generation: u64,
}

impl CheckpointSeat {
    /// Seats the policy that `loaded` gives, named `name`, and tells it what checkpoints cost. One that fails before it sits leaves the seat to the fallback.
    ///
    /// # Errors
    /// When there is no policy to run.
    pub fn new(
        loaded: Result<Origin, PolicyError>,
        name: &str,
        info: CheckpointInfo,
        (allowed_strikes, deterministic): (u32, bool),
    ) -> Result<Self, PolicyError> {
        let seated = loaded.and_then(|origin| {
            let running = origin.checkpoint(&info)?;
            Ok(Seat::new(Role::Checkpoints, Script { origin, saved: None }, running, allowed_strikes))
        });
        let seat = match seated {
            Err(error) if error.is_misbehaviour() => Seat::vacant(Role::Checkpoints, name, &error),
            seated => seated?,
        };
        let seat = Mutex::new(Occupied { seat, trial: None, generation: 0 });
        let stage = Arc::new(Stage { seat, info, allowed_strikes });
        Ok(Self { stage, offstage: Offstage::default(), deterministic })
    }

    /// Appends the positions to keep for `span`. Returns whether the policy itself answered: if it is busy with another request, has
    /// failed or was retired, the native `events` does.
    pub fn choose(&self, span: &Span, prompt: &Prompt<'_>, positions: &mut Vec<u32>) -> bool {
        let mut turn = match self.stage.seat.try_lock() {
            Ok(seat) => seat,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                FALLBACK.choose(span, positions);
                return false;
            }
        };
        let occupied = &mut *turn;
        let Some(running) = &mut occupied.seat.running else {
            FALLBACK.choose(span, positions);
            return false;
        };
        let answer = running.choose(span, prompt, positions).and_then(|()| check(span, positions));
        occupied.seat.status.calls += 1;
        match answer {
            Ok(()) => {
                occupied.seat.status.decisions += positions.len() as u64;
                self.offstage.let_go(occupied.trial.take(), self.deterministic);
                true
            }
            Err(error) => {
                positions.clear();
                FALLBACK.choose(span, positions);
                self.punish(occupied, &error);
                false
            }
        }
    }

    /// Whether the policy wants to be asked which plan to take.
    pub fn chooses_plans(&self) -> bool {
        let seat = self.stage.seat.try_lock();
        seat.is_ok_and(|turn| turn.seat.running.as_ref().is_some_and(CheckpointRunner::chooses_plans))
    }

    /// The index of the plan to take, if the policy has a say.
    pub fn choose_plan(&self, offered: &[OfferedPlan]) -> Option<usize> {
        let mut turn = self.stage.seat.try_lock().ok()?;
        let occupied = &mut *turn;
        let answer = occupied.seat.running.as_mut()?.choose_plan(offered);
        occupied.seat.status.calls += 1;
        answer.unwrap_or_else(|error| {
            self.punish(occupied, &error);
            None
        })
    }

    /// Notes a failure. A policy that has just come in gives the seat back; another one is made anew, or retired.
    fn punish(&self, occupied: &mut Occupied, error: &PolicyError) {
        if let Some(before) = occupied.trial.take() {
            occupied.generation += 1;
            let failed = occupied.seat.return_to(before, error);
            self.offstage.let_go(Some(failed), self.deterministic);
            return;
        }
        let (stage, generation) = (Arc::clone(&self.stage), occupied.generation);
        let (sentence, failed) = occupied.seat.strike(error);
        self.offstage.let_go(failed, self.deterministic);
        match sentence {
            Sentence::Retired => {}
            Sentence::Again(script) | Sentence::Back(script) if self.deterministic => {
                occupied.remake(script, &stage.info);
            }
            Sentence::Again(script) | Sentence::Back(script) => {
                let strikes = occupied.seat.status.strikes;
                let begun = self.offstage.run(move |curtain| stage.remake(script, strikes, generation, curtain));
                if let Err(error) = begun {
                    occupied.seat.retire();
                    occupied.seat.notice(format!("cannot be made anew, the machine has no thread for it: {error}"));
                }
            }
        }
    }

    /// Seats another policy. The running one is kept if the new one fails on its way in, and until it has answered.
    pub fn swap(&self, origin: Origin) -> Result<(), PolicyError> {
        self.seat(self.prepare(origin)?);
        Ok(())
    }

    /// Makes a policy ready for the seat.
    pub fn prepare(&self, origin: Origin) -> Result<Seat<CheckpointRunner>, PolicyError> {
        let running = origin.checkpoint(&self.stage.info)?;
        let script = Script { origin, saved: None };
        Ok(Seat::new(Role::Checkpoints, script, running, self.stage.allowed_strikes))
    }

    /// Seats a policy that is ready.
    pub fn seat(&self, mut next: Seat<CheckpointRunner>) {
        let mut turn = lock(&self.stage.seat);
        let occupied = &mut *turn;
        if !occupied.seat.status.retired {
            next.predecessor.clone_from(&occupied.seat.script);
        }
        let old = occupied.seat.give_to(next);
        occupied.trial = old.running.is_some().then_some(old);
        occupied.generation += 1;
    }

    /// What the policy in the seat is made of.
    pub fn origin(&self) -> Option<Origin> {
        let turn = lock(&self.stage.seat);
        let script = turn.seat.script.as_ref().filter(|_| !turn.seat.status.retired)?;
        Some(script.origin.clone())
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

impl Occupied {
    /// Makes a policy anew without waiting.
    fn remake(&mut self, mut script: Script, info: &CheckpointInfo) {
        loop {
            let error = match script.origin.checkpoint(info) {
                Ok(running) => return self.seat.sit_down(running),
                Err(error) => error,
            };
            match self.seat.strike(&error).0 {
                Sentence::Again(next) | Sentence::Back(next) => script = next,
                Sentence::Retired => return,
            }
        }
    }
}

impl Stage {
    /// Makes a policy anew after failures, as long as it may fail again and nobody else has taken the seat meanwhile.
    fn remake(&self, mut script: Script, mut strikes: u32, generation: u64, curtain: &Curtain) {
        while curtain.wait(restart_delay(strikes)) {
            let made = script.origin.checkpoint(&self.info);
            let mut turn = lock(&self.seat);
            if turn.generation != generation {
                return;
            }
            let error = match made {
                Ok(running) => return turn.seat.sit_down(running),
                Err(error) => error,
            };
            match turn.seat.strike(&error).0 {
                Sentence::Again(next) | Sentence::Back(next) => script = next,
                Sentence::Retired => return,
            }
            strikes = turn.seat.status.strikes;
        }
    }
}

fn check(span: &Span, positions: &[u32]) -> Result<(), PolicyError> {
    for (index, &position) in positions.iter().enumerate() {
        if !span.allows(position) {
            return Err(PolicyError::Answer(format!(
                "a checkpoint at token {position}, which is no block end in ({}, {}]",
                span.start, span.end
            )));
        }
        if index > 0 && positions[index - 1] >= position {
            return Err(PolicyError::Answer(format!(
                "a checkpoint at token {position} after one at {}: positions must ascend",
                positions[index - 1]
            )));
        }
    }
    Ok(())
}
