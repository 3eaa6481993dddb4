//! Plain reads and writes of the size of a record, without a store.

use std::{
    fs::{File, OpenOptions},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::Duration,
};

use anyhow::{Context, anyhow};
use reprise::disk::Buffer;
use rustix::{
    fs::{FallocateFlags, OFlags, fallocate},
    io::Errno,
};
use twox_hash::XxHash3_64;

use super::{Contender, Direction, Name, Options, Pattern, Rate, Until, order::Order, rate::measure};

/// The file's name in the temporary directory.
pub const FILE: &str = "raw";

/// A preallocated file, and a buffer for each thread that reads or writes it.
pub struct Raw<'a> {
    file: File,
    pattern: &'a Pattern,
    order: Order,
    records: u32,
    /// The next visit of the order.
    step: AtomicU64,
    buffers: Vec<Buffer>,
    /// Whether a checksum of the record is taken with each transfer.
    checksums: bool,
}

impl<'a> Raw<'a> {
    /// Makes the file. Direct transfers run `depth` at once and nothing else is done; others run one after the other, each with
    /// a checksum, which is what a store has to do as well.
    pub fn create(
        path: &Path,
        options: &Options,
        records: u32,
        pattern: &'a Pattern,
        direct: bool,
    ) -> anyhow::Result<Self> {
        let transfer_bytes = options.transfer_bytes();
        let flags = if direct { OFlags::DIRECT } else { OFlags::empty() };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(flags.bits() as i32)
            .open(path)
            .and_then(|file| allocate(&file, u64::from(records) * transfer_bytes).map(|()| file))
            .with_context(|| format!("making the file for raw transfers, {}", path.display()))?;
        let threads = if direct { options.depth } else { 1 };
        Ok(Self {
            file,
            pattern,
            order: Order::new(records),
            records,
            step: AtomicU64::new(0),
            buffers: (0..threads).map(|_| pattern.buffer(transfer_bytes as usize)).collect(),
            checksums: !direct,
        })
    }

    /// Writes every record once.
    pub fn fill(&mut self) -> anyhow::Result<()> {
        let steps = AtomicU64::new(0);
        let records = u64::from(self.records);
        let Self { file, buffers, .. } = self;
        // The first write into preallocated space costs more than those after it, here as in the store.
        on_threads(buffers, |buffer| {
            let mut done = 0;
            loop {
                let step = steps.fetch_add(1, Ordering::Relaxed);
                if step >= records {
                    return Ok(done);
                }
                file.write_all_at(buffer.bytes(), step * buffer.len() as u64)?;
                done += 1;
            }
        })
        .and_then(|_| Ok(file.sync_data()?))
        .context("filling the file for raw transfers")
    }

    fn carry(&mut self, direction: Direction, until: Until) -> anyhow::Result<u64> {
        let Self { file, pattern, order, step, buffers, checksums, .. } = self;
        on_threads(buffers, |buffer| {
            let mut done = 0;
            while until.next(done, 1) > 0 {
                let slot = order.at(step.fetch_add(1, Ordering::Relaxed));
                let offset = u64::from(slot) * buffer.len() as u64;
                match direction {
                    Direction::Put => {
                        pattern.stamp(slot, 0, buffer.bytes_mut());
                        check(*checksums, pattern, buffer);
                        file.write_all_at(buffer.bytes(), offset)?;
                    }
                    Direction::Get => {
                        file.read_exact_at(buffer.bytes_mut(), offset)?;
                        check(*checksums, pattern, buffer);
                    }
                }
                done += 1;
            }
            Ok(done)
        })
    }
}

impl Contender for Raw<'_> {
    fn name(&self) -> Name {
        Name::Raw
    }

    fn turn(&mut self, direction: Direction, length: Duration) -> anyhow::Result<Rate> {
        measure(length, |until| self.carry(direction, until))
    }
}

fn check(wanted: bool, pattern: &Pattern, buffer: &Buffer) {
    if wanted {
        std::hint::black_box(XxHash3_64::oneshot(&buffer.bytes()[..pattern.len()]));
    }
}

fn allocate(file: &File, len_bytes: u64) -> std::io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), 0, len_bytes) {
        // Some file systems cannot reserve; the file is filled anyway.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => file.set_len(len_bytes),
        result => Ok(result?),
    }
}

/// Runs `work` on a thread for each of `states`, and adds up what it returns.
pub fn on_threads<T: Send>(
    states: &mut [T],
    work: impl Fn(&mut T) -> anyhow::Result<u64> + Sync,
) -> anyhow::Result<u64> {
    let (threads, work) = (states.len(), &work);
    thread::scope(|scope| {
        let start = |state| thread::Builder::new().spawn_scoped(scope, move || work(state));
        let started: Result<Vec<_>, _> = states.iter_mut().map(start).collect();
        let started = started.with_context(|| format!("starting {threads} threads; ask for less with --depth"))?;
        // All are waited for, whatever one of them returns.
        let ended: Vec<_> = started.into_iter().map(thread::ScopedJoinHandle::join).collect();
        let ended = ended.into_iter().map(|end| end.unwrap_or_else(|_| Err(anyhow!("a thread panicked"))));
        ended.sum()
    })
}
