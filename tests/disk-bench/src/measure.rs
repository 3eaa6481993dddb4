//! One contender's turn in a round.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;

use crate::contender::{Contender, Reader};
use crate::interrupt;
use crate::machine::{device_read_bytes, gib, gib_per_second, processor_seconds, sync_file_system};
use crate::records::{Records, Tally};

/// Reads of which each is timed by itself.
const SINGLE_READS: usize = 400;

/// What one turn brought.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Turn {
    /// GiB/s until the last record could be read again.
    pub written: f64,
    /// GiB/s until all were on the device, too.
    pub synced: f64,
    /// Processor seconds per GiB until then.
    pub write_processor: f64,
    /// GiB/s of reads, many at once.
    pub read: f64,
    /// Processor seconds per GiB read.
    pub read_processor: f64,
    /// Of the bytes read, how much came from the device and not from a cache in memory.
    pub from_device: Option<f64>,
    /// Milliseconds of a read with nothing else under way: median.
    pub latency_p50: f64,
    /// Likewise: the 99th percentile.
    pub latency_p99: f64,
    /// Records that were read after reopening.
    pub found: u64,
    /// Bytes of all reads that were not what was written.
    pub wrong_bytes: u64,
}

/// Has `contender` write the records below `place`, and read them for `seconds` at least.
pub fn turn(contender: &dyn Contender, place: &Path, records: &Records, seconds: Duration) -> Result<Turn> {
    let doing = |what: &str| format!("{}: {what}", contender.name());
    let (start, before) = (Instant::now(), processor_seconds());
    let closing = contender.write(place, records).with_context(|| doing("writing"))?;
    let written = start.elapsed();
    closing().with_context(|| doing("closing"))?;
    sync_file_system(place)?;
    let (synced, write_processor) = (start.elapsed(), processor_seconds() - before);

    let mut reader = contender.open(place, records).with_context(|| doing("opening again"))?;
    let mut turn = Turn::default();
    read_many(&mut *reader, records, seconds, &mut turn).with_context(|| doing("reading"))?;
    read_singly(&mut *reader, records, &mut turn).with_context(|| doing("reading one by one"))?;

    // What cannot be read was not written.
    let bytes = turn.found * records.bytes as u64;
    turn.written = gib_per_second(bytes, written);
    turn.synced = gib_per_second(bytes, synced);
    turn.write_processor = write_processor / gib(bytes);
    Ok(turn)
}

/// The first pass says what is there, and is not timed: a virtual device that was spared while a slow contender wrote is
/// faster for a while.
fn read_many(reader: &mut dyn Reader, records: &Records, seconds: Duration, turn: &mut Turn) -> Result<()> {
    reader.forget_pages()?;
    let tally = Tally::new(records);
    reader.read_all(&records.shuffled(0), &tally)?;
    turn.found = tally.found();
    turn.wrong_bytes = tally.wrong_bytes();

    let (mut time, mut processor, mut found, mut device_bytes) = (Duration::ZERO, 0.0, 0, Some(0));
    for pass in 1.. {
        reader.forget_pages()?;
        let (order, tally) = (records.shuffled(pass), Tally::new(records));
        let (start, before, device_before) = (Instant::now(), processor_seconds(), device_read_bytes());
        reader.read_all(&order, &tally)?;
        time += start.elapsed();
        processor += processor_seconds() - before;
        let device_read = device_read_bytes().zip(device_before).map(|(after, before)| after - before);
        device_bytes = device_bytes.zip(device_read).map(|(sum, bytes)| sum + bytes);
        found += tally.found();
        turn.wrong_bytes += tally.wrong_bytes();
        if time >= seconds {
            break;
        }
    }
    let bytes = found * records.bytes as u64;
    turn.read = gib_per_second(bytes, time);
    turn.read_processor = processor / gib(bytes);
    turn.from_device = device_bytes.map(|device_bytes| device_bytes as f64 / bytes as f64);
    Ok(())
}

fn read_singly(reader: &mut dyn Reader, records: &Records, turn: &mut Turn) -> Result<()> {
    reader.forget_pages()?;
    let (order, tally) = (records.shuffled(u64::MAX), Tally::new(records));
    let mut times = Vec::new();
    for index in order.iter().take(SINGLE_READS) {
        interrupt::check()?;
        let start = Instant::now();
        reader.read_one(*index, &tally)?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    turn.latency_p50 = times[times.len() / 2];
    turn.latency_p99 = times[times.len() * 99 / 100];
    turn.wrong_bytes += tally.wrong_bytes();
    Ok(())
}
