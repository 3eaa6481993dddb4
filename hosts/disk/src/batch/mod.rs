//! Many reads or puts under way at once, and what came of each.

mod board;
mod calls;

use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use crate::desk::Desk;
use crate::error::{Miss, StoreError};
use crate::{Buffer, Loan};

pub(crate) use board::{Board, Deadline, End, Ends, Outcome, Settled};
pub(crate) use calls::Calls;

/// What came of one read.
pub type Got = Result<Loan, Miss>;

/// What came of one put.
#[derive(Debug)]
pub struct PutOutcome {
    /// As [`Store::put`](crate::Store::put) returns it.
    pub result: Result<(), StoreError>,
    /// The caller's buffer, as it was. `None` if the deadline passed while the kernel had it: then it is freed when the
    /// kernel gives it back.
    pub buffer: Option<Buffer>,
}

/// Records under way, from [`Store::get_batch`](crate::Store::get_batch) or
/// [`Store::put_batch`](crate::Store::put_batch).
///
/// Each record has one outcome, which comes with the record's place in the request, in the order in which they end. There
/// are four ways to take them, and they can be mixed:
///
/// - as an iterator, which waits for the next one and ends after the last;
/// - [`try_next`](Self::try_next), which does not wait;
/// - [`poll_next`](Self::poll_next), for an async runtime: `poll_fn(|context| batch.poll_next(context)).await`;
/// - [`on_each`](Self::on_each), which has a function called.
///
/// Every outcome comes by the deadline of the batch, whatever the device does. Dropping the batch cancels what has not
/// begun; what has, ends unseen.
pub struct Batch<T: Send + 'static> {
    board: Arc<Board<T>>,
    desk: Weak<Desk>,
    detached: bool,
}

impl<T: Send + 'static> Batch<T> {
    pub(crate) fn new(board: Arc<Board<T>>, desk: &Arc<Desk>) -> Self {
        Self { board, desk: Arc::downgrade(desk), detached: false }
    }

    /// The next outcome if there is one: `Ready(None)` after the last.
    pub fn try_next(&mut self) -> Poll<Option<(usize, T)>> {
        self.board.take(None)
    }

    /// Like [`try_next`](Self::try_next); if there is none yet, the task of `context` is woken when there is.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<(usize, T)>> {
        self.board.take(Some(context.waker()))
    }

    /// Has `callback` called with each outcome, one after the other, on the one thread that the store has for all callbacks.
    /// One that takes its time delays those of other batches, but no read, no put and no deadline. If it breaks or panics,
    /// the rest of the batch is cancelled, and it is not called again.
    pub fn on_each(mut self, callback: impl FnMut(usize, T) -> ControlFlow<()> + Send + 'static) {
        self.detached = true;
        let calls = self.desk.upgrade().map(|desk| desk.calls());
        self.board.call_back(Box::new(callback), calls);
    }

    /// Cancels what has not begun. Its outcomes say so; those of the others still come.
    pub fn cancel(&mut self) {
        if let Some(desk) = self.desk.upgrade() {
            desk.withdraw(self.board.id(), End::Cancelled);
        }
    }
}

impl<T: Send + 'static> Iterator for Batch<T> {
    type Item = (usize, T);

    /// Waits for the next outcome.
    fn next(&mut self) -> Option<(usize, T)> {
        self.board.wait()
    }
}

impl<T: Send + 'static> Drop for Batch<T> {
    fn drop(&mut self) {
        if self.detached {
            return;
        }
        // Nobody sees the outcomes, so what is withdrawn needs none.
        self.board.abandon();
        if let Some(desk) = self.desk.upgrade() {
            desk.withdraw(self.board.id(), End::Cancelled);
            desk.forget(self.board.deadline());
        }
    }
}

impl<T: Send + 'static> fmt::Debug for Batch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("open", &self.board.open()).finish_non_exhaustive()
    }
}
