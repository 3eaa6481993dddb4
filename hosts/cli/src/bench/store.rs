//! The store's side: records put and got in batches by a few threads, as requests of a serving process would.

use std::{collections::BTreeMap, path::Path, time::Duration};

use anyhow::Context;
use reprise::{
    Digest,
    disk::{GroupClass, IoEngine, IoMode, IoOptions, NamespaceRecord, Options as StoreOptions, Store},
};

use super::{
    Contender, Direction, Latencies, Name, Options, Pattern, Rate, Until,
    lane::{Compared, GROUP, Lane, User},
    rate::{measure, written_bytes},
    raw::on_threads,
};

/// Batches under way at once, so that the device does not run dry at the end of one.
const BATCHES: u32 = 3;
/// A device that takes longer for a batch is taken for broken.
const PATIENCE: Duration = Duration::from_secs(120);
/// Sections of a record are at least so long, as those of a cache's are.
const SECTION_BYTES: u64 = 64 << 10;

/// The group of records of this length.
pub fn class(record_bytes: u64, slots: u32) -> GroupClass {
    let sections = (record_bytes / SECTION_BYTES).clamp(1, 8);
    let section_bytes = (record_bytes / sections).next_multiple_of(4096);
    let ends = (1..sections).map(|index| index * section_bytes).chain([record_bytes]);
    GroupClass {
        group: GROUP,
        name: "bench".into(),
        fingerprint: Digest([0; 32]),
        payload_bytes: record_bytes,
        sections: ends.collect(),
        slots,
    }
}

/// A store, and who puts into it and gets from it.
pub struct Bench<'a> {
    store: Store,
    /// What the store could not do as it was asked to.
    notes: Vec<String>,
    namespace: u16,
    pattern: &'a Pattern,
    lanes: Vec<Lane>,
    /// Counts the turns with puts, and the filling before them.
    generation: u32,
    latencies: BTreeMap<Direction, Latencies>,
    /// Records put in turns, and the bytes that were written for them, tables included.
    put: Put,
}

/// What was put, and what was written for it.
#[derive(Clone, Copy, Debug, Default)]
struct Put {
    records: u64,
    /// `None` where the kernel does not count them.
    written_bytes: Option<u64>,
}

impl<'a> Bench<'a> {
    /// Makes a store with room for `records`. If it has no direct input and output, records go one by one from then on.
    pub fn open(directory: &Path, options: &Options, records: u32, pattern: &'a Pattern) -> anyhow::Result<Self> {
        let class = class(options.record_bytes, records);
        let io = IoOptions {
            depth: options.depth,
            buffer_bytes: options.depth as u64 * class.slot_bytes(),
            patience: PATIENCE,
            ..IoOptions::default()
        };
        let (store, report) = Store::open(directory, &[class], &StoreOptions { io, ..StoreOptions::default() })
            .context("making the store")?;
        let namespace = store.namespace(&namespace()).context("making the store's namespace")?;
        let (threads, batch) = if *store.mode() == IoMode::Direct { (BATCHES, options.depth) } else { (1, 1) };
        let threads = threads.min(records);
        let lanes = (0..threads).map(|first| Lane::new(first, threads, records, batch)).collect();
        Ok(Self {
            store,
            notes: report.notes,
            namespace,
            pattern,
            lanes,
            generation: 0,
            latencies: BTreeMap::new(),
            put: Put::default(),
        })
    }

    pub fn mode(&self) -> &IoMode {
        self.store.mode()
    }

    pub fn is_direct(&self) -> bool {
        *self.mode() == IoMode::Direct
    }

    pub fn engine(&self) -> &IoEngine {
        self.store.engine()
    }

    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Bytes written for each byte that was put in the turns, tables and trailers included. `None` if it is not known, or nothing
    /// was put past the page cache.
    pub fn write_amplification(&self) -> Option<f64> {
        let put_bytes = self.put.records as f64 * self.pattern.len() as f64;
        let written_bytes = self.put.written_bytes.filter(|_| self.is_direct() && self.put.records > 0)?;
        Some(written_bytes as f64 / put_bytes)
    }

    /// How long records took in all turns.
    pub fn into_latencies(self) -> BTreeMap<Direction, Latencies> {
        self.latencies
    }

    /// Puts every record once.
    pub fn fill(&mut self) -> anyhow::Result<()> {
        self.on_lanes(|user, lane| user.put(lane, Until::Records(lane.slots())))?;
        self.take_latencies();
        self.store.sync().context("filling the store")
    }

    /// Gets every record once and holds it against what was put there last.
    pub fn compare(&mut self) -> anyhow::Result<Compared> {
        let mut compared = Compared::default();
        self.on_lanes(|user, lane| user.get(lane, Until::Records(lane.slots()), true))?;
        self.take_latencies();
        self.lanes.iter_mut().for_each(|lane| compared += std::mem::take(&mut lane.compared));
        Ok(compared)
    }

    fn carry(&mut self, direction: Direction, until: Until) -> anyhow::Result<u64> {
        match direction {
            Direction::Put => {
                self.generation += 1;
                self.on_lanes(|user, lane| user.put(lane, until))
            }
            Direction::Get => self.on_lanes(|user, lane| user.get(lane, until, false)),
        }
    }

    fn on_lanes(&mut self, work: impl Fn(&User<'_>, &mut Lane) -> anyhow::Result<u64> + Sync) -> anyhow::Result<u64> {
        let one_by_one = !self.is_direct();
        let Self { store, pattern, namespace, generation, .. } = self;
        let user = User { store, pattern, namespace: *namespace, generation: *generation, one_by_one };
        on_threads(&mut self.lanes, |lane| work(&user, lane))
    }

    fn take_latencies(&mut self) -> Latencies {
        let mut all = Latencies::default();
        self.lanes.iter_mut().for_each(|lane| all.merge(&std::mem::take(&mut lane.latencies)));
        all
    }
}

impl Contender for Bench<'_> {
    fn name(&self) -> Name {
        Name::Store
    }

    fn turn(&mut self, direction: Direction, length: Duration) -> anyhow::Result<Rate> {
        let before = written_bytes();
        let rate = measure(length, |until| self.carry(direction, until))?;
        if direction == Direction::Put {
            // What tables owe the device is counted when it is written to them.
            let written = written_bytes().zip(before).map(|(now, before)| now - before);
            self.put.records += rate.records;
            self.put.written_bytes = written.map(|written| written + self.put.written_bytes.unwrap_or(0));
        }
        let latencies = self.take_latencies();
        self.latencies.entry(direction).or_default().merge(&latencies);
        Ok(rate)
    }
}

fn namespace() -> NamespaceRecord {
    NamespaceRecord {
        check: 0,
        model: "bench".into(),
        revision: String::new(),
        salt_hash: Digest([0; 32]),
        adapter: String::new(),
        rank: 0,
        ranks: 1,
        block_tokens: 1,
        extensions: String::new(),
    }
}
