//! Writing behind the engine's back: one thread, several records side by side, with bounded memory.

use std::{
    io,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use reprise_core::Digest;
use reprise_disk::{Buffer, Key, Put, PutOutcome, StoreError};

use crate::{
    cache::{Vault, lock},
    config::Io,
    group::Group,
};

/// How long admission stays off after the disk was full or failed, before the next record is tried.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Records that are written side by side at most.
const BATCH_RECORDS: usize = 16;

/// One record on its way to the store.
pub(crate) struct Write {
    pub group: Group,
    pub slot: u32,
    pub key: Key,
    pub parent: Digest,
    /// The block whose record this is, or at whose end the checkpoint lies.
    pub block: u32,
    pub now: u64,
    /// A pin that the end of this write takes back: of the block, held until its last record is written.
    pub unpin: Option<u32>,
    /// Whether this is the last record of a checkpoint, which becomes readable with it and is no longer held.
    pub completes_checkpoint: bool,
    pub buffer: Buffer,
    /// What the buffer counts for.
    pub payload_bytes: u64,
}

/// Memory for records in flight: at most a number of bytes, or one record. At most half of it holds windows that wait for a save,
/// which the writing thread cannot free.
#[derive(Default)]
struct Memory {
    in_use_bytes: u64,
    staged_bytes: u64,
    spare: Vec<Buffer>,
}

struct Shared {
    vault: Arc<Vault>,
    memory: Mutex<Memory>,
    limit_bytes: u64,
    options: Io,
    freed: Condvar,
    outstanding: Mutex<u64>,
    done: Condvar,
    admission: Admission,
}

/// Whether the store takes records: off after a failure, tried again after a while.
#[derive(Default)]
struct Admission {
    off: AtomicBool,
    since: Mutex<Option<Instant>>,
    refusals: AtomicU64,
    reason: Mutex<Option<String>>,
}

impl Admission {
    fn is_open(&self) -> bool {
        !self.off.load(Ordering::Acquire) || lock(&self.since).is_none_or(|since| since.elapsed() >= RETRY_AFTER)
    }

    fn report(&self, result: &Result<(), StoreError>) {
        match result {
            Ok(()) => {
                if self.off.swap(false, Ordering::AcqRel) {
                    *lock(&self.reason) = None;
                }
            }
            Err(error) => {
                *lock(&self.since) = Some(Instant::now());
                *lock(&self.reason) = Some(describe(error));
                self.refusals.fetch_add(1, Ordering::Relaxed);
                self.off.store(true, Ordering::Release);
            }
        }
    }
}

/// An error with its causes, in one line.
fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        let part = source.to_string();
        if !text.contains(&part) {
            text = format!("{text}: {part}");
        }
        cause = source.source();
    }
    text
}

/// The writing thread and its queue.
pub(crate) struct Writer {
    shared: Arc<Shared>,
    queue: Option<mpsc::Sender<Write>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub fn start(vault: Arc<Vault>, limit_bytes: u64, options: Io) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            vault,
            memory: Mutex::default(),
            limit_bytes,
            options,
            freed: Condvar::new(),
            outstanding: Mutex::new(0),
            done: Condvar::new(),
            admission: Admission::default(),
        });
        let (queue, writes) = mpsc::channel::<Write>();
        let thread = thread::Builder::new().name("reprise-write".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || {
                while let Ok(first) = writes.recv() {
                    shared.write(first, &writes);
                }
            }
        })?;
        Ok(Self { shared, queue: Some(queue), thread: Some(thread) })
    }

    /// Buffers of these sizes, once there is memory for all of them. Their contents are arbitrary.
    pub fn buffers<const N: usize>(&self, sizes_bytes: [u64; N]) -> [Buffer; N] {
        let bytes: u64 = sizes_bytes.iter().sum();
        let mut memory = lock(&self.shared.memory);
        // With nothing on its way to the store, waiting would be for ever.
        while memory.in_use_bytes > memory.staged_bytes && memory.in_use_bytes + bytes > self.shared.limit_bytes {
            memory = self.shared.freed.wait(memory).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        memory.in_use_bytes += bytes;
        let buffers = sizes_bytes.map(|bytes| (bytes, memory.spare.pop().unwrap_or_default()));
        drop(memory);
        buffers.map(|(bytes, mut buffer)| {
            buffer.resize(bytes as usize);
            buffer
        })
    }

    /// Gives a buffer back that was not written.
    pub fn give_back(&self, buffer: Buffer) {
        self.shared.give_back(buffer.len() as u64, Some(buffer));
    }

    /// Takes a share of the memory for windows that wait for a save. `false`: there is none left.
    pub fn stage(&self, bytes: u64) -> bool {
        let mut memory = lock(&self.shared.memory);
        let fits = memory.staged_bytes == 0 || memory.staged_bytes + bytes <= self.shared.limit_bytes / 2;
        if fits {
            memory.staged_bytes += bytes;
        }
        fits
    }

    /// Gives a share back that [`Writer::stage`] took: the windows are on their way, or dropped.
    pub fn unstage(&self, bytes: u64) {
        lock(&self.shared.memory).staged_bytes -= bytes;
    }

    /// Queues a record.
    pub fn submit(&self, write: Write) {
        *lock(&self.shared.outstanding) += 1;
        let queue = self.queue.as_ref().expect("the queue lives as long as the writer");
        if let Err(mpsc::SendError(write)) = queue.send(write) {
            // The thread is gone (it panicked): the record counts as failed.
            self.shared.finish(&write, false);
            self.shared.give_back(write.payload_bytes, Some(write.buffer));
        }
    }

    /// Waits until nothing is queued.
    pub fn drain(&self) {
        self.wait_until(|outstanding| outstanding == 0);
    }

    /// Waits until a queued record is done, or nothing is queued. Returns whether something was.
    pub fn wait_for_progress(&self) -> bool {
        let before = *lock(&self.shared.outstanding);
        if before > 0 {
            self.wait_until(|outstanding| outstanding < before);
        }
        before > 0
    }

    fn wait_until(&self, done: impl Fn(u64) -> bool) {
        let mut outstanding = lock(&self.shared.outstanding);
        while !done(*outstanding) {
            outstanding = self.shared.done.wait(outstanding).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    /// Whether the store takes records now.
    pub fn is_admitting(&self) -> bool {
        self.shared.admission.is_open()
    }

    /// Why the store takes no records, if it does not.
    pub fn refusal(&self) -> Option<String> {
        lock(&self.shared.admission.reason).clone()
    }
}

impl Drop for Writer {
    /// Writes what is queued, then ends the thread.
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // A panic there was reported by the thread itself.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Writes what is queued side by side, up to [`BATCH_RECORDS`], and enters the ends into the books in the order of the queue: what pins a
    /// path is let go last.
    fn write(&self, first: Write, queue: &mpsc::Receiver<Write>) {
        let mut writes: Vec<Write> = std::iter::once(first).chain(queue.try_iter().take(BATCH_RECORDS - 1)).collect();
        let store = self.vault.store.as_ref().expect("a writer has a store");
        let put = |write: &mut Write| Put {
            group: write.group.number(),
            slot: write.slot,
            key: write.key,
            parent: write.parent,
            last_use: write.now,
            buffer: std::mem::take(&mut write.buffer),
        };
        let puts = writes.iter_mut().map(put).collect();
        let mut ends: Vec<Option<PutOutcome>> = writes.iter().map(|_| None).collect();
        let bytes = writes.iter().map(|write| write.payload_bytes).sum();
        for (index, end) in store.put_batch(puts, Some(self.options.deadline(bytes))) {
            ends[index] = Some(end);
        }
        for (write, end) in writes.into_iter().zip(ends) {
            let PutOutcome { result, buffer } = end.expect("every put of a batch has an outcome");
            self.admission.report(&result);
            self.finish(&write, result.is_ok());
            self.give_back(write.payload_bytes, buffer);
        }
    }

    /// Enters the end of a write into the books.
    fn finish(&self, write: &Write, written: bool) {
        let mut ledger = lock(&self.vault.ledger);
        let payload_bytes = self.vault.shape.record_bytes(write.group);
        let counters = ledger.counters.group_mut(write.group);
        if written {
            counters.written_records += 1;
            counters.written_bytes += payload_bytes;
        } else {
            counters.failed_writes += 1;
        }
        match (write.group, written) {
            (Group::History, true) => ledger.set_written(write.block),
            (Group::History, false) => ledger.set_unreadable(write.block),
            (_, true) => {}
            // This write holds it: it goes with the pin that the last record of the checkpoint takes back.
            (_, false) => ledger.tree.drop_checkpoint(write.block),
        }
        if write.completes_checkpoint {
            ledger.tree.set_checkpoint_readable(write.slot);
            ledger.tree.unpin_checkpoint(write.slot);
        }
        if let Some(block) = write.unpin {
            ledger.unpin(block, write.now);
        }
        drop(ledger);
        *lock(&self.outstanding) -= 1;
        self.done.notify_all();
    }

    /// `None`: the kernel still has the buffer, past its deadline; another takes its place.
    fn give_back(&self, payload_bytes: u64, buffer: Option<Buffer>) {
        let mut memory = lock(&self.memory);
        memory.in_use_bytes -= payload_bytes;
        memory.spare.extend(buffer);
        drop(memory);
        self.freed.notify_all();
    }
}
