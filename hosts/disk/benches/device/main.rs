//! The store against what it is made of, in one run and by turns: `cargo bench -p reprise-disk --bench device`.
//!
//! On the device, batches are held against fio (io_uring, O_DIRECT, same size and depth) if it is installed, on the store's
//! own chunks; in memory, a get against a read and a checksum into the same buffer. Every ratio is the median of the pairs.
//! Then there are write amplification, what an open store uses of the processor while nothing happens, and an open with a
//! million records.
//!
//! - `REPRISE_BENCH_DIR`: a directory on the device, by default that of temporary files
//! - `REPRISE_BENCH_MEMORY`: a directory in memory, by default `/dev/shm`
//! - `REPRISE_BENCH_SECONDS`: how long each side of a pair runs, by default 5
//! - `REPRISE_BENCH_PAIRS`: how many pairs there are, by default 7
//! - `REPRISE_BENCH_FIGURES`: which figures, of `large`, `blocking`, `small`, `memory` and `open`; by default all

mod accounts;
mod rate;
mod workload;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use reprise_core::Digest;
use reprise_disk::{Buffer, EngineChoice, GroupClass, Store};
use twox_hash::XxHash3_64;

use accounts::{Written, processor_nanoseconds};
use rate::{chunk_files, fio, measure, pairs, variable};
use workload::{Reading, Writing, class, fill, key, open, wandering};

/// A block of DeepSeek-V4-Pro.
const PAYLOAD_BYTES: u64 = 644_024;
/// Enough that no cache of the device holds them all.
const SLOTS: u32 = 3200;
/// What fills a page with its trailer.
const SMALL_BYTES: u64 = 4000;
const SMALL_SLOTS: u32 = 500_000;
/// How long an idle store is watched.
const IDLE: Duration = Duration::from_secs(3);

fn large() -> GroupClass {
    class(PAYLOAD_BYTES, 8, SLOTS)
}

fn small() -> GroupClass {
    class(SMALL_BYTES, 1, SMALL_SLOTS)
}

/// Reads and writes against fio, and what was written for what was put.
fn against_fio(parent: &Path, name: &str, class: &GroupClass, engine: EngineChoice) {
    let dir = tempfile::tempdir_in(parent).unwrap();
    let before = Written::now(dir.path());
    let (store, report) = open(dir.path(), class, engine);
    println!("{report}");
    fill(&store, class);
    let put_bytes = u64::from(class.slots) * class.payload_bytes;
    println!("write amplification, {name}, first puts, files made: {}", before.for_each_of(put_bytes, dir.path()));
    idle(&store, name);
    let chunks = chunk_files(dir.path());
    let slot_bytes = class.slot_bytes();
    let mut reading = Reading::new(&store, class.payload_bytes, wandering(class.slots));
    pairs(&format!("read, {name}, against fio"), || reading.measure(), || fio(&chunks, "read", slot_bytes));
    drop(reading);
    // fio overwrites the records, so reads come first.
    let before = Written::now(dir.path());
    fill(&store, class);
    println!("write amplification, {name}, puts over others: {}", before.for_each_of(put_bytes, dir.path()));
    let mut writing = Writing::new(&store, class.payload_bytes, wandering(class.slots));
    pairs(&format!("write, {name}, against fio"), || writing.measure(), || fio(&chunks, "write", slot_bytes));
}

/// What the store uses of the processor while nothing happens.
fn idle(store: &Store, name: &str) {
    let (start, before) = (Instant::now(), processor_nanoseconds());
    std::thread::sleep(IDLE);
    let used = (processor_nanoseconds() - before) as f64 / start.elapsed().as_nanos() as f64;
    println!("idle, {name}, {}: {:.4} % of a core", store.engine(), 100.0 * used);
}

/// Where the device is not the limit.
fn in_memory(parent: &Path) {
    let dir = tempfile::tempdir_in(parent).unwrap();
    let class = class(PAYLOAD_BYTES, 8, 800);
    let (store, report) = open(dir.path(), &class, EngineChoice::Automatic);
    println!("{report}");
    fill(&store, &class);
    let files: Vec<File> = chunk_files(dir.path()).iter().map(|path| File::open(path).unwrap()).collect();
    let slot_bytes = class.slot_bytes();
    let slots_of_a_chunk = (256 << 20) / slot_bytes;
    let mut raw_side = (Buffer::zeroed(slot_bytes as usize), wandering(class.slots));
    let mut raw = || {
        let rate = measure(PAYLOAD_BYTES, &mut raw_side, |(buffer, slots)| {
            let slot = u64::from(slots.next().expect("without end"));
            let file = &files[(slot / slots_of_a_chunk) as usize];
            file.read_exact_at(buffer.bytes_mut(), slot % slots_of_a_chunk * slot_bytes).unwrap();
            std::hint::black_box(XxHash3_64::oneshot(buffer.bytes()));
            1
        });
        Some(rate)
    };
    let mut side = (Buffer::zeroed(slot_bytes as usize), wandering(class.slots));
    let one = || {
        measure(PAYLOAD_BYTES, &mut side, |(buffer, slots)| {
            let slot = slots.next().expect("without end");
            store.get(0, slot, &key(slot), buffer).unwrap();
            1
        })
    };
    pairs("get in memory, against a read and a checksum", one, &mut raw);
    let mut reading = Reading::new(&store, PAYLOAD_BYTES, wandering(class.slots));
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
    let wanted = std::env::var("REPRISE_BENCH_FIGURES").unwrap_or_default();
    let figures: [(&str, &dyn Fn()); 5] = [
        ("large", &|| against_fio(&device, "records of 632 KiB", &large(), EngineChoice::Ring)),
        ("blocking", &|| against_fio(&device, "records of 632 KiB, system calls", &large(), EngineChoice::Blocking)),
        ("small", &|| against_fio(&device, "records of 4 KiB", &small(), EngineChoice::Ring)),
        ("memory", &|| in_memory(&memory)),
        ("open", &|| opening(&memory)),
    ];
    for (name, figure) in figures {
        if wanted.is_empty() || wanted.split([',', ' ']).any(|one| one == name) {
            figure();
        }
    }
}
