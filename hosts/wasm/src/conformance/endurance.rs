//! The long run: a million events about the same few records. A policy whose memory grows with what happened, and not with what is
//! there, runs into its limit on some night in production; here it is found first.

use std::{
    slice::from_ref,
    time::{Duration, Instant},
};

use reprise_core::policy::{Admission, Event, EventBuffer, Inserted, NO_PARENT};

use super::{checkpoints, group};
use crate::{component::Component, error::PolicyError};

/// The name of the check.
pub(super) const NAME: &str = "memory does not grow with the number of events";

const PATHS: u32 = 64;
const PATH_BLOCKS: u32 = 16;
const RECORDS: u32 = PATHS * PATH_BLOCKS;
const BATCH: usize = 256;
/// Keys of a question about admission, all of them new.
const KEYS: u64 = 16;
/// Bytes that memory may grow by in the last three quarters of the run: less than a byte an event in a run of 2^20, and enough for the
/// odd page of an allocator or a collector of garbage.
const SLACK_BYTES: usize = 512 << 10;

/// What came of it.
pub(super) struct Endurance {
    /// What each call took.
    pub times: Vec<Duration>,
    /// Memory at the end.
    pub memory_bytes: usize,
    /// 0 where time is measured.
    pub fuel_per_item: u64,
}

/// Watches memory from a quarter of the run on.
struct Watch {
    quarter: u64,
    at_quarter: Option<usize>,
}

impl Watch {
    fn new(items: u64) -> Self {
        Self { quarter: items / 4, at_quarter: None }
    }

    fn look(&mut self, done: u64, memory_bytes: usize) -> Result<(), String> {
        if done < self.quarter {
            return Ok(());
        }
        let before = *self.at_quarter.get_or_insert(memory_bytes);
        if memory_bytes > before + SLACK_BYTES {
            return Err(format!(
                "{before} bytes after {} of them, {memory_bytes} after {done}, about the same records",
                self.quarter
            ));
        }
        Ok(())
    }
}

/// Events in batches about [`RECORDS`] records: uses, pins, records that go and come again, victims that are declined.
pub(super) fn caches(component: &Component, events: u64) -> Result<Endurance, String> {
    let said = |error: PolicyError| error.to_string();
    let mut policy = component.cache(&[], from_ref(&group(RECORDS.into(), true))).map_err(said)?;
    let mut stream = Stream { random: 1, now: 0 };
    let mut batch = EventBuffer::default();
    (0..RECORDS).for_each(|id| batch.push(stream.inserted(id)));
    policy.step(batch.words(), 0, &mut Vec::new()).map_err(said)?;
    batch.clear();
    let (mut times, mut victims, mut verdicts) = (Vec::new(), Vec::new(), Vec::new());
    let mut watch = Watch::new(events);
    let fuel_before = policy.fuel_used();
    let (mut done, mut key) = (0, 0_u64);
    while done < events {
        while batch.len() < BATCH {
            stream.events(&mut batch);
        }
        done += batch.len() as u64;
        let want = stream.below(4);
        victims.clear();
        let begun = Instant::now();
        policy.step(batch.words(), want, &mut victims).map_err(said)?;
        times.push(begun.elapsed());
        batch.clear();
        if let Some(id) = victims.iter().find(|&&id| id >= RECORDS) {
            return Err(format!("`step` named {id}, and there are {RECORDS} records"));
        }
        // All are declined, parents first.
        for &id in victims.iter().rev() {
            batch.push(Event::Kept { id, group: 0, now: stream.now });
        }
        let keys: Vec<u64> = (key..key + KEYS).map(|key| key.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        key += KEYS;
        verdicts.clear();
        let question = Admission { now: stream.now, group: 0, keys: &keys, first: 0, free: 0 };
        policy.admit(&question, &mut verdicts).map_err(said)?;
        watch.look(done, policy.memory_bytes())?;
    }
    let fuel_per_item = (policy.fuel_used() - fuel_before) / done.max(1);
    Ok(Endurance { times, memory_bytes: policy.memory_bytes(), fuel_per_item })
}

/// Makes events about paths that are always there.
struct Stream {
    random: u64,
    now: u64,
}

impl Stream {
    /// A number below `bound`.
    fn below(&mut self, bound: u32) -> u32 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.random >> 33) % u64::from(bound)) as u32
    }

    fn inserted(&self, id: u32) -> Event {
        let block = id % PATH_BLOCKS;
        let parent = if block == 0 { NO_PARENT } else { id - 1 };
        Event::Inserted(Inserted { id, parent, group: 0, namespace: 0, depth: block + 1, now: self.now })
    }

    /// One thing that happens to a path, as the events that it makes.
    fn events(&mut self, batch: &mut EventBuffer) {
        self.now += 1;
        let (group, now) = (0, self.now);
        let id = self.below(PATHS) * PATH_BLOCKS + PATH_BLOCKS - 1;
        match self.below(8) {
            0 => {
                batch.push(Event::Pinned { id, group, now });
                batch.push(Event::Unpinned { id, group, now });
            }
            1 => {
                batch.push(Event::Evicted { id, group, now });
                batch.push(self.inserted(id));
            }
            _ => batch.push(Event::Used { id, group, depth: PATH_BLOCKS, now }),
        }
    }
}

/// One span a request.
pub(super) fn checkpoints(component: &Component, requests: u64) -> Result<Endurance, String> {
    let said = |error: PolicyError| error.to_string();
    let mut policy = checkpoints::made(component).map_err(said)?;
    let (mut times, mut positions) = (Vec::new(), Vec::new());
    let mut watch = Watch::new(requests);
    let fuel_before = policy.fuel_used();
    for now in 1..=requests {
        let begun = Instant::now();
        checkpoints::ask(&mut policy, &checkpoints::span(now), &mut positions).map_err(said)?;
        times.push(begun.elapsed());
        watch.look(now, policy.memory_bytes())?;
    }
    let fuel_per_item = (policy.fuel_used() - fuel_before) / requests.max(1);
    Ok(Endurance { times, memory_bytes: policy.memory_bytes(), fuel_per_item })
}
