//! The lock file: one writer per directory, and it says who.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::{LockGuard, LockRefusal};

/// The locked file; the operating system lets go of the lock when it is closed, however the process ends.
struct LockFile {
    _file: File,
}

impl LockGuard for LockFile {}

/// Locks the file at `path` and writes into it who this is.
pub fn take(path: &Path) -> Result<Box<dyn LockGuard>, LockRefusal> {
    let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    let mut file = open.map_err(LockRefusal::Io)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut owner = String::new();
            // The owner writes its name after it has the lock; before that the file is empty or names the last owner.
            let owner = match file.read_to_string(&mut owner) {
                Ok(count) if count > 0 => owner.trim_end().to_owned(),
                _ => "another process".to_owned(),
            };
            return Err(LockRefusal::Held { owner });
        }
        Err(TryLockError::Error(error)) => return Err(LockRefusal::Io(error)),
    }
    let write = |file: &mut File| {
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "process {} on {} since {}", std::process::id(), host(), utc(SystemTime::now()))
    };
    // On a full disk the lock holds all the same; only its text is missing.
    let _ = write(&mut file);
    Ok(Box::new(LockFile { _file: file }))
}

/// Who has a store open for writing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Nobody, as far as can be told without touching the lock: who is in another process namespace is not seen.
    Nobody,
    /// Somebody.
    Process {
        /// What it wrote about itself.
        owner: String,
    },
    /// The system does not list its locks.
    Unknown {
        /// Why not.
        why: String,
    },
}

/// Who has the lock on the file at `path`, by the kernel's list: trying to take it would be in the way of one who wants it.
pub fn owner(path: &Path) -> Owner {
    let Ok(metadata) = fs::metadata(path) else { return Owner::Nobody };
    let locks = match fs::read_to_string("/proc/locks") {
        Ok(locks) => locks,
        Err(error) => return Owner::Unknown { why: format!("/proc/locks cannot be read: {error}") },
    };
    let text = fs::read_to_string(path).unwrap_or_default();
    match locks.lines().any(|line| is_lock_of(line, metadata.ino(), text.trim_end())) {
        false => Owner::Nobody,
        true if text.trim_end().is_empty() => Owner::Process { owner: "another process".to_owned() },
        true => Owner::Process { owner: text.trim_end().to_owned() },
    }
}

/// Whether a line of `/proc/locks` (`1: FLOCK ADVISORY WRITE 4711 fe:00:1234 0 EOF`) is a lock on the file with this inode,
/// held by the process that `text` in the file names. The device does not help: some file systems number it in two ways.
fn is_lock_of(line: &str, inode: u64, text: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, "FLOCK", _, "WRITE", process, file, ..] = words[..] else { return false };
    file.rsplit(':').next().and_then(|number| number.parse().ok()) == Some(inode)
        && (text.is_empty() || text.starts_with(&format!("process {process} ")))
}

fn host() -> String {
    match fs::read_to_string("/proc/sys/kernel/hostname") {
        Ok(name) if !name.trim().is_empty() => name.trim().to_owned(),
        _ => "an unknown host".to_owned(),
    }
}

/// `time` as `2026-01-31 23:59:59 UTC`.
fn utc(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// The Gregorian date of a day counted from 1970-01-01.
fn date(mut days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    (year, month as u64 + 1, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_time_of_an_owner_is_not_off_by_a_leap_day() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_709_251_199, "2024-02-29 23:59:59 UTC"),
            (1_767_225_599, "2025-12-31 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(utc(UNIX_EPOCH + Duration::from_secs(seconds)), expected);
        }
    }
}
