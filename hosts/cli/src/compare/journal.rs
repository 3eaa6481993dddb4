//! Finished replays, kept so that a comparison that was stopped goes on from there: one JSON object a line, each whole as soon as the replay is.
//!
//! A line bears a key that digests all that the figures depend on: the program, the trace, the configuration with quotas and policies, the
//! components behind their names. A line of anything else is never taken for a result, and stays for whoever it is of. A last line without an end was torn
//! by a kill and is cut off.

use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::figures::{Figures, Verdict};

/// The first line of every journal.
const HEADER: &str = "{\"journal\":\"reprise compare\",\"version\":1}";

/// Its name in the output directory.
pub const FILE: &str = "journal.jsonl";

/// What tells a replay from every other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Key(String);

impl Key {
    /// The key of what these parts say, in this order.
    pub fn of(parts: &[&str]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        Self(hasher.finalize().to_hex()[..32].to_owned())
    }
}

#[derive(Serialize, Deserialize)]
struct Line {
    key: Key,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    figures: Option<Figures>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    failed: Option<String>,
}

/// An open journal, locked against other processes.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    finished: HashMap<Key, Verdict>,
    /// Lines that make no sense.
    pub unreadable: u64,
}

/// Why there is no journal to go on from.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The directory or file cannot be made, read or written.
    #[error("{doing} {}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Another process has it.
    #[error("another comparison is writing to {}: wait for it, or name another directory with --out", path.display())]
    Busy {
        /// Which file.
        path: PathBuf,
    },
    /// The file is something else.
    #[error("{} is not a journal of this version of `reprise compare`: name another directory with --out, or start again with --fresh", path.display())]
    Foreign {
        /// Which file.
        path: PathBuf,
    },
}

impl Journal {
    /// Opens or makes the journal of a directory, which is made if need be; `fresh` forgets what it holds.
    ///
    /// # Errors
    /// When it cannot be read and written, another process has it, or it is no journal.
    pub fn open(directory: &Path, fresh: bool) -> Result<Self, JournalError> {
        let at = |doing, path: &Path| {
            let path = path.to_owned();
            move |source| JournalError::Io { doing, path, source }
        };
        fs::create_dir_all(directory).map_err(at("making the directory", directory))?;
        let path = directory.join(FILE);
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).create(true).open(&path).map_err(at("opening", &path))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(JournalError::Busy { path }),
            // A file system without locks: two comparisons in one directory are then the user's to avoid.
            Err(rustix::io::Errno::NOTSUP | rustix::io::Errno::NOSYS | rustix::io::Errno::NOLCK) => {}
            Err(error) => return Err(at("locking", &path)(error.into())),
        }
        if fresh {
            file.set_len(0).map_err(at("emptying", &path))?;
        }
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_end(&mut bytes)).map_err(at("reading", &path))?;
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let mut journal = Self { path: path.clone(), file, finished: HashMap::new(), unreadable: 0 };
        let torn_header = whole == 0 && HEADER.as_bytes().starts_with(&bytes);
        if !torn_header && bytes[..whole].split(|&byte| byte == b'\n').next() != Some(HEADER.as_bytes()) {
            return Err(JournalError::Foreign { path });
        }
        if whole < bytes.len() {
            journal.file.set_len(whole as u64).map_err(at("cutting off the torn end of", &path))?;
        }
        if whole == 0 {
            journal.append(HEADER).map_err(at("writing", &path))?;
        }
        let lines = bytes[..whole].split(|&byte| byte == b'\n').skip(1).filter(|line| !line.is_empty());
        for line in lines {
            match serde_json::from_slice(line) {
                Ok(Line { key, figures: Some(figures), failed: None }) => {
                    journal.finished.insert(key, Ok(figures));
                }
                Ok(Line { key, figures: None, failed: Some(reason) }) => {
                    journal.finished.insert(key, Err(reason));
                }
                _ => journal.unreadable += 1,
            }
        }
        Ok(journal)
    }

    /// How many finished replays it held.
    pub fn len(&self) -> usize {
        self.finished.len()
    }

    /// Whether it held none.
    pub fn is_empty(&self) -> bool {
        self.finished.is_empty()
    }

    /// What a replay gave earlier.
    pub fn finished(&self, key: &Key) -> Option<&Verdict> {
        self.finished.get(key)
    }

    /// Keeps what a replay gave.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep(&mut self, key: &Key, verdict: &Verdict) -> Result<(), JournalError> {
        let (figures, failed) = match verdict {
            Ok(figures) => (Some(figures.clone()), None),
            Err(reason) => (None, Some(reason.clone())),
        };
        let line = serde_json::to_string(&Line { key: key.clone(), figures, failed }).expect("figures are plain data");
        self.append(&line).map_err(|source| JournalError::Io { doing: "writing", path: self.path.clone(), source })
    }

    /// One write a line: what a kill leaves is a prefix of it.
    fn append(&mut self, line: &str) -> io::Result<()> {
        self.file.write_all(format!("{line}\n").as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::UntypedFigures;

    fn verdict(found_tokens: u64) -> Verdict {
        Ok(Figures::Untyped(UntypedFigures { found_tokens, ..UntypedFigures::default() }))
    }

    fn key(name: &str) -> Key {
        Key::of(&[name])
    }

    #[test]
    fn what_was_finished_is_not_replayed_again() {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("new/out");
        let mut journal = Journal::open(&out, false).unwrap();
        journal.keep(&key("a"), &verdict(7)).unwrap();
        journal.keep(&key("b"), &Err("it trapped".into())).unwrap();
        drop(journal);
        let journal = Journal::open(&out, false).unwrap();
        assert_eq!(journal.finished(&key("a")), Some(&verdict(7)));
        assert_eq!(journal.finished(&key("b")), Some(&Err("it trapped".into())));
        assert_eq!((journal.finished(&key("c")), journal.unreadable), (None, 0));
        drop(journal);
        assert!(Journal::open(&out, true).unwrap().is_empty());
    }

    #[test]
    fn a_torn_line_costs_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(directory.path(), false).unwrap();
        journal.keep(&key("a"), &verdict(1)).unwrap();
        journal.keep(&key("b"), &verdict(2)).unwrap();
        drop(journal);
        let path = directory.path().join(FILE);
        let whole = fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let mut journal = Journal::open(directory.path(), false).unwrap();
            let complete = whole[..cut].iter().filter(|&&byte| byte == b'\n').count().saturating_sub(1);
            assert_eq!(journal.len(), complete, "cut at {cut}");
            journal.keep(&key("c"), &verdict(3)).unwrap();
            drop(journal);
            let journal = Journal::open(directory.path(), false).unwrap();
            assert_eq!((journal.len(), journal.unreadable), (complete + 1, 0), "cut at {cut}");
        }
    }

    #[test]
    fn another_file_is_not_written_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        fs::write(&path, "my notes\n").unwrap();
        assert!(matches!(Journal::open(directory.path(), false), Err(JournalError::Foreign { .. })));
        assert_eq!(fs::read(&path).unwrap(), b"my notes\n");
    }

    #[test]
    fn two_comparisons_do_not_write_to_one_journal() {
        let directory = tempfile::tempdir().unwrap();
        let first = Journal::open(directory.path(), false).unwrap();
        assert!(matches!(Journal::open(directory.path(), false), Err(JournalError::Busy { .. })));
        drop(first);
        Journal::open(directory.path(), false).unwrap();
    }

    #[test]
    fn parts_that_run_together_are_not_one_key() {
        assert_ne!(Key::of(&["ab", "c"]), Key::of(&["a", "bc"]));
    }
}
