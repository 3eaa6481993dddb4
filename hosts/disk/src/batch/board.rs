//! Where the outcomes of a batch are gathered and taken from.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Poll, Waker};
use std::time::Instant;

use super::calls::{Calls, Deliver};
use super::{Got, PutOutcome};
use crate::error::{Miss, StoreError};
use crate::locks::lock;
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Why a record ends before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Its deadline passed.
    TimedOut,
    /// It was cancelled before it began.
    Cancelled,
}

/// The outcome of a record: of a read or of a put.
pub trait Outcome {
    /// The outcome of a record that is still under way at its deadline.
    fn timed_out(group: u8, slot: u32) -> Self;
}

impl Outcome for Got {
    fn timed_out(_group: u8, _slot: u32) -> Self {
        Err(Miss::TimedOut)
    }
}

impl Outcome for PutOutcome {
    fn timed_out(group: u8, slot: u32) -> Self {
        Self { result: Err(StoreError::TimedOut { group, slot }), buffer: None }
    }
}

/// A batch whose deadline can pass.
pub trait Ends: Send + Sync {
    /// Ends every record that has no outcome yet.
    fn expire(self: Arc<Self>);
}

/// Which batch's deadline: when it is, and the number of the batch.
pub type Deadline = (Instant, u64);

type Callback<T> = Box<dyn FnMut(usize, T) -> ControlFlow<()> + Send>;

/// What became of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It came too late: the record has another one, or nobody asks any more.
    Late,
    /// It counts, and others are still to come.
    One,
    /// It counts and is the last.
    Last,
}

/// The outcomes of a batch.
pub struct Board<T> {
    deadline: Deadline,
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    /// Group and slot of each record; `None` once it has an outcome.
    records: Vec<Option<(u8, u32)>>,
    /// How many have none.
    open: usize,
    expired: bool,
    outcomes: VecDeque<(usize, T)>,
    waker: Option<Waker>,
    /// Out of its place while it is being called.
    callback: Option<Callback<T>>,
    /// Who calls it, if there is one.
    calls: Option<Arc<Calls>>,
}

impl<T: Send + 'static> Board<T> {
    /// A board for these records, by group and slot.
    pub fn new(deadline: Deadline, records: impl Iterator<Item = (u8, u32)>) -> Self {
        let records: Vec<_> = records.map(Some).collect();
        let state = State {
            open: records.len(),
            records,
            expired: false,
            outcomes: VecDeque::new(),
            waker: None,
            callback: None,
            calls: None,
        };
        Self { deadline, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// The number of the batch.
    pub fn id(&self) -> u64 {
        self.deadline.1
    }

    pub fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// How many records have no outcome yet.
    pub fn open(&self) -> usize {
        lock(&self.state).open
    }

    /// Whether somebody still waits for the outcome of record `index`.
    pub fn is_open(&self, index: usize) -> bool {
        lock(&self.state).records[index].is_some()
    }

    /// Whether the deadline has ended records of the batch.
    pub fn is_expired(&self) -> bool {
        lock(&self.state).expired
    }

    /// Gives record `index` its outcome, if it has none.
    pub fn settle(self: &Arc<Self>, index: usize, outcome: T) -> Settled {
        let mut state = lock(&self.state);
        if state.records[index].take().is_none() {
            // The outcome is dropped when the lock is open again: it may bring a buffer back.
            drop(state);
            return Settled::Late;
        }
        state.open -= 1;
        state.outcomes.push_back((index, outcome));
        let settled = if state.open == 0 { Settled::Last } else { Settled::One };
        self.tell(state);
        settled
    }

    /// Tells whoever waits that there are outcomes.
    fn tell(self: &Arc<Self>, mut state: MutexGuard<'_, State<T>>) {
        let waker = state.waker.take();
        // While it is being called it goes on by itself.
        let calls = state.calls.clone().filter(|_| state.callback.is_some());
        drop(state);
        self.changed.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
        if let Some(calls) = calls
            && let Err(batch) = calls.push(self.clone())
        {
            batch.deliver();
        }
    }

    /// The next outcome, `Ready(None)` after the last; or leaves `waker` to be woken.
    pub fn take(&self, waker: Option<&Waker>) -> Poll<Option<(usize, T)>> {
        let mut state = lock(&self.state);
        match state.outcomes.pop_front() {
            Some(outcome) => Poll::Ready(Some(outcome)),
            None if state.open == 0 => Poll::Ready(None),
            None => {
                if let Some(waker) = waker {
                    state.waker = Some(waker.clone());
                }
                Poll::Pending
            }
        }
    }

    /// Waits for the next outcome; `None` after the last.
    pub fn wait(&self) -> Option<(usize, T)> {
        let mut state = lock(&self.state);
        while state.outcomes.is_empty() && state.open > 0 {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.outcomes.pop_front()
    }

    /// Has `callback` called from now on, by who sees to `calls`.
    pub fn call_back(self: &Arc<Self>, callback: Callback<T>, calls: Option<Arc<Calls>>) {
        let mut state = lock(&self.state);
        state.callback = Some(callback);
        state.calls = calls;
        match state.calls {
            Some(_) => self.tell(state),
            None => {
                drop(state);
                self.deliver();
            }
        }
    }

    /// Nobody asks for the outcomes any more.
    pub fn abandon(&self) {
        let mut state = lock(&self.state);
        state.records.fill(None);
        state.open = 0;
        let outcomes = std::mem::take(&mut state.outcomes);
        drop(state);
        drop(outcomes);
    }
}

impl<T: Send + 'static> Deliver for Board<T> {
    fn deliver(&self) {
        loop {
            let mut state = lock(&self.state);
            let Some(mut callback) = state.callback.take() else { return };
            let Some((index, outcome)) = state.outcomes.pop_front() else {
                // After the last outcome, what the callback holds is let go.
                if state.open > 0 {
                    state.callback = Some(callback);
                }
                return;
            };
            drop(state);
            // A panic ends this batch and no other.
            match catch_unwind(AssertUnwindSafe(|| callback(index, outcome))) {
                Ok(ControlFlow::Continue(())) => lock(&self.state).callback = Some(callback),
                Ok(ControlFlow::Break(())) | Err(_) => {
                    self.abandon();
                    return;
                }
            }
        }
    }
}

impl<T: Outcome + Send + 'static> Ends for Board<T> {
    fn expire(self: Arc<Self>) {
        let mut state = lock(&self.state);
        let State { records, outcomes, .. } = &mut *state;
        let open = records.iter_mut().enumerate().filter_map(|(index, record)| Some((index, record.take()?)));
        outcomes.extend(open.map(|(index, (group, slot))| (index, T::timed_out(group, slot))));
        state.open = 0;
        state.expired = true;
        self.tell(state);
    }
}
