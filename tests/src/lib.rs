//! Tests that cross crates, and what they share: the expected results of replays, an engine that is easy to check, tools of other
//! languages.

pub mod cases;
pub mod engine;
pub mod tools;

use std::path::PathBuf;

/// A file of the repository.
pub fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}
