//! What a store would find where it lies: how payload would travel, and who has it.

use std::path::Path;

use crate::engine::{EngineChoice, Ground, IoEngine, choose};
use crate::error::StoreError;
use crate::storage::{IoMode, Owner};
use crate::store::IoOptions;

use super::reader::existing;

/// What an open of a store with default options would find. Finding out makes and changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// How payload would travel.
    pub mode: IoMode,
    /// What would carry out batches. No buffers are registered to find out.
    pub engine: IoEngine,
    /// Who has the store open for writing now.
    pub owner: Owner,
}

impl Conditions {
    /// The conditions of the store in `dir`.
    ///
    /// # Errors
    ///
    /// If the directory cannot be opened.
    pub fn of(dir: &Path) -> Result<Self, StoreError> {
        let directory = existing(dir)?;
        let mode = directory.outlook();
        let options = IoOptions::default();
        let ground = Ground { mode: mode.clone(), descriptors: true };
        let (engine, found) = choose(EngineChoice::Automatic, &ground, options.depth, options.threads, &mut []);
        engine.stop();
        Ok(Self { mode, engine: found, owner: directory.owner() })
    }
}
