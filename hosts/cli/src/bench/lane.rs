//! One thread that puts records into the store and gets them.

use std::{ops::AddAssign, time::Instant};

use anyhow::Context;
use reprise::{
    Digest,
    disk::{Buffer, Get, Key, Put, Store},
};

use super::{Latencies, Pattern, Until, order::Order};

/// The group that all records belong to.
pub const GROUP: u8 = 0;

/// Bytes of records that were held against what was put.
#[derive(Clone, Copy, Debug, Default)]
pub struct Compared {
    pub bytes: u64,
    pub wrong_bytes: u64,
}

impl AddAssign for Compared {
    fn add_assign(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.wrong_bytes += other.wrong_bytes;
    }
}

/// One thread's share of the slots: every `stride`th from `first` on. No other thread puts there.
pub struct Lane {
    first: u32,
    stride: u32,
    order: Order,
    /// The next visit of the order.
    step: u64,
    /// In which generation each slot was put last.
    written: Vec<u32>,
    /// Records of a batch.
    batch: usize,
    spare: Vec<Buffer>,
    /// How long records took since this was last taken.
    pub latencies: Latencies,
    /// What was compared since this was last taken.
    pub compared: Compared,
}

impl Lane {
    /// Share number `first` of `stride` shares.
    pub fn new(first: u32, stride: u32, records: u32, batch: usize) -> Self {
        let slots = (records - first).div_ceil(stride);
        Self {
            first,
            stride,
            order: Order::new(slots),
            step: 0,
            written: vec![0; slots as usize],
            // No slot may come twice in a batch of puts.
            batch: batch.min(slots as usize),
            spare: Vec::new(),
            latencies: Latencies::default(),
            compared: Compared::default(),
        }
    }

    /// How many slots there are.
    pub fn slots(&self) -> u64 {
        self.written.len() as u64
    }

    /// The next `count` of the lane's slots, by their place in the lane.
    fn next(&mut self, count: usize) -> Vec<u32> {
        let start = self.step;
        self.step += count as u64;
        (start..self.step).map(|step| self.order.at(step)).collect()
    }

    fn slot(&self, place: u32) -> u32 {
        self.first + place * self.stride
    }
}

/// What a thread works with.
pub struct User<'a> {
    pub store: &'a Store,
    pub pattern: &'a Pattern,
    pub namespace: u16,
    pub generation: u32,
    /// Whether the store is called for each record instead of a batch.
    pub one_by_one: bool,
}

impl User<'_> {
    /// Puts records, and says how many.
    pub fn put(&self, lane: &mut Lane, until: Until) -> anyhow::Result<u64> {
        self.carry(lane, until, |lane, places| {
            let puts: Vec<Put> = places.iter().map(|&place| self.stamped(lane, place)).collect();
            let start = Instant::now();
            if self.one_by_one {
                return puts.into_iter().try_for_each(|put| self.put_one(lane, put));
            }
            for (index, outcome) in self.store.put_batch(puts, None) {
                lane.latencies.add(start.elapsed());
                outcome.result.with_context(|| format!("putting record {}", lane.slot(places[index])))?;
                lane.spare.extend(outcome.buffer);
            }
            Ok(())
        })
    }

    fn put_one(&self, lane: &mut Lane, mut put: Put) -> anyhow::Result<()> {
        let start = Instant::now();
        self.store
            .put(put.group, put.slot, &put.key, put.parent, put.last_use, &mut put.buffer)
            .with_context(|| format!("putting record {}", put.slot))?;
        lane.latencies.add(start.elapsed());
        lane.spare.push(put.buffer);
        Ok(())
    }

    /// Gets records, and says how many. `compare` has each held against what was put.
    pub fn get(&self, lane: &mut Lane, until: Until, compare: bool) -> anyhow::Result<u64> {
        self.carry(lane, until, |lane, places| {
            let gets: Vec<Get> = places.iter().map(|&place| self.get_of(lane.slot(place))).collect();
            if self.one_by_one {
                return places.iter().zip(gets).try_for_each(|(&place, get)| self.get_one(lane, place, &get, compare));
            }
            let start = Instant::now();
            for (index, got) in self.store.get_batch(&gets, None) {
                lane.latencies.add(start.elapsed());
                let loan = got.with_context(|| format!("getting record {}", gets[index].slot))?;
                if compare {
                    self.compare(lane, places[index], &loan);
                }
            }
            Ok(())
        })
    }

    fn get_one(&self, lane: &mut Lane, place: u32, get: &Get, compare: bool) -> anyhow::Result<()> {
        let mut buffer = lane.spare.pop().unwrap_or_default();
        let start = Instant::now();
        self.store
            .get(get.group, get.slot, &get.key, &mut buffer)
            .with_context(|| format!("getting record {}", get.slot))?;
        lane.latencies.add(start.elapsed());
        if compare {
            self.compare(lane, place, buffer.bytes());
        }
        lane.spare.push(buffer);
        Ok(())
    }

    fn compare(&self, lane: &mut Lane, place: u32, record: &[u8]) {
        let wrong_bytes = self.pattern.wrong_bytes(lane.slot(place), lane.written[place as usize], record);
        lane.compared += Compared { bytes: record.len() as u64, wrong_bytes };
    }

    fn carry(
        &self,
        lane: &mut Lane,
        until: Until,
        batch: impl Fn(&mut Lane, &[u32]) -> anyhow::Result<()>,
    ) -> anyhow::Result<u64> {
        let mut done = 0;
        loop {
            let count = until.next(done, lane.batch);
            if count == 0 {
                return Ok(done);
            }
            let places = lane.next(count);
            batch(lane, &places)?;
            done += count as u64;
        }
    }

    fn stamped(&self, lane: &mut Lane, place: u32) -> Put {
        let slot = lane.slot(place);
        lane.written[place as usize] = self.generation;
        let mut buffer = lane.spare.pop().unwrap_or_else(|| self.pattern.buffer(self.pattern.len()));
        self.pattern.stamp(slot, self.generation, buffer.bytes_mut());
        let Get { group, slot, key } = self.get_of(slot);
        Put { group, slot, key, parent: Digest([0; 32]), last_use: 0, buffer }
    }

    fn get_of(&self, slot: u32) -> Get {
        let mut digest = [0; 32];
        digest[..4].copy_from_slice(&slot.to_le_bytes());
        Get { group: GROUP, slot, key: Key { namespace: self.namespace, digest: Digest(digest), position: 0 } }
    }
}
