//! The grid, replayed on all cores.
//!
//! A cell is one trace under one policy at one budget. It takes one replay, or as many as the search for its split asks for. Threads take
//! replays from one queue; what a cell asks for next depends on its finished rounds alone, so that neither the number of threads nor
//! what a journal held already changes a figure.

use std::{
    collections::{BTreeMap, VecDeque},
    num::NonZeroUsize,
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use anyhow::Context;

use super::{
    Cell, Grid, Journal, Key,
    figures::Verdict,
    job::{Job, Keys},
    split::{self, COARSE, Division},
};

/// How far a run is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// Replays finished.
    pub replays: u64,
    /// Replays that there will be, as far as can be said.
    pub of_replays: u64,
    /// Cells finished.
    pub cells: usize,
    /// Cells in all.
    pub of_cells: usize,
    /// Blocks decided in this run.
    pub decisions: u64,
    /// Replays that the journal had.
    pub from_journal: u64,
}

/// Replays that a search takes behind the coarse shares, about; for the estimate of how long a run takes.
const REFINEMENTS: u64 = 4;

/// A cell on its way.
struct Work {
    subject: usize,
    contender: usize,
    size: u64,
    division: Division,
    tried: BTreeMap<u32, Verdict>,
    /// Of the round in hand: replays that are queued or running.
    pending: usize,
    done: bool,
}

struct State<'a> {
    journal: &'a mut Journal,
    cells: Vec<Work>,
    queue: VecDeque<(usize, u32)>,
    running: usize,
    pace: Pace,
    failure: Option<anyhow::Error>,
}

/// Runs all of a grid. `watch` is called now and then from one of the threads.
///
/// # Errors
/// When a cache does not open, a request is refused, or the journal cannot be written. What was finished stays in the journal.
pub fn run(
    grid: &Grid,
    journal: &mut Journal,
    jobs: NonZeroUsize,
    watch: &(dyn Fn(Pace) + Sync),
) -> anyhow::Result<(Vec<Cell>, Pace)> {
    let keys = Keys::new(grid);
    let cells = cells(grid);
    let pace = Pace { of_cells: cells.len(), ..Pace::default() };
    let mut state = State { journal, cells, queue: VecDeque::new(), running: 0, pace, failure: None };
    for cell in 0..state.cells.len() {
        state.go_on(grid, &keys, cell);
    }
    // The largest budgets take longest: they go first, so that no thread is left with one at the end.
    state.queue.make_contiguous().sort_by_key(|&(cell, _)| std::cmp::Reverse(state.cells[cell].size));
    let decisions = AtomicU64::new(0);
    let shared = Mutex::new(state);
    let changed = Condvar::new();
    thread::scope(|scope| {
        for _ in 0..jobs.get() {
            scope.spawn(|| work(grid, &keys, &shared, &changed, &decisions, watch));
        }
    });
    let State { cells, failure, mut pace, .. } = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    pace.decisions = decisions.into_inner();
    match failure {
        Some(failure) => Err(failure),
        None => Ok((cells.into_iter().map(Work::finish).collect::<anyhow::Result<_>>()?, pace)),
    }
}

fn cells(grid: &Grid) -> Vec<Work> {
    let mut cells = Vec::new();
    for (subject, sizes) in grid.sizes.iter().enumerate() {
        for contender in 0..grid.contenders.len() {
            let division = grid.division(contender);
            let cell = |&size: &u64| Work {
                subject,
                contender,
                size,
                division,
                tried: BTreeMap::new(),
                pending: 0,
                done: false,
            };
            cells.extend(sizes.iter().map(cell));
        }
    }
    cells
}

impl Work {
    /// Shares to replay next.
    fn next(&self, grid: &Grid) -> Vec<u32> {
        if self.tried.values().any(Result::is_err) {
            return Vec::new();
        }
        let worths = self.tried.iter().filter_map(|(&share, verdict)| Some((share, verdict.as_ref().ok()?.worth())));
        self.division.next(&worths.collect(), |share| grid.admits(self.size, share))
    }

    fn key(&self, grid: &Grid, keys: &Keys, share: u32) -> Key {
        keys.of(grid, (self.subject, self.contender), self.size, share)
    }

    fn job<'a>(&self, grid: &'a Grid, share: u32) -> Job<'a> {
        Job::of(grid, (self.subject, self.contender), self.size, share)
    }

    /// Replays that a search of this kind begins with, and that it then takes about.
    fn estimate(&self) -> u64 {
        match self.division {
            Division::Searched => COARSE.len() as u64 + REFINEMENTS,
            _ => 1,
        }
    }

    fn finish(self) -> anyhow::Result<Cell> {
        let Self { subject, contender, size, division, tried, .. } = self;
        let replays = tried.len();
        let failed = tried.iter().find(|(_, verdict)| verdict.is_err()).map(|(&share, _)| share);
        let worths: BTreeMap<u32, split::Worth> =
            tried.iter().filter_map(|(&share, verdict)| Some((share, verdict.as_ref().ok()?.worth()))).collect();
        let share = failed.or_else(|| split::best(&worths)).context("a cell ended without a replay")?;
        let verdict = tried.get(&share).cloned().context("a cell ended without its best replay")?;
        Ok(Cell { subject, contender, size, division, share, replays, verdict })
    }
}

impl State<'_> {
    /// Takes from the journal what a cell asks for, and queues the rest.
    fn go_on(&mut self, grid: &Grid, keys: &Keys, cell: usize) {
        while self.cells[cell].pending == 0 && !self.cells[cell].done {
            let wanted = self.cells[cell].next(grid);
            if wanted.is_empty() {
                self.cells[cell].done = true;
                self.pace.cells += 1;
            }
            for share in wanted {
                let key = self.cells[cell].key(grid, keys, share);
                match self.journal.finished(&key).cloned() {
                    Some(verdict) => {
                        self.cells[cell].tried.insert(share, verdict);
                        self.pace.from_journal += 1;
                    }
                    None => {
                        self.cells[cell].pending += 1;
                        self.queue.push_back((cell, share));
                    }
                }
            }
        }
        self.pace.replays = self.cells.iter().map(|cell| (cell.tried.len()) as u64).sum();
        let to_come = |cell: &Work| {
            let (known, estimate) = ((cell.tried.len() + cell.pending) as u64, cell.estimate());
            if cell.done { cell.tried.len() as u64 } else { known.max(estimate) }
        };
        self.pace.of_replays = self.cells.iter().map(to_come).sum();
    }
}

fn lock<'a, 'b>(state: &'a Mutex<State<'b>>) -> MutexGuard<'a, State<'b>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts a thread out even if it unwinds: the others must not wait for it.
struct Running<'a, 'b> {
    state: &'a Mutex<State<'b>>,
    changed: &'a Condvar,
}

impl Drop for Running<'_, '_> {
    fn drop(&mut self) {
        let mut state = lock(self.state);
        state.running -= 1;
        if thread::panicking() {
            state.failure.get_or_insert_with(|| anyhow::anyhow!("a thread that replayed a trace panicked"));
        }
        drop(state);
        self.changed.notify_all();
    }
}

fn work(
    grid: &Grid,
    keys: &Keys,
    shared: &Mutex<State<'_>>,
    changed: &Condvar,
    decisions: &AtomicU64,
    watch: &(dyn Fn(Pace) + Sync),
) {
    loop {
        let mut state = lock(shared);
        let (cell, share) = loop {
            if state.failure.is_some() {
                return;
            }
            match state.queue.pop_front() {
                Some(next) => break next,
                None if state.running == 0 => return,
                None => state = changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        };
        state.running += 1;
        let running = Running { state: shared, changed };
        let key = state.cells[cell].key(grid, keys, share);
        let job = state.cells[cell].job(grid, share);
        drop(state);
        let verdict = job.run(decisions);
        let mut state = lock(shared);
        let kept = verdict.and_then(|verdict| {
            state.journal.keep(&key, &verdict)?;
            state.cells[cell].tried.insert(share, verdict);
            state.cells[cell].pending -= 1;
            state.go_on(grid, keys, cell);
            anyhow::Ok(())
        });
        if let Err(failure) = kept {
            state.failure.get_or_insert(failure);
        }
        let pace = Pace { decisions: decisions.load(Ordering::Relaxed), ..state.pace };
        drop(state);
        drop(running);
        watch(pace);
    }
}
