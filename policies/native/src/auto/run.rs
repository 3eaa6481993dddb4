//! Runs: stretches of a path whose blocks share their fate.

use alloc::vec::Vec;

/// No run, no block.
pub const NONE: u32 = u32::MAX;

/// Blocks that one request was the first to ask for, one behind the other, until another request leaves them in their middle: from there on
/// they are two runs. All blocks of a run were used as often, and the last time by the same request; a child hangs at a run's end.
///
/// The leading `resident` blocks are in the cache. The others are remembered only.
#[derive(Clone, Debug)]
pub struct Run {
    pub parent: u32,
    /// Runs that hang at the end.
    pub children: u32,
    /// How many of them have a resident block.
    pub live_children: u32,
    /// Blocks of the path before the first.
    pub start: u32,
    /// Blocks. 0: the place is free.
    pub len: u32,
    pub resident: u32,
    /// Id of the last resident block.
    pub tail: u32,
    /// Pins on the last block.
    pub pins: u32,
    /// The turn that used it last.
    pub last: u32,
    pub uses: u8,
    pub ends_prompt: bool,
    pub cell: u16,
    /// Part of each block's key, root first; none if the keys were never told.
    pub tags: Vec<u32>,
    /// In the list of the cell, by last use.
    pub by_age: Links,
    /// Among what may go, or among what may be forgotten, by [`Run::waits`].
    pub waiting: Links,
    pub waits: Waits,
}

/// In which list a run waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    Nowhere,
    /// Its last resident block may go.
    ToGo,
    /// Nothing of it is resident, nothing hangs on it: it may be forgotten.
    ToBeForgotten,
}

/// Neighbours in a list.
#[derive(Clone, Copy, Debug)]
pub struct Links {
    prev: u32,
    next: u32,
}

impl Links {
    pub const NONE: Self = Self { prev: NONE, next: NONE };
}

/// A list of runs.
#[derive(Clone, Copy, Debug)]
pub struct List {
    pub first: u32,
    last: u32,
}

/// Which links a list uses.
pub type Field = fn(&mut Run) -> &mut Links;

impl List {
    pub const EMPTY: Self = Self { first: NONE, last: NONE };

    /// The run behind `run`.
    #[inline]
    pub fn next(runs: &mut [Run], run: u32, field: Field) -> u32 {
        field(&mut runs[run as usize]).next
    }

    /// Puts a run at the end.
    #[inline]
    pub fn push(&mut self, runs: &mut [Run], run: u32, field: Field) {
        self.insert(runs, run, NONE, field);
    }

    /// Puts a run before another, or at the end.
    #[inline]
    pub fn insert(&mut self, runs: &mut [Run], run: u32, before: u32, field: Field) {
        let prev = match before {
            NONE => core::mem::replace(&mut self.last, run),
            _ => core::mem::replace(&mut field(&mut runs[before as usize]).prev, run),
        };
        match prev {
            NONE => self.first = run,
            _ => field(&mut runs[prev as usize]).next = run,
        }
        *field(&mut runs[run as usize]) = Links { prev, next: before };
    }

    /// Takes a run out that is in.
    #[inline]
    pub fn remove(&mut self, runs: &mut [Run], run: u32, field: Field) {
        let Links { prev, next } = core::mem::replace(field(&mut runs[run as usize]), Links::NONE);
        match prev {
            NONE => self.first = next,
            _ => field(&mut runs[prev as usize]).next = next,
        }
        match next {
            NONE => self.last = prev,
            _ => field(&mut runs[next as usize]).prev = prev,
        }
    }

    /// Puts a run where it belongs by its last use, the oldest first, if that is near one of the ends; at the end else. Nearly all are: what
    /// was just used is the youngest, and the parent of what went first is among the oldest.
    #[inline]
    pub fn insert_by_last_use(&mut self, runs: &mut [Run], run: u32, field: Field) {
        const STEPS: usize = 32;
        let last_use = runs[run as usize].last;
        if self.last == NONE || runs[self.last as usize].last <= last_use {
            return self.push(runs, run, field);
        }
        let mut before = self.first;
        for _ in 0..STEPS {
            if before == NONE || runs[before as usize].last > last_use {
                break;
            }
            before = Self::next(runs, before, field);
        }
        self.insert(runs, run, before, field);
    }
}
