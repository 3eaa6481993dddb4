//! The short run that every policy passes before it is eligible: a few hundred operations in scratch instances.

use std::slice::from_ref;

use reprise_core::policy::{Admission, Event, EventBuffer, GroupInfo, Inserted, Kind, NO_PARENT, Span};

use crate::{cache::CachePolicy, component::Component, error::PolicyError};

const GROUP: u8 = 0;
const CAPACITY: u32 = 32;
const OPERATIONS: u64 = 400;
const BLOCK_TOKENS: u32 = 128;

/// Runs the policy with its default settings.
pub(crate) fn run(component: &Component) -> Result<(), PolicyError> {
    match component.description().kind {
        Kind::Cache => [true, false].into_iter().try_for_each(|tree| Trial::run(component, tree)),
        Kind::Checkpoint => checkpoints(component),
    }
}

/// A record as the host of this run sees it.
#[derive(Clone, Copy)]
struct Record {
    parent: u32,
    depth: u32,
    children: u32,
    pins: u32,
}

/// A small host: at most [`CAPACITY`] records, ids are indices.
struct Trial {
    group: GroupInfo,
    policy: CachePolicy,
    records: Vec<Option<Record>>,
    events: EventBuffer,
    pinned: Option<u32>,
    random: u64,
    now: u64,
}

impl Trial {
    fn run(component: &Component, tree: bool) -> Result<(), PolicyError> {
        let group = GroupInfo {
            group: GROUP,
            name: "history".to_owned(),
            record_bytes: 4096,
            capacity_records: CAPACITY.into(),
            recompute_tokens: BLOCK_TOKENS,
            tree,
        };
        let policy = component.cache(&[], from_ref(&group))?;
        let records = vec![None; CAPACITY as usize];
        let mut trial = Self {
            group,
            policy,
            records,
            events: EventBuffer::default(),
            pinned: None,
            random: 0x9e37_79b9_7f4a_7c15,
            now: 0,
        };
        // Nothing happened, nothing is there, nothing is known: no answer either.
        trial.step(0)?;
        trial.step(4)?;
        trial.policy.step(&[u64::from(u8::MAX), 0, 0], 0, &mut Vec::new())?;
        for _ in 0..OPERATIONS {
            trial.now += 1;
            trial.operation()?;
        }
        // More than there is.
        trial.step(2 * CAPACITY)?;
        trial.hand_over(component)
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
        self.policy.admit(&question, &mut Vec::new())
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

    /// A saved state is taken by a new instance, and garbage harms nobody.
    fn hand_over(&mut self, component: &Component) -> Result<(), PolicyError> {
        let Some((schema, state)) = self.policy.save()? else { return Ok(()) };
        let groups = from_ref(&self.group);
        if !component.cache(&[], groups)?.load(schema, &state)? {
            return Err(PolicyError::Answer { call: "load", what: "it refuses what `save` gave".to_owned() });
        }
        let garbage: Vec<u8> = (0..=u8::MAX).collect();
        component.cache(&[], groups)?.load(schema, &garbage).map(drop)
    }
}

fn checkpoints(component: &Component) -> Result<(), PolicyError> {
    let mut policy = component.checkpoint(&[])?;
    let mut positions = Vec::new();
    for now in 1..=OPERATIONS {
        // Spans of 0 to 36 blocks that start at 0 to 12 blocks; every third leaves a cached path.
        let (start, blocks) = ((now % 13) as u32 * BLOCK_TOKENS, (now % 37) as u32);
        let end = start + blocks * BLOCK_TOKENS;
        let matched = if blocks == 0 { start } else { start + (now % u64::from(blocks)) as u32 * BLOCK_TOKENS };
        let junction = if now.is_multiple_of(3) { matched } else { 0 };
        let span = Span { now, start, end, prompt_tokens: end + 7, matched, junction, block_tokens: BLOCK_TOKENS };
        positions.clear();
        policy.choose(&span, &mut positions)?;
        if let Some(position) = positions.iter().find(|&&position| !span.allows(position)) {
            let what = format!("position {position} is not one of {span:?}");
            return Err(PolicyError::Answer { call: "choose", what });
        }
        if !positions.is_sorted_by(|a, b| a < b) {
            return Err(PolicyError::Answer { call: "choose", what: "positions that do not ascend".to_owned() });
        }
    }
    Ok(())
}
