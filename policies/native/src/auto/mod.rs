//! `auto`: learns how blocks are used here, and keeps those whose place brings most.

mod ages;
mod bits;
mod chronicle;
mod hazards;
mod run;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use reprise_core::policy::{
    Admission, CachePolicy, Description, Event, Events, GroupInfo, Inserted, Kind, Policy, Setting, Settings,
};

use ages::BUCKETS;
use chronicle::Chronicle;
use hazards::ONE;

/// Blocks that are remembered at least, whatever the capacity: a cache smaller than a prompt has to see more than a prompt to learn.
const LEAST_REMEMBERED: u64 = 1 << 14;

/// Blocks that are remembered at most: 4 bytes each have to fit the memory of a policy.
const MOST_REMEMBERED: u64 = 1 << 22;

/// Records that room is made for at once at most, as all policies do.
const MOST_RESERVED: u64 = 1 << 22;

/// What `auto` and `write-saver` are: the same policy at another price of writing.
#[derive(Clone, Debug)]
struct Learner {
    chronicle: Chronicle,
    /// Multiple of the capacity that is remembered of what is not resident.
    memory: u64,
    /// Uses that a written block has to bring beyond those it displaces, in 2^-32.
    write_price: i64,
    /// Blocks that were taken out for admitted ones and are yet to be asked for.
    named: Vec<u32>,
}

impl Learner {
    fn new(settings: &Settings) -> Self {
        let write_price = (settings.get("write-price") * ONE / 1000) as i64;
        Self { chronicle: Chronicle::new(0, 0), memory: settings.get("memory"), write_price, named: Vec::new() }
    }

    fn learn(&mut self, event: Event) {
        match event {
            Event::Inserted(Inserted { id, parent, depth, now, .. }) => self.chronicle.insert(id, parent, depth, now),
            Event::Used { id, now, .. } => self.chronicle.use_path(id, now),
            Event::Evicted { id, .. } => self.chronicle.remove(id),
            Event::Kept { id, .. } => self.chronicle.put_back(id),
            Event::Pinned { id, .. } => self.chronicle.pin(id),
            Event::Unpinned { id, .. } => self.chronicle.unpin(id),
        }
    }

    /// Whether a block of this cell is worth a place, and worth being written. If so and there is no room, the block that makes room
    /// for it is named.
    fn admits(&mut self, cell: Option<usize>, has_room: bool) -> bool {
        let Some(cell) = cell else { return true };
        let least = if has_room { Some(0) } else { self.chronicle.least_worth() };
        // Nothing may go: the host finds that out by itself.
        let Some(least) = least else { return true };
        let hazards = &self.chronicle.hazards;
        let class = (cell / BUCKETS) as u8;
        if hazards.worth(cell) < least
            // What is worth its place gains something.
            || self.write_price > 0 && hazards.gain(class, least).is_some_and(|gain| gain < self.write_price)
        {
            return false;
        }
        if !has_room {
            self.named.extend(self.chronicle.take_next());
        }
        true
    }

    fn attach(&mut self, groups: &[GroupInfo]) {
        let trees = groups.iter().filter(|group| group.tree);
        let records = trees.fold(0_u64, |sum, group| sum.saturating_add(group.capacity_records));
        let remembered = records.saturating_mul(self.memory).clamp(LEAST_REMEMBERED, MOST_REMEMBERED);
        let records = usize::try_from(records.min(MOST_RESERVED)).unwrap_or(0);
        self.chronicle = Chronicle::new(remembered, records + records / 2 + LEAST_REMEMBERED as usize);
        self.chronicle.reserve(records);
    }

    fn step(&mut self, events: Events<'_>, want: u32, victims: &mut Vec<u32>) {
        if !events.is_empty() {
            // What the host did not ask for has stayed.
            while let Some(id) = self.named.pop() {
                self.chronicle.put_back(id);
            }
        }
        for event in events {
            self.learn(event);
        }
        let named = self.named.len().min(want as usize);
        victims.extend(self.named.drain(..named));
        for _ in named..want as usize {
            let Some(id) = self.chronicle.take_next() else { break };
            victims.push(id);
        }
    }

    fn admit(&mut self, question: &Admission<'_>, verdicts: &mut Vec<bool>) {
        while let Some(id) = self.named.pop() {
            self.chronicle.put_back(id);
        }
        let Admission { now, keys, first, free, .. } = *question;
        self.chronicle.ask(keys, first, now);
        let asked = keys.len().saturating_sub(first as usize);
        let answered = verdicts.len();
        for index in 0..asked {
            let cell = self.chronicle.on_path(first + index as u32 + 1);
            if !self.admits(cell, index < free as usize) {
                break;
            }
            verdicts.push(true);
        }
        verdicts.resize(answered + asked, false);
    }
}

const MEMORY: Setting = Setting {
    key: "memory",
    help: "how many times the capacity is remembered of blocks that are not resident, to learn from their return",
    default: 8,
    min: 0,
    max: 64,
};

const fn write_price(default: u64) -> Setting {
    Setting {
        key: "write-price",
        help: "thousandths of a use that a block must be expected to bring beyond what it displaces, to be written",
        default,
        min: 0,
        max: 1000,
    }
}

macro_rules! learner {
    ($(#[$doc:meta])* $policy:ident, $name:literal, $price:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $policy(Learner);

        impl Policy for $policy {
            const DESCRIPTION: Description = Description {
                name: $name,
                version: "0.1.0",
                kind: Kind::Cache,
                admission: true,
                state_schema: 1,
                settings: &[MEMORY, write_price($price)],
            };

            fn new(settings: &Settings) -> Self {
                Self(Learner::new(settings))
            }
        }

        impl CachePolicy for $policy {
            fn attach(&mut self, groups: &[GroupInfo]) {
                self.0.attach(groups);
            }

            fn step(&mut self, events: Events<'_>, want: u32, victims: &mut Vec<u32>) {
                self.0.step(events, want, victims);
            }

            fn admit(&mut self, question: &Admission<'_>, verdicts: &mut Vec<bool>) {
                self.0.admit(question, verdicts);
            }

            /// What was learned of reuse, by class and age.
            fn save(&self) -> Vec<u8> {
                self.0.chronicle.hazards.save()
            }

            fn load(&mut self, bytes: &[u8]) -> bool {
                self.0.chronicle.load(bytes)
            }
        }
    };
}

learner!(
    /// `auto`: keeps the blocks whose place brings most uses per turn, as learned from all that were asked for, resident or not. It becomes
    /// LRU where the chance of a use falls with age, holds on to what has proven itself where the cache is small, and refuses what
    /// is not worth its place.
    Auto,
    "auto",
    0
);

learner!(
    /// `write-saver`: `auto` for disks that wear: a block is written only if it is expected to bring a tenth of a use beyond what it displaces.
    WriteSaver,
    "write-saver",
    100
);
