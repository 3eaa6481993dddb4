//! Batches that do not block: submit, go on, collect per-block results. The shape that vLLM's secondary tier and SGLang's
//! storage back end ask for.

use std::{
    collections::VecDeque,
    io,
    panic::{self, AssertUnwindSafe},
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread::{self, JoinHandle},
};

use serde::{Deserialize, Serialize};

use crate::{
    cache::{Cache, lock},
    plan::PlanGuard,
    record::{BlockSink, BlockSource},
    sequence::Sequence,
};

/// Whether a record is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Presence {
    /// It is not.
    Miss,
    /// It can be read.
    Hit,
    /// It is being written.
    HitPending,
}

/// Names a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobId(u64);

/// What became of one block of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Stored, and readable now; or loaded.
    Done,
    /// Not stored: refused, or no room. Not loaded: absent or unreadable.
    Skipped,
}

/// A job that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Which.
    pub id: JobId,
    /// One outcome for each block: all complete blocks of the sequence for a store, all planned blocks for a load. After the first that
    /// was skipped, nothing of a load counts. Empty if the source or sink panicked.
    pub blocks: Vec<Outcome>,
    /// Whether the checkpoint the plan counted on was loaded; `false` for a store.
    pub checkpoint: bool,
}

/// The queue is full: try again after collecting what finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{queued} jobs are queued already: collect finished ones and try again")]
pub struct Busy {
    /// Jobs queued.
    pub queued: usize,
}

type Job = Box<dyn FnOnce(&Cache) -> (Vec<Outcome>, bool) + Send>;

#[derive(Default)]
struct Queue {
    waiting: VecDeque<(JobId, Job)>,
    finished: Vec<Finished>,
    running: bool,
    next: u64,
    closed: bool,
}

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    limit: usize,
}

/// A bounded queue of stores and loads with a thread that works it off in order.
pub struct Jobs {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Jobs {
    /// A queue of at most `limit` jobs for `cache`.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(cache: &Cache, limit: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared { queue: Mutex::default(), changed: Condvar::new(), limit: limit.max(1) });
        let thread = thread::Builder::new().name("reprise-jobs".to_owned()).spawn({
            let (shared, cache) = (Arc::clone(&shared), cache.clone());
            move || shared.work(&cache)
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Stores the complete blocks of a planned sequence, and its planned captures, out of `source`, which stays as it is until the job
    /// has finished.
    ///
    /// # Errors
    /// When the queue is full; the sequence and the source come back.
    pub fn submit_store<S: BlockSource + Send + 'static>(
        &self,
        mut sequence: Sequence,
        mut source: S,
    ) -> Result<JobId, Box<(Busy, Sequence, S)>> {
        if let Some(busy) = self.busy() {
            return Err(Box::new((busy, sequence, source)));
        }
        Ok(self.submit(Box::new(move |cache| {
            let blocks = sequence.complete_blocks() as usize;
            let stored = sequence.save(&mut source).and_then(|_| sequence.capture(&mut source));
            cache.drain();
            let resident = match stored {
                Ok(_) => {
                    let ledger = lock(&cache.inner.ledger);
                    let found = ledger.tree.look_up(&sequence.digests()[..blocks]);
                    ledger.readable(&sequence.digests, found).depth as usize
                }
                Err(_) => 0,
            };
            (outcomes(resident, blocks), false)
        })))
    }

    /// Loads what a plan adopts into `sink`.
    ///
    /// # Errors
    /// When the queue is full; the plan and the sink come back.
    pub fn submit_load<S: BlockSink>(&self, plan: PlanGuard, sink: S) -> Result<JobId, Box<(Busy, PlanGuard, S)>> {
        if let Some(busy) = self.busy() {
            return Err(Box::new((busy, plan, sink)));
        }
        Ok(self.submit(Box::new(move |cache| {
            let block_tokens = cache.shape().block_tokens;
            let planned = (plan.adopted_tokens / block_tokens) as usize;
            match plan.restore(sink).map(super::restore::Restore::wait) {
                Ok((restored, _)) => {
                    (outcomes((restored.adopted_tokens / block_tokens) as usize, planned), restored.checkpoint)
                }
                Err(_) => (outcomes(0, planned), false),
            }
        })))
    }

    /// Jobs that ended since the last call.
    pub fn take_finished(&self) -> Vec<Finished> {
        std::mem::take(&mut lock(&self.shared.queue).finished)
    }

    /// Waits until every job has ended.
    pub fn drain(&self) {
        let mut queue = lock(&self.shared.queue);
        while queue.running || !queue.waiting.is_empty() {
            queue = self.shared.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn busy(&self) -> Option<Busy> {
        let queued = lock(&self.shared.queue).waiting.len();
        (queued >= self.shared.limit).then_some(Busy { queued })
    }

    fn submit(&self, job: Job) -> JobId {
        let mut queue = lock(&self.shared.queue);
        let id = JobId(queue.next);
        queue.next += 1;
        queue.waiting.push_back((id, job));
        drop(queue);
        self.shared.changed.notify_all();
        id
    }
}

fn outcomes(done: usize, blocks: usize) -> Vec<Outcome> {
    (0..blocks).map(|block| if block < done { Outcome::Done } else { Outcome::Skipped }).collect()
}

impl Shared {
    fn work(&self, cache: &Cache) {
        loop {
            let (id, job) = {
                let mut queue = lock(&self.queue);
                loop {
                    if let Some(next) = queue.waiting.pop_front() {
                        queue.running = true;
                        break next;
                    }
                    if queue.closed {
                        return;
                    }
                    queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                }
            };
            // A source or sink that panics ends its own job, with nothing done, and no other.
            let result = panic::catch_unwind(AssertUnwindSafe(|| job(cache)));
            let (blocks, checkpoint) = result.unwrap_or_default();
            let mut queue = lock(&self.queue);
            queue.finished.push(Finished { id, blocks, checkpoint });
            queue.running = false;
            drop(queue);
            self.changed.notify_all();
        }
    }
}

impl Drop for Jobs {
    /// Works off what is queued, then ends the thread.
    fn drop(&mut self) {
        lock(&self.shared.queue).closed = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
