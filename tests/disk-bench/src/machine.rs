//! What the machine says: processor time, free space, load, and what came from the device.

use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use nix::sys::time::TimeVal;
use nix::unistd::syncfs;

/// Processor time of this process so far, in user and system mode, in seconds. Work of the kernel's own threads, such as
/// writing back the page cache, is not in it.
pub fn processor_seconds() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("the usage of this process is always known");
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}

/// Bytes that this process has had fetched from a device so far (proc(5), `io`), or `None` if the kernel does not count.
pub fn device_read_bytes() -> Option<u64> {
    let io = fs::read_to_string("/proc/self/io").ok()?;
    io.lines().find_map(|line| line.strip_prefix("read_bytes: "))?.parse().ok()
}

/// Bytes that may still be written below `dir`.
pub fn free_bytes(dir: &Path) -> Result<u64> {
    let stat = statfs(dir).with_context(|| format!("asking for the free space of {}", dir.display()))?;
    Ok(stat.blocks_available() * u64::try_from(stat.block_size())?)
}

/// Whether `dir` lies in memory.
pub fn is_tmpfs(dir: &Path) -> Result<bool> {
    let stat = statfs(dir).with_context(|| format!("asking for the file system of {}", dir.display()))?;
    Ok(stat.filesystem_type() == TMPFS_MAGIC)
}

/// Waits until everything written to the file system of `dir` is on its device.
pub fn sync_file_system(dir: &Path) -> Result<()> {
    let file = File::open(dir).with_context(|| format!("opening {}", dir.display()))?;
    syncfs(file).with_context(|| format!("syncing the file system of {}", dir.display()))
}

/// Tasks that ran or waited to run in the last minute, on average.
pub fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().unwrap_or_default().to_owned()
}

/// Bytes a second, in GiB.
pub fn gib_per_second(bytes: u64, time: Duration) -> f64 {
    gib(bytes) / time.as_secs_f64()
}

/// Bytes in GiB.
pub fn gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}
