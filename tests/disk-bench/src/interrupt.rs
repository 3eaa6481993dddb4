//! Ctrl-C ends a run in good order, so that what it wrote is removed.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Has Ctrl-C, a hang-up and a request to terminate noted from now on.
pub fn listen() -> Result<()> {
    ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::Relaxed)).context("listening to Ctrl-C")
}

/// An error once the run is to end. Asked before every record.
pub fn check() -> Result<()> {
    if INTERRUPTED.load(Ordering::Relaxed) {
        bail!("interrupted; the records are removed");
    }
    Ok(())
}
