//! How fast something is, what it takes of the processor, and pairs of such figures from one run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::accounts::processor_seconds;
use crate::workload::DEPTH;

pub fn variable<T: std::str::FromStr>(name: &str, default: T) -> T {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

pub fn seconds() -> Duration {
    Duration::from_secs_f64(variable("REPRISE_BENCH_SECONDS", 5.0))
}

/// Bytes and records a second, and processor seconds a GiB.
#[derive(Clone, Copy, Default)]
pub struct Rate {
    pub bytes_a_second: f64,
    pub records_a_second: f64,
    pub processor: f64,
}

/// Runs `step`, which returns how many records of so many bytes it has carried, for the time of one side of a pair.
pub fn measure<T>(record_bytes: u64, side: &mut T, step: impl Fn(&mut T) -> u64) -> Rate {
    let (start, before) = (Instant::now(), processor_seconds());
    let mut records = 0;
    while start.elapsed() < seconds() {
        records += step(side);
    }
    rate(records as f64, record_bytes, start.elapsed().as_secs_f64(), processor_seconds() - before)
}

fn rate(records: f64, record_bytes: u64, seconds: f64, processor: f64) -> Rate {
    let bytes = records * record_bytes as f64;
    Rate {
        bytes_a_second: bytes / seconds,
        records_a_second: records / seconds,
        processor: processor / (bytes / f64::from(1 << 30)),
    }
}

/// fio on the same chunks: what it carries, or `None` if it is not installed.
pub fn fio(chunks: &[PathBuf], direction: &str, slot_bytes: u64) -> Option<Rate> {
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
    Some(rate(bytes / slot_bytes as f64, slot_bytes, time, (number(87)? + number(88)?) / 100.0 * time))
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs both sides by turns and prints the medians, and the median of the ratios.
pub fn pairs(what: &str, mut ours: impl FnMut() -> Rate, mut theirs: impl FnMut() -> Option<Rate>) {
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
        "{what}: ratio {:.3}, {:.0} MB/s against {:.0} MB/s, {:.0} records/s against {:.0}; processor {:.3} s/GiB against \
         {:.3} s/GiB",
        of(|(ours, theirs)| ours.records_a_second / theirs.records_a_second),
        of(|(ours, _)| ours.bytes_a_second / 1e6),
        of(|(_, theirs)| theirs.bytes_a_second / 1e6),
        of(|(ours, _)| ours.records_a_second),
        of(|(_, theirs)| theirs.records_a_second),
        of(|(ours, _)| ours.processor),
        of(|(_, theirs)| theirs.processor),
    );
}

/// The chunk files of a store.
pub fn chunk_files(dir: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut chunks: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "chunk")).collect();
    chunks.sort();
    chunks
}
