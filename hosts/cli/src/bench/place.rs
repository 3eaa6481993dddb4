//! Where the data lies while it is needed.

use std::path::Path;

use anyhow::{Context, anyhow};
use tempfile::TempDir;

use super::Options;
use crate::figures::human_bytes;

/// The most bytes that the store and the file for raw transfers take together.
const MOST_BYTES: u64 = 4 << 30;

/// A temporary directory, removed when this is dropped.
pub struct Place(TempDir);

impl Place {
    /// A new directory in `parent`.
    pub fn new(parent: &Path) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix("reprise-bench-").tempdir_in(parent);
        Ok(Self(directory.with_context(|| {
            format!("making a temporary directory in {}; name one that may be written", parent.display())
        })?))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// How many records each data set may have: they take a quarter of what is free at most.
    pub fn records(&self, options: &Options, slot_bytes: u64) -> anyhow::Result<u32> {
        let path = self.path();
        let free_bytes = free_bytes(path).with_context(|| format!("asking how much is free in {}", path.display()))?;
        let room_bytes = MOST_BYTES.min(free_bytes / 4);
        let record_bytes = slot_bytes + options.transfer_bytes();
        let wanted = options.records.unwrap_or(u32::MAX);
        let records = u32::try_from(room_bytes / record_bytes).unwrap_or(u32::MAX).min(wanted);
        if records as usize >= options.depth {
            return Ok(records);
        }
        let (free, room) = (human_bytes(free_bytes), human_bytes(room_bytes));
        let needed = human_bytes(record_bytes * options.depth as u64);
        Err(anyhow!(
            "{} has {free} free, of which the benchmark may take {room}, and it needs {needed} for {} records under way at once: \
             free space, or ask for less with --depth or --record-bytes",
            options.directory.display(),
            options.depth
        ))
    }

    /// Removes the directory with all that is in it.
    pub fn remove(self) -> anyhow::Result<()> {
        let path = self.path().to_owned();
        self.0.close().with_context(|| format!("removing {}; remove it by hand", path.display()))
    }
}

/// Bytes that an ordinary user may still write below `path`.
fn free_bytes(path: &Path) -> std::io::Result<u64> {
    let statistics = rustix::fs::statvfs(path)?;
    Ok(statistics.f_bavail.saturating_mul(statistics.f_frsize))
}
