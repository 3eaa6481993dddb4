//! `{{name}}`: leaves stand in a ring and a hand goes round. The leaf that it points at goes, unless it was used since the hand
//! came by last: then it is passed over.
//!
//! To make another policy of it, change what an event means to the ranking (`learn`) and which leaf goes next (`step`).
#![cfg_attr(target_arch = "wasm32", no_std)]

extern crate alloc;

#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use reprise_policy_sdk::policy::{
    CachePolicy, Description, Event, Events, GroupInfo, Inserted, Kind, NO_PARENT, Policy, Setting, Settings,
};

reprise_policy_sdk::export_cache_policy!(Clock);

/// In place of an id: no record.
const NONE: u32 = NO_PARENT;

/// How many leaves one call passes over before it takes them as they come: a call has to end in time.
const PATIENCE: u32 = 1_000;

/// What is known of the record with this id.
#[derive(Clone, Copy)]
struct Row {
    parent: u32,
    children: u32,
    pins: u32,
    /// How often the hand will pass it over.
    chances: u32,
    resident: bool,
    in_ring: bool,
    next: u32,
    previous: u32,
}

const VACANT: Row =
    Row { parent: NONE, children: 0, pins: 0, chances: 0, resident: false, in_ring: false, next: NONE, previous: NONE };

/// The policy.
pub struct Clock {
    /// What a used record is given.
    chances: u32,
    /// By id.
    rows: Vec<Row>,
    /// The leaf that goes next, `NONE` if the ring is empty.
    hand: u32,
}

impl Policy for Clock {
    const DESCRIPTION: Description = Description {
        name: "{{name}}",
        version: "0.1.0",
        kind: Kind::Cache,
        admission: false,
        state_schema: 0,
        settings: &[Setting {
            key: "chances",
            help: "how often a record that was used is passed over",
            default: 1,
            min: 0,
            max: 7,
        }],
    };

    fn new(settings: &Settings) -> Self {
        Self { chances: settings.get("chances") as u32, rows: Vec::new(), hand: NONE }
    }
}

impl CachePolicy for Clock {
    fn attach(&mut self, _: &[GroupInfo]) {}

    fn step(&mut self, events: Events<'_>, want: u32, victims: &mut Vec<u32>) {
        for event in events {
            self.learn(event);
        }
        let mut patience = PATIENCE;
        for _ in 0..want {
            while let Some(row) = self.rows.get_mut(self.hand as usize)
                && row.chances > 0
                && patience > 0
            {
                row.chances -= 1;
                self.hand = row.next;
                patience -= 1;
            }
            if self.hand == NONE {
                break;
            }
            victims.push(self.hand);
            self.remove(self.hand);
        }
    }
}

impl Clock {
    fn learn(&mut self, event: Event) {
        match event {
            Event::Inserted(block) => self.insert(block),
            Event::Used { id, .. } => self.row(id).chances = self.chances,
            Event::Evicted { id, .. } => self.remove(id),
            Event::Kept { id, .. } => {
                let row = self.row(id);
                row.resident = true;
                let parent = row.parent;
                self.gain_child(parent);
                self.join(id, false);
            }
            Event::Pinned { id, .. } => {
                self.row(id).pins += 1;
                self.leave(id);
            }
            Event::Unpinned { id, .. } => {
                let row = self.row(id);
                row.pins = row.pins.saturating_sub(1);
                self.join(id, false);
            }
        }
    }

    fn insert(&mut self, Inserted { id, parent, .. }: Inserted) {
        self.leave(id);
        *self.row(id) = Row { parent, resident: true, ..VACANT };
        self.gain_child(parent);
        self.join(id, false);
    }

    /// Counted for a record that was named, too: if it is kept after all, it has that child.
    fn gain_child(&mut self, id: u32) {
        if id != NONE {
            self.row(id).children += 1;
            self.leave(id);
        }
    }

    /// The parent is next if this was its last child, so that a path goes as a whole.
    fn remove(&mut self, id: u32) {
        self.leave(id);
        let row = self.row(id);
        // The host may tell that a record went that was named at the same time.
        if !row.resident {
            return;
        }
        row.resident = false;
        let (parent, chances) = (row.parent, row.chances);
        if parent != NONE {
            let above = self.row(parent);
            above.children = above.children.saturating_sub(1);
            above.chances = above.chances.max(chances);
            self.join(parent, true);
        }
    }

    /// Puts a record that may go into the ring: under the hand, or where the hand comes last.
    fn join(&mut self, id: u32, under_the_hand: bool) {
        let Row { children, pins, resident, in_ring, .. } = *self.row(id);
        if !resident || in_ring || children > 0 || pins > 0 {
            return;
        }
        let next = if self.hand == NONE { id } else { self.hand };
        let previous = if self.hand == NONE { id } else { self.row(next).previous };
        let row = self.row(id);
        (row.in_ring, row.next, row.previous) = (true, next, previous);
        self.row(previous).next = id;
        self.row(next).previous = id;
        if under_the_hand || self.hand == NONE {
            self.hand = id;
        }
    }

    /// Takes a record out of the ring if it is there.
    fn leave(&mut self, id: u32) {
        let row = self.row(id);
        if !row.in_ring {
            return;
        }
        row.in_ring = false;
        let (next, previous) = (row.next, row.previous);
        self.row(previous).next = next;
        self.row(next).previous = previous;
        if self.hand == id {
            self.hand = if next == id { NONE } else { next };
        }
    }

    fn row(&mut self, id: u32) -> &mut Row {
        let index = id as usize;
        if self.rows.len() <= index {
            self.rows.resize(index + 1, VACANT);
        }
        &mut self.rows[index]
    }
}
