//! Restoring what a plan adopts: read, verified, handed to the engine; shortened, consistently over all groups, where a record
//! cannot be read.

use std::{
    io,
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
};

use reprise_core::{
    Digest,
    plan::{Candidate, Candidates, Planner, Prices},
};
use reprise_disk::{Get, Got, Key};

use crate::{
    cache::{Inner, Vault, lock},
    config::Io,
    group::Group,
    plan::{LeaseGuard, Path, Plan, WriteFloor},
    record::{BlockSink, Record},
    sequence::record,
};

type Job = Box<dyn FnOnce() + Send>;

/// The reading thread and its queue.
pub(crate) struct Reader {
    queue: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    pub fn start() -> io::Result<Self> {
        let (queue, jobs) = mpsc::channel::<Job>();
        let thread = thread::Builder::new().name("reprise-read".to_owned()).spawn(move || {
            for job in jobs {
                // A sink that panics ends its own restore, whose waiter is told by the closed channel, and no other.
                let _ = panic::catch_unwind(AssertUnwindSafe(job));
            }
        })?;
        Ok(Self { queue: Some(queue), thread: Some(thread) })
    }

    fn submit(&self, job: Job) {
        let queue = self.queue.as_ref().expect("the queue lives as long as the reader");
        // A send fails only if the thread is gone; the job's own channel then tells who waits.
        let _ = queue.send(job);
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What a restore gave the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Tokens whose compressed entries were accepted: what counts, whatever the sink was given beyond.
    pub adopted_tokens: u32,
    /// The last of these, to be computed again to rebuild the windows.
    pub replayed_tokens: u32,
    /// Tokens that need a forward pass.
    pub computed_tokens: u32,
    /// Whether the checkpoint at the end of what was adopted was accepted.
    pub checkpoint: bool,
    /// Whether this is less than planned, because records could not be read.
    pub shortened: bool,
    /// Payload bytes read, by group.
    pub loaded_bytes: [u64; Group::ALL.len()],
}

/// A restore under way.
pub struct Restore<S> {
    blocks: Arc<AtomicU32>,
    outcome: Outcome<S>,
}

enum Outcome<S> {
    Now(Restored, S),
    Later(mpsc::Receiver<(Restored, S)>),
}

/// Everything a restore needs.
pub(crate) struct Request {
    pub plan: Plan,
    pub digests: Arc<Vec<Digest>>,
    pub write_floor: WriteFloor,
    pub namespace: u16,
    pub now: u64,
    pub replay: bool,
    pub planner: Planner,
    pub prices: Prices,
    pub io: Io,
    /// Held until the restore is done.
    pub _lease: Option<Arc<LeaseGuard>>,
}

impl<S: BlockSink> Restore<S> {
    pub(crate) fn start(inner: &Inner, request: Request, mut sink: S) -> Self {
        let blocks = Arc::new(AtomicU32::new(0));
        let outcome = match &inner.threads {
            None => Outcome::Now(on_paper(&inner.vault, &request.plan), sink),
            Some(_) if request.plan.adopted_tokens == 0 => Outcome::Now(on_paper(&inner.vault, &request.plan), sink),
            Some(threads) => {
                let (done, outcome) = mpsc::channel();
                let (vault, progress) = (Arc::clone(&inner.vault), Arc::clone(&blocks));
                threads.reader.submit(Box::new(move || {
                    let restored = read(&vault, &request, &progress, &mut sink);
                    drop(request);
                    // Nobody waits any more if the receiver is gone.
                    let _ = done.send((restored, sink));
                }));
                Outcome::Later(outcome)
            }
        };
        Self { blocks, outcome }
    }

    /// Blocks accepted so far.
    pub fn accepted_blocks(&self) -> u32 {
        self.blocks.load(Ordering::Relaxed)
    }

    /// The outcome with the sink, or the restore itself if it is still under way.
    ///
    /// # Errors
    /// The restore, to be asked again.
    ///
    /// # Panics
    /// When the sink panicked.
    pub fn poll(self) -> Result<(Restored, S), Self> {
        match self.outcome {
            Outcome::Now(restored, sink) => Ok((restored, sink)),
            Outcome::Later(receiver) => match receiver.try_recv() {
                Ok(outcome) => Ok(outcome),
                Err(mpsc::TryRecvError::Empty) => Err(Self { blocks: self.blocks, outcome: Outcome::Later(receiver) }),
                Err(mpsc::TryRecvError::Disconnected) => panic!("the sink of a restore panicked"),
            },
        }
    }

    /// Waits for the outcome.
    ///
    /// # Panics
    /// When the sink panicked.
    pub fn wait(self) -> (Restored, S) {
        match self.outcome {
            Outcome::Now(restored, sink) => (restored, sink),
            Outcome::Later(receiver) => receiver.recv().expect("the sink of a restore panicked"),
        }
    }
}

/// Without a store nothing is read; what would be is counted.
fn on_paper(vault: &Vault, plan: &Plan) -> Restored {
    let blocks = u64::from(plan.adopted_tokens / vault.shape.block_tokens);
    let mut loaded_bytes = [0; Group::ALL.len()];
    let mut ledger = lock(&vault.ledger);
    for (group, records) in [
        (Group::History, blocks),
        (Group::Window, u64::from(plan.loads_checkpoint)),
        (Group::Draft, u64::from(plan.loads_checkpoint)),
    ] {
        if let Some(shape) = vault.shape.group(group) {
            let counters = ledger.counters.group_mut(group);
            counters.loaded_records += records;
            counters.loaded_bytes += records * shape.record_bytes;
            loaded_bytes[group as usize] = records * shape.record_bytes;
        }
    }
    Restored {
        adopted_tokens: plan.adopted_tokens,
        replayed_tokens: plan.replayed_tokens,
        computed_tokens: plan.computed_tokens,
        checkpoint: plan.loads_checkpoint,
        shortened: false,
        loaded_bytes,
    }
}

/// One restore from the store.
struct Reading<'a, S> {
    vault: &'a Vault,
    request: &'a Request,
    sink: &'a mut S,
    loaded_bytes: [u64; Group::ALL.len()],
}

fn read<S: BlockSink>(vault: &Vault, request: &Request, progress: &AtomicU32, sink: &mut S) -> Restored {
    let plan = &request.plan;
    let block_tokens = vault.shape.block_tokens;
    let mut reading = Reading { vault, request, sink, loaded_bytes: [0; Group::ALL.len()] };
    let mut taken = Candidate {
        computed_tokens: plan.computed_tokens,
        adopted_tokens: plan.adopted_tokens,
        replayed_tokens: plan.replayed_tokens,
    };
    let mut checkpoint = plan.loads_checkpoint;
    let mut shortened = false;
    let (good_blocks, mut complete) = reading.planned(taken.adopted_tokens / block_tokens, checkpoint, progress);
    while !complete {
        (taken, checkpoint) = reading.plan_again(good_blocks);
        shortened = true;
        complete = !checkpoint || reading.checkpoint(taken.adopted_tokens / block_tokens - 1);
    }
    let Candidate { adopted_tokens, replayed_tokens, computed_tokens } = taken;
    if shortened {
        request.write_floor.set(&taken);
        correct_counters(vault, plan, &taken);
    }
    let loaded_bytes = reading.loaded_bytes;
    Restored { adopted_tokens, replayed_tokens, computed_tokens, checkpoint, shortened, loaded_bytes }
}

/// A plan was counted as made; what was given is less.
fn correct_counters(vault: &Vault, plan: &Plan, taken: &Candidate) {
    let mut ledger = lock(&vault.ledger);
    let counters = &mut ledger.counters;
    counters.explain(reprise_core::plan::Explain::Unreadable);
    counters.hits -= u64::from(taken.adopted_tokens == 0);
    counters.adopted_tokens -= u64::from(plan.adopted_tokens) - u64::from(taken.adopted_tokens);
    counters.replayed_tokens =
        counters.replayed_tokens + u64::from(taken.replayed_tokens) - u64::from(plan.replayed_tokens);
    counters.computed_tokens =
        counters.computed_tokens + u64::from(taken.computed_tokens) - u64::from(plan.computed_tokens);
}

/// A record to be read: what it is, and the slot it lies in.
type Located = (Record, u32);

impl<S: BlockSink> Reading<'_, S> {
    fn record(&self, group: Group, block: u32) -> Record {
        record(&self.request.digests, self.vault.shape.block_tokens, group, block)
    }

    /// Reads what was planned, all at once as far as the store's memory goes, and hands it over in order: `blocks` blocks, then the
    /// checkpoint at their end. Returns how many blocks are good, and whether nothing is missing. What cannot be read is noted.
    fn planned(&mut self, blocks: u32, checkpoint: bool, progress: &AtomicU32) -> (u32, bool) {
        let mut records = self.blocks(blocks);
        let located_blocks = records.len() as u32;
        let mut missing = located_blocks < blocks;
        if checkpoint && !missing {
            let window = self.checkpoint_records(blocks - 1);
            missing = window.is_empty();
            records.extend(window);
        }
        let good = self.load(&records, |handed_over| {
            progress.store(handed_over.min(located_blocks), Ordering::Relaxed);
        });
        (located_blocks.min(good as u32), !missing && good == records.len())
    }

    /// The leading blocks that are resident. With their lease expired, some may be gone.
    fn blocks(&self, count: u32) -> Vec<Located> {
        let ledger = lock(&self.vault.ledger);
        let located = |block| {
            let record = self.record(Group::History, block);
            Some((record, ledger.tree.find(&record.digest)?))
        };
        (0..count).map_while(located).collect()
    }

    /// The records of the checkpoint that ends `block`; none if it is gone.
    fn checkpoint_records(&self, block: u32) -> Vec<Located> {
        let digest = self.request.digests[block as usize];
        let ledger = lock(&self.vault.ledger);
        let slot = ledger.tree.find(&digest).and_then(|id| ledger.tree.checkpoint_of(id));
        drop(ledger);
        let groups = self.vault.shape.checkpoint_groups();
        groups.filter_map(|(group, _)| Some((self.record(group, block), slot?))).collect()
    }

    /// Reads the records of the checkpoint that ends `block` and hands them over.
    fn checkpoint(&mut self, block: u32) -> bool {
        let records = self.checkpoint_records(block);
        !records.is_empty() && self.load(&records, |_| {}) == records.len()
    }

    /// Reads records side by side and hands them over in their order, up to the first that cannot be read, which is noted. Returns how many
    /// were handed over; `progress` is told after each.
    fn load(&mut self, records: &[Located], mut progress: impl FnMut(u32)) -> usize {
        let vault = self.vault;
        let store = vault.store.as_ref().expect("only a cache with a store reads");
        let gets: Vec<Get> = records.iter().map(|(record, slot)| self.get(record, *slot)).collect();
        let mut handed_over = 0;
        // What was read before its turn.
        let mut early: Vec<Option<Got>> = records.iter().map(|_| None).collect();
        let bytes = records.iter().map(|(record, _)| vault.shape.record_bytes(record.group)).sum();
        for (index, got) in store.get_batch(&gets, Some(self.request.io.deadline(bytes))) {
            early[index] = Some(got);
            while let Some(got) = early.get_mut(handed_over).and_then(Option::take) {
                let (record, slot) = &records[handed_over];
                match got {
                    Ok(payload) => self.hand_over(record, *slot, &payload),
                    Err(_) => {
                        self.note_failure(record, *slot);
                        return handed_over;
                    }
                }
                handed_over += 1;
                progress(handed_over as u32);
            }
        }
        handed_over
    }

    fn get(&self, record: &Record, slot: u32) -> Get {
        let key = Key {
            namespace: self.request.namespace,
            digest: record.digest,
            position: u64::from(record.position_tokens),
        };
        Get { group: record.group.number(), slot, key }
    }

    fn hand_over(&mut self, record: &Record, slot: u32, payload: &[u8]) {
        let payload_bytes = payload.len() as u64;
        {
            let mut ledger = lock(&self.vault.ledger);
            let counters = ledger.counters.group_mut(record.group);
            counters.loaded_records += 1;
            counters.loaded_bytes += payload_bytes;
        }
        self.loaded_bytes[record.group as usize] += payload_bytes;
        if let Some(store) = &self.vault.store {
            store.touch(record.group.number(), slot, self.request.now);
        }
        self.sink.accept(record, payload);
    }

    /// A block that cannot be read is cut from plans until it is written again; a checkpoint goes. Neither if something else has come
    /// into the slot meanwhile.
    fn note_failure(&self, record: &Record, slot: u32) {
        let mut ledger = lock(&self.vault.ledger);
        ledger.counters.group_mut(record.group).failed_reads += 1;
        let Some(id) = ledger.tree.find(&record.digest) else { return };
        match record.group {
            Group::History if id == slot => ledger.set_unreadable(id),
            Group::Window | Group::Draft if ledger.tree.checkpoint_of(id) == Some(slot) => {
                ledger.tree.drop_checkpoint(id);
            }
            _ => {}
        }
    }

    /// The best plan for the `good_blocks` that were accepted.
    fn plan_again(&self, good_blocks: u32) -> (Candidate, bool) {
        let Request { digests, replay, planner, prices, plan, .. } = self.request;
        let mut ledger = lock(&self.vault.ledger);
        let path = Path::find(&ledger, &digests[..good_blocks as usize], good_blocks);
        let lookup = path.lookup(self.vault, plan.prompt_tokens, *replay);
        let taken = planner.choose(&Candidates::new(&lookup), prices, &self.vault.shape.record_sizes());
        let checkpoint = path.checkpoint.filter(|_| taken.loads_checkpoint()).map(|(slot, _)| slot);
        if let Some(slot) = checkpoint {
            ledger.tree.touch_checkpoint(slot, self.request.now);
        }
        (taken, checkpoint.is_some())
    }
}
