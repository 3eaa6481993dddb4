//! What was asked for, as runs in a tree: resident and remembered, by class and age.

#[cfg(test)]
mod audit;
mod cells;
mod questions;
mod residents;
mod tree;

use alloc::{vec, vec::Vec};

use hashbrown::HashTable;

use super::{
    ages::{BUCKETS, CELLS, MOST_USES, cell, class, last_age},
    bits::Bits,
    hazards::Hazards,
    run::{Field, Links, List, NONE, Run, Waits},
};

const BY_AGE: Field = |run| &mut run.by_age;
const WAITING: Field = |run| &mut run.waiting;

/// What a block's id stands for.
#[derive(Clone, Copy, Debug)]
struct Row {
    parent: u32,
    /// Depth in blocks, from 1; with [`GONE`] if the block is not resident.
    depth: u32,
    run: u32,
}

const GONE: u32 = 1 << 31;

const NO_ROW: Row = Row { parent: NONE, depth: GONE, run: NONE };

/// The runs of one class and bucket.
#[derive(Clone, Copy, Debug)]
struct Cell {
    by_age: List,
    to_go: List,
    /// Blocks of all runs here.
    blocks: u64,
    /// The turn up to which they were counted as exposed.
    since: u32,
}

/// The tree of runs, what is learned from it, and who goes first.
///
/// Memory: 12 bytes per resident block, 4 per block resident or remembered, about 120 per run.
#[derive(Clone, Debug)]
pub struct Chronicle {
    pub hazards: Hazards,
    rows: Vec<Row>,
    runs: Vec<Run>,
    free: Vec<u32>,
    /// Runs by parent and first tag.
    index: HashTable<u32>,
    cells: Vec<Cell>,
    /// For each cell: before this turn no run is too old for it.
    due: Vec<u32>,
    /// Cells that have runs.
    busy: Bits,
    /// Places in the order of worth whose cells have something that may go.
    waiting: Bits,
    to_be_forgotten: List,
    remembered: u64,
    most_remembered: u64,
    most_runs: usize,
    /// Requests so far: the clock of ages.
    turn: u32,
    now: Option<u64>,
    settled: bool,
    /// Whether uses are told: not during a hand-over.
    learning: bool,
    /// The runs of the path asked for last, root first.
    path: Vec<u32>,
    /// The deepest block that was said to be used last.
    used: u32,
}

impl Chronicle {
    /// Remembers up to `most_remembered` blocks besides the resident ones, in up to `most_runs` runs with those.
    pub fn new(most_remembered: u64, most_runs: usize) -> Self {
        let cell = Cell { by_age: List::EMPTY, to_go: List::EMPTY, blocks: 0, since: 0 };
        Self {
            hazards: Hazards::default(),
            rows: Vec::new(),
            runs: Vec::new(),
            free: Vec::new(),
            index: HashTable::new(),
            cells: vec![cell; CELLS],
            due: vec![u32::MAX; CELLS],
            busy: Bits::default(),
            waiting: Bits::default(),
            to_be_forgotten: List::EMPTY,
            remembered: 0,
            most_remembered,
            most_runs,
            turn: 1,
            now: None,
            settled: true,
            learning: false,
            path: Vec::new(),
            used: NONE,
        }
    }

    /// Makes room at once for so many resident blocks and all runs, so that no request waits while they are moved. What is not touched
    /// costs nothing.
    pub fn reserve(&mut self, blocks: usize) {
        self.rows.reserve_exact(blocks);
        self.runs.reserve_exact(self.most_runs);
        self.free.reserve_exact(self.most_runs);
        self.index.reserve(self.most_runs, |_| 0);
    }

    /// Time goes on: another `now` is another turn.
    pub fn advance(&mut self, now: u64) {
        if self.now.is_some_and(|before| now <= before) {
            return;
        }
        self.settle();
        self.forget();
        self.now = Some(now);
        self.turn = self.turn.saturating_add(1);
        self.settled = false;
        if self.learning
            && let Some(class) = self.hazards.end_turn()
        {
            (0..BUCKETS).for_each(|bucket| self.account(cell(class, bucket)));
            self.hazards.review(class);
            self.find_waiting();
        }
    }

    fn find_waiting(&mut self) {
        self.waiting = Bits::default();
        for cell in self.busy.iter().filter(|&cell| self.cells[cell].to_go.first != NONE) {
            self.waiting.set(self.hazards.rank(cell), true);
        }
    }

    /// Takes what a policy of the same kind has learned; `false` if it makes no sense.
    pub fn load(&mut self, bytes: &[u8]) -> bool {
        let loaded = self.hazards.load(bytes);
        self.find_waiting();
        loaded
    }

    /// What was not used in this turn is a turn older. Once a turn.
    fn settle(&mut self) {
        if core::mem::replace(&mut self.settled, true) {
            return;
        }
        // Each cell before the one that it hands on to, and no run twice: a bucket is a turn wide at least.
        for cell in (0..CELLS).rev() {
            if self.due[cell] <= self.turn {
                self.age(cell, last_age(cell % BUCKETS));
            }
        }
    }

    /// Moves what is older than `last_age` at the next turn from a cell to the one behind it.
    fn age(&mut self, cell: usize, last_age: u32) {
        loop {
            let run = self.cells[cell].by_age.first;
            if run == NONE {
                self.due[cell] = u32::MAX;
                break;
            }
            // Whoever was not used by now has survived this turn: what counts is the age at the next.
            let due = self.runs[run as usize].last.saturating_add(last_age);
            if due > self.turn {
                self.due[cell] = due;
                break;
            }
            self.leave_cell(run);
            self.enter_cell(run, cell + 1);
        }
    }

    /// Counts the blocks of a cell as exposed up to this turn, before their number changes.
    fn account(&mut self, index: usize) {
        let cell = &mut self.cells[index];
        if self.learning && cell.blocks > 0 {
            self.hazards.expose(index, cell.blocks * u64::from(self.turn - cell.since));
        }
        cell.since = self.turn;
    }

    /// What keeping the next block to go is worth.
    pub fn least_worth(&self) -> Option<u64> {
        self.waiting.first().map(|rank| self.hazards.worth(self.hazards.cell_at(rank)))
    }

    /// The cell of the block at this depth of the path asked for last.
    pub fn on_path(&self, depth: u32) -> Option<usize> {
        let at = self.path.partition_point(|&run| {
            let run = &self.runs[run as usize];
            run.start + run.len < depth
        });
        let run = &self.runs[*self.path.get(at)? as usize];
        (run.start < depth).then_some(run.cell as usize)
    }

    fn is_too_much(&self) -> bool {
        self.remembered > self.most_remembered || self.runs.len() - self.free.len() > self.most_runs
    }

    fn forget(&mut self) {
        while self.is_too_much() {
            let run = self.to_be_forgotten.first;
            if run == NONE || self.runs[run as usize].last == self.turn {
                break;
            }
            self.drop_run(run);
        }
        // Nothing whole is left to be forgotten: then what the last request added goes again.
        for index in (0..self.path.len()).rev() {
            let run = self.path[index];
            let Run { children, resident, len, .. } = self.runs[run as usize];
            if !self.is_too_much() || children > 0 {
                break;
            }
            if resident > 0 {
                self.shorten(run, resident);
            } else if len > 0 {
                self.drop_run(run);
            }
        }
        self.path.clear();
    }
}
