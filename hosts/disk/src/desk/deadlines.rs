//! The deadlines of batches, and the thread that sleeps until the next.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::batch::{Deadline, Ends};
use crate::locks::lock;
use crate::sync::{Condvar, Mutex, PoisonError, Weak};

/// Deadlines of batches that are under way.
#[derive(Default)]
pub struct Deadlines {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    batches: BTreeMap<Deadline, Weak<dyn Ends>>,
    closed: bool,
}

impl Deadlines {
    pub fn insert(&self, deadline: Deadline, batch: Weak<dyn Ends>) {
        let mut state = lock(&self.state);
        state.batches.insert(deadline, batch);
        let first = state.batches.first_key_value().is_some_and(|(first, _)| *first == deadline);
        drop(state);
        if first {
            self.changed.notify_all();
        }
    }

    /// Takes a batch out that is over.
    pub fn remove(&self, deadline: Deadline) {
        let removed = lock(&self.state).batches.remove(&deadline);
        drop(removed);
    }

    /// Waits for the next deadline to pass and takes that batch out; `None` once there is no use in waiting.
    pub fn next(&self) -> Option<(u64, Weak<dyn Ends>)> {
        let mut state = lock(&self.state);
        while !state.closed {
            let now = Instant::now();
            let first = state.batches.first_key_value().map(|((at, _), _)| *at);
            state = match first {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(at) if at > now => {
                    self.changed.wait_timeout(state, at - now).unwrap_or_else(PoisonError::into_inner).0
                }
                Some(_) => {
                    let ((_, id), batch) = state.batches.pop_first().expect("there is a first");
                    return Some((id, batch));
                }
            };
        }
        None
    }

    /// Ends the waiting for good, and returns the batches whose deadlines are still to come.
    pub fn close(&self) -> Vec<Weak<dyn Ends>> {
        let mut state = lock(&self.state);
        state.closed = true;
        let batches = std::mem::take(&mut state.batches).into_values().collect();
        drop(state);
        self.changed.notify_all();
        batches
    }
}
