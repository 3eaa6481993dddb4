//! Callbacks that are due, and the waiting for them.

use std::collections::VecDeque;

use crate::locks::lock;
use crate::sync::{Arc, Condvar, Mutex, PoisonError};

/// A batch whose callback has outcomes to be called with.
pub trait Deliver: Send + Sync {
    /// Calls the callback with the outcomes that are there.
    fn deliver(&self);
}

/// Batches whose callback is due. One thread calls them all, and does nothing else: a callback that takes its time holds
/// up other callbacks, and no read, no put and no deadline.
#[derive(Default)]
pub struct Calls {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    due: VecDeque<Arc<dyn Deliver>>,
    closed: bool,
}

impl Calls {
    /// Queues a batch; gives it back if nobody will call it any more.
    pub fn push(&self, batch: Arc<dyn Deliver>) -> Result<(), Arc<dyn Deliver>> {
        let mut state = lock(&self.state);
        if state.closed {
            return Err(batch);
        }
        state.due.push_back(batch);
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    /// Waits for the next batch; `None` once this is closed and nothing is left.
    pub fn next(&self) -> Option<Arc<dyn Deliver>> {
        let state = lock(&self.state);
        let waiting = |state: &mut State| state.due.is_empty() && !state.closed;
        let mut state = self.changed.wait_while(state, waiting).unwrap_or_else(PoisonError::into_inner);
        state.due.pop_front()
    }

    /// Takes no more batches.
    pub fn close(&self) {
        lock(&self.state).closed = true;
        self.changed.notify_all();
    }
}
