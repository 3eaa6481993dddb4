//! Tests that cross crates, and what they share: the expected results of replays, and an engine that is easy to check.

pub mod cases;
pub mod engine;

use std::path::PathBuf;

/// A file of the repository.
pub fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}
