//! foyer's hybrid cache, as a store: nothing stays in memory, and every record goes to its block engine.

use std::future::Future;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ::foyer::{
    BlockEngineConfig, Code, DeviceBuilder, Error, FsDeviceBuilder, HybridCache, HybridCacheBuilder, HybridCachePolicy,
    IoEngineConfig, PsyncIoEngineConfig, RecoverMode, UringIoEngineConfig,
};
use anyhow::{Context, Result};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::contender::{Closing, Contender, Reader};
use crate::interrupt;
use crate::records::{Records, Tally};

/// Bytes of a block, the unit that foyer evicts: a file each.
const BLOCK_BYTES: usize = 64 << 20;

/// Blocks that are written at once.
const FLUSHERS: usize = 4;

/// Records handed over and not yet on the device, as a multiple of the depth. A flusher writes what has come together while
/// it wrote before, so it needs more than the depth to be busy.
const AHEAD: usize = 2;

/// What carries out foyer's reads and writes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// io_uring, on a thread that does not sleep.
    Uring,
    /// `pread` and `pwrite` on threads: foyer's default.
    Psync,
}

/// foyer.
#[derive(Clone, Copy)]
pub struct Foyer {
    /// How many reads are under way at once.
    pub depth: usize,
    pub engine: Engine,
}

/// A payload as foyer keeps it. When it is written, it is the pool's and takes no copy; its permit counts how many foyer
/// still holds, because foyer drops without a word what comes faster than it writes.
enum Value {
    Written { records: Records, index: usize, _permit: OwnedSemaphorePermit },
    Read(Vec<u8>),
}

impl Value {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Written { records, index, .. } => records.payload(*index),
            Self::Read(bytes) => bytes,
        }
    }
}

impl Code for Value {
    fn encode(&self, writer: &mut impl Write) -> ::foyer::Result<()> {
        writer.write_all(self.bytes()).map_err(Error::io_error)
    }

    fn decode(reader: &mut impl Read) -> ::foyer::Result<Self> {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).map_err(Error::io_error)?;
        Ok(Self::Read(bytes))
    }

    fn estimated_size(&self) -> usize {
        self.bytes().len()
    }
}

type Cache = HybridCache<u128, Value>;

impl Foyer {
    fn ahead(self) -> usize {
        AHEAD * self.depth
    }

    fn io_engine(self) -> Box<dyn IoEngineConfig> {
        match self.engine {
            Engine::Uring => UringIoEngineConfig::new().with_io_depth(self.depth.max(64)).boxed(),
            Engine::Psync => PsyncIoEngineConfig::new().boxed(),
        }
    }

    async fn cache(self, place: &Path, records: &Records) -> Result<Cache> {
        let slot_bytes = (records.bytes + 8192).next_multiple_of(4096);
        let block_bytes = BLOCK_BYTES.max(4 * slot_bytes);
        // Each flusher leaves a block that is not full, and none must be evicted.
        let blocks = (records.count * slot_bytes).div_ceil(block_bytes) * 5 / 4 + 2 * FLUSHERS + 2;
        let device = FsDeviceBuilder::new(place).with_capacity(blocks * block_bytes).with_direct(true).build()?;
        // Whatever flusher they go to, the records ahead have room.
        let buffer_bytes = self.ahead() * slot_bytes;
        let block_engine = BlockEngineConfig::new(device)
            .with_block_size(block_bytes)
            .with_flushers(FLUSHERS)
            .with_buffer_pool_size(FLUSHERS * buffer_bytes)
            .with_submit_queue_size_threshold(2 * buffer_bytes);
        let cache = HybridCacheBuilder::new()
            .with_policy(HybridCachePolicy::WriteOnInsertion)
            .with_flush_on_close(false)
            .memory(1)
            .with_shards(1)
            .with_filter(|_, _| false)
            .storage()
            .with_io_engine_config(self.io_engine())
            .with_engine_config(block_engine)
            .with_recover_mode(RecoverMode::Quiet)
            .build()
            .await?;
        Ok(cache)
    }
}

fn runtime() -> Result<Runtime> {
    Builder::new_multi_thread().enable_all().build().context("starting foyer's threads")
}

/// Hands over every record, and returns when all are on the device.
async fn insert(cache: &Cache, records: &Records, ahead: usize) -> Result<()> {
    let room = Arc::new(Semaphore::new(ahead));
    for index in 0..records.count {
        interrupt::check()?;
        let permit = Arc::clone(&room).acquire_owned().await?;
        cache.insert(Records::key(index), Value::Written { records: records.clone(), index, _permit: permit });
    }
    cache.storage().wait().await;
    Ok(())
}

impl Contender for Foyer {
    fn name(&self) -> String {
        match self.engine {
            Engine::Uring => "foyer, io_uring".to_owned(),
            Engine::Psync => "foyer, pread".to_owned(),
        }
    }

    fn write(&self, place: &Path, records: &Records) -> Result<Closing> {
        let runtime = runtime()?;
        let cache = runtime.block_on(self.cache(place, records))?;
        runtime.block_on(insert(&cache, records, self.ahead()))?;
        Ok(Box::new(move || close(&runtime, &cache)))
    }

    fn open(&self, place: &Path, records: &Records) -> Result<Box<dyn Reader>> {
        let runtime = runtime()?;
        let cache = runtime.block_on(self.cache(place, records))?;
        Ok(Box::new(FoyerReader { depth: self.depth, cache, runtime }))
    }
}

fn close(runtime: &Runtime, cache: &Cache) -> Result<()> {
    runtime.block_on(cache.close()).context("closing foyer")
}

/// The cache goes before the runtime, in whose threads it ends.
struct FoyerReader {
    depth: usize,
    cache: Cache,
    runtime: Runtime,
}

fn read(cache: &Cache, index: usize, tally: &Tally) -> impl Future<Output = Result<()>> {
    let got = cache.get(&Records::key(index));
    async move {
        if let Some(entry) = got.await.context("getting a record from foyer")? {
            tally.check(index, entry.value().bytes());
        }
        Ok(())
    }
}

impl Reader for FoyerReader {
    fn read_all(&mut self, order: &Arc<[usize]>, tally: &Arc<Tally>) -> Result<()> {
        let next = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        for _ in 0..self.depth {
            let (cache, order, tally, next) = (self.cache.clone(), order.clone(), tally.clone(), next.clone());
            let task = async move {
                while let Some(index) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    interrupt::check()?;
                    read(&cache, *index, &tally).await?;
                }
                Ok(())
            };
            tasks.spawn_on(task, self.runtime.handle());
        }
        self.runtime.block_on(tasks.join_all()).into_iter().collect()
    }

    fn read_one(&mut self, index: usize, tally: &Tally) -> Result<()> {
        self.runtime.block_on(read(&self.cache, index, tally))
    }
}

impl Drop for FoyerReader {
    fn drop(&mut self) {
        // Nothing was written, so there is nothing to lose.
        let _ = close(&self.runtime, &self.cache);
    }
}
