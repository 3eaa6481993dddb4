//! The store against what it is made of, in one run and by turns: `cargo bench -p reprise-disk --bench device`.
//!
//! On the device, batches are held against fio (io_uring, O_DIRECT, same size and depth) if it is installed, on the store's
//! own chunks; in memory, a get against a read and a checksum into the same buffer. Every figure is the median of the pairs.
//!
//! - `REPRISE_BENCH_DIR`: a directory on the device, by default that of temporary files
//! - `REPRISE_BENCH_MEMORY`: a directory in memory, by default `/dev/shm`
//! - `REPRISE_BENCH_SECONDS`: how long each side of a pair runs, by default 5
//! - `REPRISE_BENCH_PAIRS`: how many pairs there are, by default 7

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use reprise_core::Digest;
use reprise_disk::{
    Batch, Buffer, EngineChoice, Get, Got, GroupClass, IoOptions, Key, NamespaceRecord, Options, Put, PutOutcome, Store,
};
use xxhash_rust::xxh3::xxh3_64;

/// A block of DeepSeek-V4-Pro.
const PAYLOAD_BYTES: u64 = 644_024;
/// Enough that no cache of the device holds them all.
const SLOTS: u32 = 3200;
const DEPTH: usize = 32;

fn variable<T: std::str::FromStr>(name: &str, default: T) -> T {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn seconds() -> Duration {
    Duration::from_secs_f64(variable("REPRISE_BENCH_SECONDS", 5.0))
}

fn class(payload_bytes: u64, sections: u64, slots: u32) -> GroupClass {
    let section = (payload_bytes / sections).next_multiple_of(4096);
    let ends = (1..sections).map(|index| index * section).chain([payload_bytes]).collect();
    GroupClass { group: 0, name: "history".into(), fingerprint: Digest([7; 32]), payload_bytes, sections: ends, slots }
}

fn key(slot: u32) -> Key {
    let mut digest = [0; 32];
    digest[..4].copy_from_slice(&slot.to_le_bytes());
    Key { namespace: 0, digest: Digest(digest), position: 128 * u64::from(slot) }
}

fn open(dir: &Path, class: &GroupClass, engine: EngineChoice) -> (Store, String) {
    let io = IoOptions { engine, depth: DEPTH, ..IoOptions::default() };
    let (store, report) = Store::open(dir, std::slice::from_ref(class), &Options { io, ..Options::default() }).unwrap();
    let namespace = NamespaceRecord {
        check: 1,
        model: "bench".into(),
        revision: String::new(),
        salt_hash: Digest([0; 32]),
        adapter: String::new(),
        rank: 0,
        ranks: 1,
        block_tokens: 128,
        extensions: String::new(),
    };
    assert_eq!(store.namespace(&namespace).unwrap(), 0);
    (store, report.to_string())
}

/// Slots in an order that jumps about, without end; none comes twice within a round. The stride is a prime that divides
/// none of the numbers of slots.
fn wandering(slots: u32) -> impl Iterator<Item = u32> {
    (0..).map(move |step: u64| (step * 1009 % u64::from(slots)) as u32)
}

fn put_of(slot: u32, mut buffer: Buffer) -> Put {
    buffer.resize(PAYLOAD_BYTES as usize);
    buffer.bytes_mut()[..4].copy_from_slice(&slot.to_le_bytes());
    Put { group: 0, slot, key: key(slot), parent: Digest([0; 32]), last_use: 0, buffer }
}

/// Bytes a second and processor seconds a GiB.
#[derive(Clone, Copy, Default)]
struct Rate {
    bytes_a_second: f64,
    processor: f64,
}

/// What the process has used of the processor so far (proc(5), `stat`).
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    fields.split_whitespace().skip(11).take(2).map(|field| field.parse::<f64>().unwrap()).sum::<f64>() / 100.0
}

/// Runs `step`, which returns how many bytes it has carried, for the time of one side of a pair.
fn measure<T>(side: &mut T, step: impl Fn(&mut T) -> u64) -> Rate {
    let (start, before) = (Instant::now(), processor_seconds());
    let mut bytes = 0;
    while start.elapsed() < seconds() {
        bytes += step(side);
    }
    rate(bytes as f64, start.elapsed().as_secs_f64(), processor_seconds() - before)
}

fn rate(bytes: f64, seconds: f64, processor: f64) -> Rate {
    Rate { bytes_a_second: bytes / seconds, processor: processor / (bytes / f64::from(1 << 30)) }
}

/// How many batches are under way at once, so that the device does not run dry at the end of one.
const BATCHES: usize = 3;

/// Reads records without end, and is asked again and again for the bytes that came.
struct Reading<'a, I> {
    store: &'a Store,
    slots: I,
    batches: VecDeque<Batch<Got>>,
}

impl<I: Iterator<Item = u32>> Reading<'_, I> {
    fn measure(&mut self) -> Rate {
        let rate = measure(self, Self::step);
        // What is under way would miss its deadline while the other side has its turn.
        self.batches.clear();
        rate
    }

    fn step(&mut self) -> u64 {
        while self.batches.len() < BATCHES {
            let gets: Vec<Get> =
                self.slots.by_ref().take(2 * DEPTH).map(|slot| Get { group: 0, slot, key: key(slot) }).collect();
            self.batches.push_back(self.store.get_batch(&gets, None));
        }
        let batch = self.batches.pop_front().expect("there are some");
        batch.map(|(_, got)| got.expect("the record is there").len() as u64).sum()
    }
}

/// Writes records without end. A slot comes again long after it was written.
struct Writing<'a, I> {
    store: &'a Store,
    slots: I,
    batches: VecDeque<Batch<PutOutcome>>,
    spare: Vec<Buffer>,
}

impl<I: Iterator<Item = u32>> Writing<'_, I> {
    fn measure(&mut self) -> Rate {
        let rate = measure(self, Self::step);
        self.batches.clear();
        rate
    }

    fn step(&mut self) -> u64 {
        while self.batches.len() < BATCHES {
            let spare = &mut self.spare;
            let put = |slot| put_of(slot, spare.pop().unwrap_or_default());
            let puts = self.slots.by_ref().take(2 * DEPTH).map(put).collect();
            self.batches.push_back(self.store.put_batch(puts, None));
        }
        let batch = self.batches.pop_front().expect("there are some");
        let outcomes = batch.map(|(_, outcome)| {
            outcome.result.expect("the record is taken");
            self.spare.extend(outcome.buffer);
        });
        outcomes.count() as u64 * PAYLOAD_BYTES
    }
}

/// Puts every record once.
fn fill(store: &Store, slots: u32) {
    let mut spare = Vec::new();
    for first in (0..slots).step_by(DEPTH) {
        let range = first..slots.min(first + DEPTH as u32);
        let puts = range.map(|slot| put_of(slot, spare.pop().unwrap_or_default())).collect();
        for (_, outcome) in store.put_batch(puts, None) {
            outcome.result.expect("the record is taken");
            spare.extend(outcome.buffer);
        }
    }
    store.sync().unwrap();
}

/// fio on the same chunks: what it carries, or `None` if it is not installed.
fn fio(chunks: &[PathBuf], direction: &str, slot_bytes: u64) -> Option<Rate> {
    let names: Vec<&str> = chunks.iter().filter_map(|chunk| chunk.to_str()).collect();
    let output = Command::new("fio")
        .args(["--name=pair", "--ioengine=io_uring", "--direct=1", "--minimal", "--time_based", "--randrepeat=0"])
        .args(["--allow_file_create=0", "--norandommap", "--random_distribution=random"])
        .arg(format!("--filename={}", names.join(":")))
        .arg(format!("--rw=rand{direction}"))
        .arg(format!("--bs={slot_bytes}"))
        .arg(format!("--iodepth={DEPTH}"))
        .arg(format!("--runtime={}", seconds().as_secs_f64().ceil()))
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let fields: Vec<&str> = text.trim().split(';').collect();
    // Of the terse format, version 3: bytes carried in KiB, milliseconds, and the processor's share.
    let number = |index: usize| fields.get(index).and_then(|field| field.trim_end_matches('%').parse::<f64>().ok());
    let (bytes, time) = if direction == "read" { (5, 8) } else { (46, 49) };
    let (bytes, time) = (number(bytes)? * 1024.0, number(time)? / 1000.0);
    Some(rate(bytes, time, (number(87)? + number(88)?) / 100.0 * time))
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs both sides by turns and prints the medians, and the median of the ratios.
fn pairs(what: &str, mut ours: impl FnMut() -> Rate, mut theirs: impl FnMut() -> Option<Rate>) {
    let mut pairs = Vec::new();
    for turn in 0..variable("REPRISE_BENCH_PAIRS", 7) {
        let (first, second) = match turn % 2 {
            0 => (Some(ours()), theirs()),
            _ => {
                let theirs = theirs();
                (Some(ours()), theirs)
            }
        };
        let (Some(ours), Some(theirs)) = (first, second) else {
            println!("{what}: nothing to compare with");
            return;
        };
        pairs.push((ours, theirs));
    }
    let of = |value: fn(&(Rate, Rate)) -> f64| median(pairs.iter().map(value));
    println!(
        "{what}: {:.0} MB/s against {:.0} MB/s, ratio {:.3}; processor {:.3} s/GiB against {:.3} s/GiB",
        of(|(ours, _)| ours.bytes_a_second / 1e6),
        of(|(_, theirs)| theirs.bytes_a_second / 1e6),
        of(|(ours, theirs)| ours.bytes_a_second / theirs.bytes_a_second),
        of(|(ours, _)| ours.processor),
        of(|(_, theirs)| theirs.processor),
    );
}

fn chunk_files(dir: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut chunks: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "chunk")).collect();
    chunks.sort();
    chunks
}

fn on_the_device(parent: &Path, engine: EngineChoice) {
    let dir = tempfile::tempdir_in(parent).unwrap();
    let class = class(PAYLOAD_BYTES, 8, SLOTS);
    let (store, report) = open(dir.path(), &class, engine);
    println!("{report}");
    fill(&store, SLOTS);
    let chunks = chunk_files(dir.path());
    let slot_bytes = class.slot_bytes();
    let mut reading = Reading { store: &store, slots: wandering(SLOTS), batches: VecDeque::new() };
    pairs("read, records of 632 KiB, against fio", || reading.measure(), || fio(&chunks, "read", slot_bytes));
    drop(reading);
    // fio overwrites the records, so reads come first.
    let batches = VecDeque::new();
    let mut writing = Writing { store: &store, slots: wandering(SLOTS), batches, spare: Vec::new() };
    pairs("write, records of 632 KiB, against fio", || writing.measure(), || fio(&chunks, "write", slot_bytes));
}

/// Where the device is not the limit.
fn in_memory(parent: &Path) {
    let dir = tempfile::tempdir_in(parent).unwrap();
    let class = class(PAYLOAD_BYTES, 8, 800);
    let (store, report) = open(dir.path(), &class, EngineChoice::Automatic);
    println!("{report}");
    fill(&store, class.slots);
    let files: Vec<File> = chunk_files(dir.path()).iter().map(|path| File::open(path).unwrap()).collect();
    let slot_bytes = class.slot_bytes();
    let slots_of_a_chunk = (256 << 20) / slot_bytes;
    let mut raw_side = (Buffer::zeroed(slot_bytes as usize), wandering(class.slots));
    let mut raw = || {
        let rate = measure(&mut raw_side, |(buffer, slots)| {
            let slot = u64::from(slots.next().expect("without end"));
            let file = &files[(slot / slots_of_a_chunk) as usize];
            file.read_exact_at(buffer.bytes_mut(), slot % slots_of_a_chunk * slot_bytes).unwrap();
            std::hint::black_box(xxh3_64(buffer.bytes()));
            PAYLOAD_BYTES
        });
        Some(rate)
    };
    let mut side = (Buffer::zeroed(slot_bytes as usize), wandering(class.slots));
    let one = || {
        measure(&mut side, |(buffer, slots)| {
            let slot = slots.next().expect("without end");
            store.get(0, slot, &key(slot), buffer).unwrap();
            PAYLOAD_BYTES
        })
    };
    pairs("get in memory, against a read and a checksum", one, &mut raw);
    let mut reading = Reading { store: &store, slots: wandering(class.slots), batches: VecDeque::new() };
    let many = || reading.measure();
    pairs("batches in memory, against a read and a checksum on one thread", many, raw);
}

/// A million records, of 4 KiB each with what belongs to them.
fn opening(parent: &Path) {
    let dir = tempfile::tempdir_in(parent).unwrap();
    let class = class(3000, 1, 1_000_000);
    let (store, _) = open(dir.path(), &class, EngineChoice::Automatic);
    let mut buffer = Buffer::zeroed(3000);
    for slot in 0..class.slots {
        store.put(0, slot, &key(slot), Digest([0; 32]), 0, &mut buffer).unwrap();
    }
    drop(store);
    let resident = || {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        statm.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
    };
    for _ in 0..3 {
        let (before, start) = (resident(), Instant::now());
        let (store, _) = open(dir.path(), &class, EngineChoice::Automatic);
        let (time, bytes) = (start.elapsed(), resident().saturating_sub(before));
        assert_eq!(store.take_records(0).len(), 1_000_000);
        println!("open with 1,000,000 records: {time:.3?}, {} bytes of memory a record", bytes / 1_000_000);
    }
}

fn main() {
    let device: PathBuf = variable("REPRISE_BENCH_DIR", std::env::temp_dir());
    let memory: PathBuf = variable("REPRISE_BENCH_MEMORY", PathBuf::from("/dev/shm"));
    for engine in [EngineChoice::Ring, EngineChoice::Blocking] {
        on_the_device(&device, engine);
    }
    in_memory(&memory);
    opening(&memory);
}
