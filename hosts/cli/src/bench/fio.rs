//! fio on the file for raw transfers.

use std::{
    io,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

use anyhow::{Context, anyhow};
use serde_json::Value;

use super::{Contender, Direction, Name, Options, Rate, raw};

/// The version of fio, or `None` if it is not on the path.
///
/// # Errors
///
/// It is there and cannot be run.
pub fn version() -> io::Result<Option<String>> {
    match Command::new("fio").arg("--version").output() {
        Ok(output) => Ok(Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// One job of fio.
pub struct Fio {
    directory: PathBuf,
    transfer_bytes: u64,
    /// Transfers at once.
    depth: usize,
    direct: bool,
}

impl Fio {
    /// On the file in `directory`. As plain transfers do, those that are not direct go one by one.
    pub fn new(directory: &Path, options: &Options, direct: bool) -> Self {
        let depth = if direct { options.depth } else { 1 };
        Self { directory: directory.to_owned(), transfer_bytes: options.transfer_bytes(), depth, direct }
    }

    fn start(&self, pattern: &str, length: Duration) -> io::Result<Output> {
        Command::new("fio")
            .current_dir(&self.directory)
            .args(["--name=bench", "--ioengine=io_uring", "--output-format=json", "--time_based", "--norandommap"])
            .args(["--randrepeat=0", "--allow_file_create=0", "--fallocate=none"])
            .arg(format!("--filename={}", raw::FILE))
            .arg(format!("--rw={pattern}"))
            .arg(format!("--bs={}", self.transfer_bytes))
            .arg(format!("--iodepth={}", self.depth))
            .arg(format!("--direct={}", u8::from(self.direct)))
            .arg(format!("--runtime={}ms", length.as_millis().max(1)))
            .output()
    }
}

impl Contender for Fio {
    fn name(&self) -> Name {
        Name::Fio
    }

    /// Measured by fio itself, without the time it takes to start.
    fn turn(&mut self, direction: Direction, length: Duration) -> anyhow::Result<Rate> {
        let (pattern, section) = match direction {
            Direction::Put => ("randwrite", "write"),
            Direction::Get => ("randread", "read"),
        };
        let output = self.start(pattern, length).context("starting fio")?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(anyhow!("running fio: {}", said.trim().replace('\n', "; ")));
        }
        let said = String::from_utf8_lossy(&output.stdout);
        let rate = rate(&said, section)
            .ok_or_else(|| anyhow!("reading what fio says: it is not what fio 3 says; leave --fio out"))?;
        // Through the page cache threads of the kernel copy, and fio does not count their time.
        let processor_seconds = rate.processor_seconds.filter(|_| self.direct);
        Ok(Rate { processor_seconds, ..rate })
    }
}

/// The rate in a report of fio. Lines for people may stand before it.
fn rate(said: &str, section: &str) -> Option<Rate> {
    let report: Value = serde_json::from_str(&said[said.find('{')?..]).ok()?;
    let job = report.pointer("/jobs/0")?;
    let records = job[section]["total_ios"].as_u64()?;
    let seconds = job[section]["runtime"].as_f64()? / 1e3;
    let processor_percent = job["usr_cpu"].as_f64()? + job["sys_cpu"].as_f64()?;
    let rate = Rate { records, seconds, processor_seconds: Some(processor_percent / 100.0 * seconds) };
    (rate.records > 0 && seconds > 0.0).then_some(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_not_taken_for_writes() {
        let said = r#"note: both iodepth >= 1 and synchronous I/O engine are selected
{"fio version": "fio-3.33", "jobs": [{"usr_cpu": 5.0, "sys_cpu": 20.0,
  "read": {"total_ios": 1200, "runtime": 2000}, "write": {"total_ios": 0, "runtime": 0}}]}"#;
        let read = rate(said, "read").unwrap();
        assert_eq!((read.records, read.seconds, read.processor_seconds), (1200, 2.0, Some(0.5)));
        assert!(rate(said, "write").is_none() && rate("fio: failed", "read").is_none());
    }
}
