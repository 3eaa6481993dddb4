//! How fast records are carried, and what the processor does for it.

use std::{
    fs,
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow};

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// No record but the first begins after this.
    Time(Instant),
    /// After so many records.
    Records(u64),
}

impl Until {
    /// How many of the next `wanted` records may begin if so many are `done`.
    pub fn next(self, done: u64, wanted: usize) -> usize {
        match self {
            Self::Time(end) if done > 0 && Instant::now() >= end => 0,
            Self::Time(_) => wanted,
            Self::Records(all) => wanted.min(usize::try_from(all.saturating_sub(done)).unwrap_or(usize::MAX)),
        }
    }
}

/// What a turn gave.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Records carried.
    pub records: u64,
    /// Time for all of them.
    pub seconds: f64,
    /// User and system time of all threads, where it is known.
    pub processor_seconds: Option<f64>,
}

/// Bytes that this process has written to devices so far: pages when they become dirty, and what goes past the page cache
/// (`write_bytes` of proc(5), `io`). `None` where the kernel does not count them.
pub fn written_bytes() -> Option<u64> {
    let io = fs::read_to_string("/proc/self/io").ok()?;
    io.lines().find_map(|line| line.strip_prefix("write_bytes: "))?.parse().ok()
}

impl Rate {
    /// Records a second.
    pub fn records_per_second(&self) -> f64 {
        self.records as f64 / self.seconds
    }

    /// GiB of records a second.
    pub fn gib_per_second(&self, record_bytes: u64) -> f64 {
        self.gib(record_bytes) / self.seconds
    }

    /// Seconds of the processor for a GiB of records, where they are known.
    pub fn processor_seconds_per_gib(&self, record_bytes: u64) -> Option<f64> {
        self.processor_seconds.map(|seconds| seconds / self.gib(record_bytes))
    }

    fn gib(&self, record_bytes: u64) -> f64 {
        self.records as f64 * record_bytes as f64 / f64::from(1 << 30)
    }
}

/// Runs `work`, which carries records for about the `length` of a turn and says how many.
pub fn measure(length: Duration, work: impl FnOnce(Until) -> anyhow::Result<u64>) -> anyhow::Result<Rate> {
    let (start, before) = (Instant::now(), processor_seconds()?);
    let records = work(Until::Time(start + length))?;
    let seconds = start.elapsed().as_secs_f64();
    Ok(Rate { records, seconds, processor_seconds: Some(processor_seconds()? - before) })
}

/// User and system time of this process so far, in steps of 10 ms (proc_pid_stat(5), fields 14 and 15, which Linux shows in
/// hundredths of a second).
fn processor_seconds() -> anyhow::Result<f64> {
    let path = "/proc/self/stat";
    let stat = fs::read_to_string(path).with_context(|| format!("reading the processor time from {path}"))?;
    // The second field is the program's name in brackets and may hold anything.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    let times: Vec<f64> = fields.skip(11).take(2).filter_map(|field| field.parse().ok()).collect();
    match times[..] {
        [user, system] => Ok((user + system) / 100.0),
        _ => Err(anyhow!("reading the processor time from {path}: it has no such fields")),
    }
}

/// The value in the middle; of an even number of them, the mean of the two in the middle.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outlier_is_not_the_median() {
        assert_eq!(median([3.0, 1000.0, 1.0].into_iter()), 3.0);
        assert_eq!(median([4.0, 1000.0, 1.0, 3.0].into_iter()), 3.5);
    }

    #[test]
    fn no_record_is_left_out_or_done_twice() {
        let until = Until::Records(10);
        let mut done = 0;
        let batches: Vec<usize> = std::iter::from_fn(|| {
            let next = until.next(done, 4);
            done += next as u64;
            (next > 0).then_some(next)
        })
        .collect();
        assert_eq!(batches, [4, 4, 2]);
    }
}
