//! Where windows are kept: the checkpoint policy asked, its answer checked.

use std::sync::{Mutex, TryLockError};

use reprise_core::{checkpoint::Strategy, policy::Span};

use super::{
    Notice, PolicyError, PolicyStatus, Role,
    runner::{CheckpointRunner, Origin},
    seat::Seat,
};
use crate::cache::lock;

/// What answers for a policy that cannot.
const FALLBACK: Strategy = Strategy::Events { back_blocks: 0 };

/// The seat of the checkpoint policy.
pub(crate) struct CheckpointSeat {
    seat: Mutex<Seat<CheckpointRunner>>,
    allowed_strikes: u32,
}

impl CheckpointSeat {
    /// Seats the policy that `loaded` gives, named `name`. One that fails before it sits leaves the seat to the fallback.
    ///
    /// # Errors
    /// When there is no policy to run.
    pub fn new(loaded: Result<Origin, PolicyError>, name: &str, allowed_strikes: u32) -> Result<Self, PolicyError> {
        let seated = loaded.and_then(|origin| {
            let running = origin.checkpoint()?;
            Ok(Seat::new(Role::Checkpoints, origin, running, allowed_strikes))
        });
        let seat = match seated {
            Err(error) if error.is_misbehaviour() => Seat::vacant(Role::Checkpoints, name, &error),
            seated => seated?,
        };
        Ok(Self { seat: Mutex::new(seat), allowed_strikes })
    }

    /// Appends the positions to keep for `span`. Returns whether the policy itself answered: if it is busy with another request, has
    /// failed or was retired, the native `events` does.
    pub fn choose(&self, span: &Span, positions: &mut Vec<u32>) -> bool {
        let mut seat = match self.seat.try_lock() {
            Ok(seat) => seat,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                FALLBACK.choose(span, positions);
                return false;
            }
        };
        let Some(running) = &mut seat.running else {
            FALLBACK.choose(span, positions);
            return false;
        };
        let answer = running.choose(span, positions).and_then(|()| check(span, positions));
        seat.status.calls += 1;
        match answer {
            Ok(()) => {
                seat.status.decisions += positions.len() as u64;
                true
            }
            Err(error) => {
                positions.clear();
                FALLBACK.choose(span, positions);
                if seat.strike(&error) {
                    match seat.origin.as_ref().map(Origin::checkpoint) {
                        Some(Ok(fresh)) => seat.running = Some(fresh),
                        _ => seat.retire(),
                    }
                }
                false
            }
        }
    }

    pub fn swap(&self, origin: Origin) -> Result<(), PolicyError> {
        let fresh = Seat::new(Role::Checkpoints, origin.clone(), origin.checkpoint()?, self.allowed_strikes);
        lock(&self.seat).give_to(fresh);
        Ok(())
    }

    pub fn status(&self) -> PolicyStatus {
        lock(&self.seat).status.clone()
    }

    pub fn take_notices(&self) -> Vec<Notice> {
        lock(&self.seat).take_notices()
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
