//! A small host with books as plain as can be, which hands a policy a lawful stream of events and checks every answer.

use std::slice::from_ref;

use reprise_core::policy::{Admission, Event, EventBuffer, GroupInfo, Inserted, NO_PARENT};

use super::group;
use crate::{cache::CachePolicy, component::Component, error::PolicyError};

const GROUP: u8 = 0;
const CAPACITY: u32 = 32;
/// Operations of a run: enough that every branch is taken many times.
const OPERATIONS: u64 = 400;

/// A record as the host of this run sees it.
#[derive(Clone, Copy)]
struct Record {
    parent: u32,
    depth: u32,
    children: u32,
    pins: u32,
}

/// At most [`CAPACITY`] records, whose ids are indices.
pub(super) struct Trial {
    group: GroupInfo,
    policy: CachePolicy,
    records: Vec<Option<Record>>,
    events: EventBuffer,
    pinned: Option<u32>,
    random: u64,
    now: u64,
    answers: blake3::Hasher,
}

impl Trial {
    /// A fresh instance of the policy that knows of one group and no record.
    pub fn new(component: &Component, tree: bool) -> Result<Self, PolicyError> {
        let group = group(CAPACITY.into(), tree);
        let policy = component.cache(&[], from_ref(&group))?;
        let records = vec![None; CAPACITY as usize];
        Ok(Self {
            group,
            policy,
            records,
            events: EventBuffer::default(),
            pinned: None,
            random: 0x9e37_79b9_7f4a_7c15,
            now: 0,
            answers: blake3::Hasher::new(),
        })
    }

    /// Everything in a row.
    pub fn run(component: &Component, tree: bool) -> Result<Self, PolicyError> {
        let mut trial = Self::new(component, tree)?;
        trial.nothing()?;
        trial.unknown_kinds()?;
        trial.operations()?;
        trial.more_than_there_is()?;
        Ok(trial)
    }

    /// Nothing happened, nothing is there: no answer either.
    pub fn nothing(&mut self) -> Result<(), PolicyError> {
        self.step(0)?;
        self.step(4)
    }

    /// Events of kinds that a later contract may bring, and half an event.
    pub fn unknown_kinds(&mut self) -> Result<(), PolicyError> {
        let mut none = Vec::new();
        for kind in [0, 7, 100, u8::MAX] {
            self.policy.step(&[u64::from(kind), u64::MAX, u64::MAX], 0, &mut none)?;
        }
        Ok(())
    }

    /// Insertions, uses, pins, evictions by the host and by the policy, some of them declined.
    pub fn operations(&mut self) -> Result<(), PolicyError> {
        for _ in 0..OPERATIONS {
            self.now += 1;
            self.operation()?;
        }
        Ok(())
    }

    /// Asks for more victims than there are records.
    pub fn more_than_there_is(&mut self) -> Result<(), PolicyError> {
        self.step(2 * CAPACITY)
    }

    /// What the policy would hand over.
    pub fn save(&mut self) -> Result<Option<(u32, Vec<u8>)>, PolicyError> {
        self.policy.save()
    }

    /// Hands a predecessor's state to this instance.
    pub fn load(&mut self, schema: u32, state: &[u8]) -> Result<bool, PolicyError> {
        self.policy.load(schema, state)
    }

    /// A digest of all answers so far.
    pub fn answers(&self) -> [u8; 32] {
        self.answers.finalize().into()
    }

    /// Memory of the policy in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.policy.memory_bytes()
    }

    /// A number below `bound`, by xorshift.
    fn below(&mut self, bound: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % bound as u64) as usize
    }

    fn resident(&mut self) -> Option<u32> {
        let ids: Vec<u32> = (0..CAPACITY).filter(|&id| self.records[id as usize].is_some()).collect();
        (!ids.is_empty()).then(|| ids[self.below(ids.len())])
    }

    fn operation(&mut self) -> Result<(), PolicyError> {
        let (group, now) = (GROUP, self.now);
        match self.below(8) {
            0..4 => self.insert(),
            4 | 5 => {
                let Some(id) = self.resident() else { return Ok(()) };
                let depth = self.records[id as usize].map_or(1, |record| record.depth);
                self.events.push(Event::Used { id, group, depth, now });
                Ok(())
            }
            6 => {
                match self.pinned.take() {
                    Some(id) => {
                        self.pin(id, -1);
                        self.events.push(Event::Unpinned { id, group, now });
                    }
                    None => {
                        self.pinned = self.resident();
                        if let Some(id) = self.pinned {
                            self.pin(id, 1);
                            self.events.push(Event::Pinned { id, group, now });
                        }
                    }
                }
                Ok(())
            }
            _ => {
                // The host takes one out by itself, as it does when a record is damaged.
                if let Some(id) = self.resident().filter(|&id| self.evictable(id)) {
                    self.remove(id);
                    self.events.push(Event::Evicted { id, group, now });
                }
                Ok(())
            }
        }
    }

    fn insert(&mut self) -> Result<(), PolicyError> {
        let parent = if self.group.tree { self.resident() } else { None };
        let Some(id) = (0..CAPACITY).find(|&id| self.records[id as usize].is_none()) else {
            let want = 1 + self.below(4) as u32;
            return self.step(want);
        };
        let depth = parent.and_then(|id| self.records[id as usize]).map_or(1, |record| record.depth + 1);
        if let Some(record) = parent.and_then(|id| self.records[id as usize].as_mut()) {
            record.children += 1;
        }
        let parent = parent.unwrap_or(NO_PARENT);
        self.records[id as usize] = Some(Record { parent, depth, children: 0, pins: 0 });
        self.events.push(Event::Inserted(Inserted { id, parent, group: GROUP, namespace: 0, depth, now: self.now }));
        self.ask_admission(depth)
    }

    /// A question whose last block is not resident; the answer's form is checked by the policy's wrapper.
    fn ask_admission(&mut self, depth: u32) -> Result<(), PolicyError> {
        let keys: Vec<u64> = (0..=u64::from(depth)).collect();
        let question = Admission { now: self.now, group: GROUP, keys: &keys, first: depth, free: 0 };
        let mut verdicts = Vec::new();
        self.policy.admit(&question, &mut verdicts)?;
        self.answers.update(&verdicts.into_iter().map(u8::from).collect::<Vec<_>>());
        Ok(())
    }

    fn pin(&mut self, mut id: u32, change: i32) {
        while let Some(record) = self.records.get_mut(id as usize).and_then(Option::as_mut) {
            record.pins = record.pins.saturating_add_signed(change);
            id = record.parent;
        }
    }

    fn evictable(&self, id: u32) -> bool {
        self.records.get(id as usize).copied().flatten().is_some_and(|record| record.children == 0 && record.pins == 0)
    }

    fn remove(&mut self, id: u32) {
        if let Some(record) = self.records[id as usize].take()
            && let Some(parent) = self.records.get_mut(record.parent as usize).and_then(Option::as_mut)
        {
            parent.children -= 1;
        }
    }

    /// Hands the events over and takes the victims, but for every third, which is declined.
    fn step(&mut self, want: u32) -> Result<(), PolicyError> {
        let mut victims = Vec::new();
        self.policy.step(self.events.words(), want, &mut victims)?;
        self.events.clear();
        for id in &victims {
            self.answers.update(&id.to_le_bytes());
        }
        let mut declined = Vec::new();
        let before = self.records.clone();
        for (index, &id) in victims.iter().enumerate() {
            if !self.evictable(id) {
                let what = format!("victim {id} is not there, named twice, pinned, or not a leaf");
                return Err(PolicyError::Answer { call: "step", what });
            }
            self.remove(id);
            if index % 3 == 2 {
                declined.push(id);
            }
        }
        // Declining a victim keeps its ancestors, too: they come first.
        let mut kept: Vec<u32> = Vec::new();
        for id in declined {
            let mut path = Vec::new();
            let mut next = id;
            while self.records.get(next as usize).is_some_and(Option::is_none) {
                path.push(next);
                next = before[next as usize].map_or(NO_PARENT, |record| record.parent);
                if kept.contains(&next) {
                    break;
                }
            }
            for &id in path.iter().rev().filter(|id| !kept.contains(id)).collect::<Vec<_>>() {
                kept.push(id);
            }
        }
        for &id in &kept {
            let record = before[id as usize].map(|record| Record { children: 0, ..record });
            self.records[id as usize] = record;
            if let Some(parent) =
                record.and_then(|record| self.records.get_mut(record.parent as usize)).and_then(Option::as_mut)
            {
                parent.children += 1;
            }
            self.events.push(Event::Kept { id, group: GROUP, now: self.now });
        }
        Ok(())
    }
}
