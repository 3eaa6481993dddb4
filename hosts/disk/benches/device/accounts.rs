//! What the kernel counts: processor time, bytes written.

use std::os::linux::fs::MetadataExt;
use std::path::Path;

/// What the process has used of the processor so far, those of its threads that have ended included (proc(5), `stat`).
pub fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    fields.split_whitespace().skip(11).take(2).map(|field| field.parse::<f64>().unwrap()).sum::<f64>() / 100.0
}

/// What the threads that are alive have used of the processor so far, in nanoseconds.
pub fn processor_nanoseconds() -> u64 {
    let threads = std::fs::read_dir("/proc/self/task").unwrap().map(|thread| thread.unwrap().path());
    let used = threads.map(|thread| std::fs::read_to_string(thread.join("schedstat")).unwrap_or_default());
    used.filter_map(|used| used.split_whitespace().next()?.parse::<u64>().ok()).sum()
}

/// Bytes that were written so far.
#[derive(Clone, Copy)]
pub struct Written {
    /// By this process, to any device: pages when they become dirty, and what goes past the page cache (proc(5), `io`).
    by_process: u64,
    /// To the device of a directory, by anybody, the file system's journal included; `None` if it has none.
    to_device: Option<u64>,
}

impl Written {
    pub fn now(dir: &Path) -> Self {
        let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
        let line = io.lines().find_map(|line| line.strip_prefix("write_bytes: "));
        let by_process = line.and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
        let device = std::fs::metadata(dir).unwrap().st_dev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let stat = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat"));
        // The seventh field counts sectors of 512 bytes.
        let sectors = stat.ok().and_then(|stat| stat.split_whitespace().nth(6)?.parse::<u64>().ok());
        Self { by_process, to_device: sectors.map(|sectors| sectors * 512) }
    }

    /// Bytes written since then for each of so many bytes put: by the process, and to the device.
    pub fn for_each_of(self, put_bytes: u64, dir: &Path) -> String {
        let now = Self::now(dir);
        let by_process = (now.by_process - self.by_process) as f64 / put_bytes as f64;
        let to_device = now.to_device.zip(self.to_device).map(|(now, before)| (now - before) as f64 / put_bytes as f64);
        let to_device = to_device.map_or_else(|| "unknown".to_owned(), |bytes| format!("{bytes:.4}"));
        format!("{by_process:.4} (by this process), {to_device} (to the device, by anybody)")
    }
}
