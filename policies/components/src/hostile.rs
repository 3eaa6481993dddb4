//! A cache policy that misbehaves on demand: a fixture of the tests, never shipped.
//!
//! With `mode=0` it is an honest first-in-first-out over leaves.
#![cfg_attr(target_arch = "wasm32", no_std)]

extern crate alloc;

use alloc::vec::Vec;
use core::hint::black_box;

use reprise_core::policy::{CachePolicy, Description, Event, Events, GroupInfo, Kind, Policy, Setting, Settings};

reprise_policy_sdk::export_cache_policy!(Hostile);

const TRAP: u64 = 1;
const LOOP: u64 = 2;
const ALLOCATE: u64 = 3;
const UNKNOWN_IDS: u64 = 4;
const PINNED_IDS: u64 = 5;
const INNER_IDS: u64 = 6;
const SAME_ID_TWICE: u64 = 7;
const TOO_MANY: u64 = 8;

#[derive(Clone, Copy, Default)]
struct Record {
    resident: bool,
    parent: u32,
    children: u32,
    pins: u32,
    order: u64,
}

/// See the module.
pub struct Hostile {
    mode: u64,
    honest_steps: u64,
    inserted: u64,
    records: Vec<Record>,
}

impl Policy for Hostile {
    const DESCRIPTION: Description = Description {
        name: "hostile",
        version: "0.1.0",
        kind: Kind::Cache,
        admission: false,
        state_schema: 0,
        settings: &[
            Setting {
                key: "mode",
                help: "0 honest, 1 trap, 2 endless loop, 3 endless allocation, 4 ids that do not exist, 5 pinned ids, 6 inner ids, \
                       7 the same id twice, 8 more than wanted",
                default: 0,
                min: 0,
                max: 8,
            },
            Setting { key: "after", help: "steps to answer honestly before", default: 0, min: 0, max: u64::MAX },
        ],
    };

    fn new(settings: &Settings) -> Self {
        let (mode, honest_steps) = (settings.get("mode"), settings.get("after"));
        Self { mode, honest_steps, inserted: 0, records: Vec::new() }
    }
}

impl Hostile {
    fn record(&mut self, id: u32) -> Option<&mut Record> {
        self.records.get_mut(id as usize)
    }

    fn insert(&mut self, id: u32, parent: u32) {
        if self.records.len() <= id as usize {
            self.records.resize(id as usize + 1, Record::default());
        }
        self.inserted += 1;
        self.records[id as usize] = Record { resident: true, parent, children: 0, pins: 0, order: self.inserted };
        if let Some(parent) = self.record(parent) {
            parent.children += 1;
        }
    }

    fn remove(&mut self, id: u32) {
        let Some(record) = self.record(id).filter(|record| record.resident) else { return };
        record.resident = false;
        let parent = record.parent;
        if let Some(parent) = self.record(parent) {
            parent.children = parent.children.saturating_sub(1);
        }
    }

    fn keep(&mut self, id: u32) {
        let Some(record) = self.record(id).filter(|record| !record.resident) else { return };
        record.resident = true;
        let parent = record.parent;
        if let Some(parent) = self.record(parent) {
            parent.children += 1;
        }
    }

    fn pin(&mut self, mut id: u32, change: i32) {
        while let Some(record) = self.record(id) {
            record.pins = record.pins.saturating_add_signed(change);
            id = record.parent;
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Inserted(inserted) => self.insert(inserted.id, inserted.parent),
            Event::Evicted { id, .. } => self.remove(id),
            Event::Kept { id, .. } => self.keep(id),
            Event::Pinned { id, .. } => self.pin(id, 1),
            Event::Unpinned { id, .. } => self.pin(id, -1),
            Event::Used { .. } => {}
        }
    }

    fn ids(&self, which: impl Fn(&Record) -> bool) -> impl Iterator<Item = u32> {
        (0..).zip(&self.records).filter(move |(_, record)| record.resident && which(record)).map(|(id, _)| id)
    }

    fn oldest_leaf(&self) -> Option<u32> {
        self.ids(|record| record.children == 0 && record.pins == 0).min_by_key(|&id| self.records[id as usize].order)
    }
}

impl CachePolicy for Hostile {
    fn attach(&mut self, _groups: &[GroupInfo]) {}

    fn step(&mut self, events: Events<'_>, want: u32, victims: &mut Vec<u32>) {
        events.into_iter().for_each(|event| self.take(event));
        let wanted = want as usize;
        let mode = match self.honest_steps.checked_sub(1) {
            Some(left) => {
                self.honest_steps = left;
                0
            }
            None => self.mode,
        };
        match mode {
            TRAP => panic!("as asked"),
            LOOP => loop {
                black_box(());
            },
            ALLOCATE => {
                let mut hoard = Vec::new();
                loop {
                    hoard.push(black_box(Vec::<u8>::with_capacity(1 << 16)));
                }
            }
            UNKNOWN_IDS => victims.extend((0..want).map(|index| u32::MAX - 1 - index)),
            PINNED_IDS => victims.extend(self.ids(|record| record.pins > 0).take(wanted)),
            INNER_IDS => victims.extend(self.ids(|record| record.children > 0).take(wanted)),
            SAME_ID_TWICE => victims.extend(self.oldest_leaf().into_iter().cycle().take(wanted)),
            TOO_MANY => victims.extend(0..want + 1),
            _ => {
                while victims.len() < wanted
                    && let Some(id) = self.oldest_leaf()
                {
                    self.remove(id);
                    victims.push(id);
                }
            }
        }
    }
}
