//! Where batches are worked off: what waits, what is under way, and the threads that see to it.
//!
//! A read waits until one of its class's buffers is free, a put until fewer than `depth` are under way. Then one of the
//! working threads prepares the record and hands it to the engine. What was read is checked by the engine's thread if that
//! has nothing else to do, else by a working thread; what was written is entered into the table by a working thread, as that
//! may wait for the device. Deadlines and callbacks have a thread each, which the device cannot hold.

mod deadlines;
mod job;
mod lane;
mod threads;

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use crate::Buffer;
use crate::batch::{Board, Calls, Deadline, End, Ends, Outcome, Settled};
use crate::engine::{self, Engine, Ground, IoEngine};
use crate::locks::lock;
use crate::store::{Core, IoOptions};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use deadlines::Deadlines;
use job::Ended;
use lane::Lane;
use threads::Threads;

pub use job::{ReadJob, WriteJob};

/// The most transfers of a kind that may be asked for.
const MAX_DEPTH: usize = 1024;

/// What waits and what is under way.
struct State {
    /// By class, with the buffers that are free.
    reads: Vec<Lane<Buffer, ReadJob>>,
    writes: Lane<(), WriteJob>,
    /// Transfers that are over, to be seen to.
    ended: VecDeque<Ended>,
    /// Jobs that have begun and have not ended.
    running: usize,
    closed: bool,
}

impl State {
    fn is_quiet(&self) -> bool {
        self.running == 0 && self.writes.is_empty() && self.reads.iter().all(Lane::is_empty)
    }
}

/// The work of a store's batches.
pub struct Desk {
    core: Arc<Core>,
    engine: Box<dyn Engine>,
    state: Mutex<State>,
    /// There may be something to do.
    work: Condvar,
    /// Nothing is left to do.
    quiet: Condvar,
    deadlines: Deadlines,
    calls: Arc<Calls>,
    threads: Mutex<Threads>,
    workers: usize,
    batches: AtomicU64,
}

impl Desk {
    /// The desk of a store whose files lie on `ground`, and what carries out its transfers.
    pub fn new(core: Arc<Core>, options: &IoOptions, ground: &Ground) -> (Arc<Self>, IoEngine) {
        let depth = options.depth.clamp(1, MAX_DEPTH);
        let classes = core.specs().count().max(1);
        let mut buffers = Vec::new();
        let mut counts = Vec::new();
        for class in core.specs() {
            let room = options.buffer_bytes / classes as u64 / class.slot_bytes();
            let count = depth.min(class.slots as usize).min(usize::try_from(room).unwrap_or(depth)).max(1);
            buffers.extend((0..count).map(|_| Buffer::zeroed(class.slot_bytes() as usize)));
            counts.push(count);
        }
        let workers = options.threads.max(1);
        let transfers = buffers.len() + depth;
        let (engine, report) = engine::choose(options.engine, ground, transfers, workers, &mut buffers);
        let mut buffers = buffers.into_iter();
        let state = State {
            reads: counts
                .into_iter()
                .map(|count| Lane::new(buffers.by_ref().take(count).collect(), count.div_ceil(2)))
                .collect(),
            writes: Lane::new(vec![(); depth], depth),
            ended: VecDeque::new(),
            running: 0,
            closed: false,
        };
        let desk = Arc::new(Self {
            core,
            engine,
            state: Mutex::new(state),
            work: Condvar::new(),
            quiet: Condvar::new(),
            deadlines: Deadlines::default(),
            calls: Arc::default(),
            threads: Mutex::default(),
            workers,
            batches: AtomicU64::new(0),
        });
        (desk, report)
    }

    /// A board for a batch of these records, by group and slot, whose deadline is watched from now on.
    pub fn board<T: Outcome + Send + 'static>(
        &self,
        deadline: Instant,
        records: impl Iterator<Item = (u8, u32)>,
    ) -> Arc<Board<T>> {
        let deadline = (deadline, self.batches.fetch_add(1, Ordering::Relaxed));
        let board = Arc::new(Board::new(deadline, records));
        if board.open() > 0 {
            let ends: Arc<dyn Ends> = board.clone();
            self.deadlines.insert(deadline, Arc::downgrade(&ends));
        }
        board
    }

    /// Queues reads.
    pub fn read(self: &Arc<Self>, jobs: Vec<ReadJob>) {
        if let Err(error) = self.staff() {
            jobs.into_iter().for_each(|job| job.fail(self, &error));
            return;
        }
        let mut state = lock(&self.state);
        for job in jobs {
            state.reads[job.class_index].push(job.board.id(), job);
        }
        drop(state);
        self.work.notify_all();
    }

    /// Queues puts.
    pub fn write(self: &Arc<Self>, jobs: Vec<WriteJob>) {
        if let Err(error) = self.staff() {
            jobs.into_iter().for_each(|job| job.fail(self, &error));
            return;
        }
        let mut state = lock(&self.state);
        for job in jobs {
            state.writes.push(job.board.id(), job);
        }
        drop(state);
        self.work.notify_all();
    }

    /// Starts the threads if they do not run yet: a store that sees no batch has none.
    fn staff(self: &Arc<Self>) -> io::Result<()> {
        lock(&self.threads).start(self, self.workers)
    }

    /// Takes back a buffer of a class, which a batch has had.
    pub fn take_back(&self, class_index: usize, batch: u64, buffer: Buffer) {
        let mut state = lock(&self.state);
        let lane = &mut state.reads[class_index];
        lane.give_back(batch, buffer);
        let wanted = !lane.is_empty();
        drop(state);
        if wanted {
            self.work.notify_one();
        }
    }

    /// Ends what of a batch has not begun.
    pub fn withdraw(&self, batch: u64, end: End) {
        let mut state = lock(&self.state);
        let reads: Vec<ReadJob> = state.reads.iter_mut().flat_map(|lane| lane.withdraw(batch)).collect();
        let writes = state.writes.withdraw(batch);
        let quiet = state.is_quiet();
        drop(state);
        // With the lock open: an outcome may bring a buffer back.
        reads.into_iter().for_each(|job| job.end(self, end));
        writes.into_iter().for_each(|job| job.end(self, end));
        if quiet {
            self.tell_quiet();
        }
    }

    /// Who calls callbacks.
    pub fn calls(&self) -> Arc<Calls> {
        Arc::clone(&self.calls)
    }

    /// No longer watches a deadline.
    pub fn forget(&self, deadline: Deadline) {
        self.deadlines.remove(deadline);
    }

    /// Gives a record of a batch its outcome.
    pub fn settle<T: Send + 'static>(&self, board: &Arc<Board<T>>, index: usize, outcome: T) {
        if board.settle(index, outcome) == Settled::Last {
            self.forget(board.deadline());
        }
    }

    fn tell_quiet(&self) {
        self.work.notify_all();
        self.quiet.notify_all();
    }

    /// Lets queued puts and what is under way end, cancels the reads that wait, and ends the threads. Returns false if that
    /// took longer than `patience`: then every batch has timed out, and the threads end by themselves once the device gives
    /// back what it holds.
    pub fn close(&self, patience: Duration) -> bool {
        let waiting: Vec<u64> = {
            let mut state = lock(&self.state);
            state.closed = true;
            state.reads.iter().flat_map(Lane::batches).collect()
        };
        waiting.into_iter().for_each(|batch| self.withdraw(batch, End::Cancelled));
        self.work.notify_all();
        let state = lock(&self.state);
        let (state, _) = self
            .quiet
            .wait_timeout_while(state, patience, |state| !state.is_quiet())
            .unwrap_or_else(PoisonError::into_inner);
        let quiet = state.is_quiet();
        let waiting: Vec<u64> = state.writes.batches().collect();
        drop(state);
        waiting.into_iter().for_each(|batch| self.withdraw(batch, End::TimedOut));
        for batch in self.deadlines.close().iter().filter_map(Weak::upgrade) {
            batch.expire();
        }
        self.calls.close();
        if quiet {
            self.engine.stop();
            lock(&self.threads).join();
        }
        quiet
    }
}
