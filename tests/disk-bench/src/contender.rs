//! What is compared, and what each must be able to do.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::Result;

use crate::interrupt;
use crate::records::{Records, Tally};

/// Ends writing in good order, so that what was written can be opened again.
pub type Closing = Box<dyn FnOnce() -> Result<()>>;

/// Keeps records.
pub trait Contender {
    /// What it is called in the table.
    fn name(&self) -> String;

    /// Writes every record once, below `place`, which is an empty directory. Returns when the last one is where a read would
    /// find it.
    fn write(&self, place: &Path, records: &Records) -> Result<Closing>;

    /// Opens what was written and closed.
    fn open(&self, place: &Path, records: &Records) -> Result<Box<dyn Reader>>;
}

/// Reads records. One that is not there is passed over.
pub trait Reader {
    /// Reads the records in `order` and hands them to `tally`, so many at once as the contender was made for.
    fn read_all(&mut self, order: &Arc<[usize]>, tally: &Arc<Tally>) -> Result<()>;

    /// Reads one record, and hands it to `tally`.
    fn read_one(&mut self, index: usize, tally: &Tally) -> Result<()>;

    /// Has the page cache forget the records, if they are in it.
    fn forget_pages(&self) -> Result<()> {
        Ok(())
    }
}

/// Calls `work` once for every number below `count`, on `threads` threads. Each thread makes a state of its own first. Ends
/// early with the first error of each thread, or when the run is interrupted.
pub fn spread<S>(
    threads: usize,
    count: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> Result<()> + Sync,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let run = || {
        let mut state = state();
        loop {
            interrupt::check()?;
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return Ok(());
            }
            work(&mut state, index)?;
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a thread of the comparison does not panic"))
    })
}
