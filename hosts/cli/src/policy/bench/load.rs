//! What the contenders are told: paths that come, are used, and go from their ends.

use anyhow::bail;
use reprise_core::policy::{Event, EventBuffer, GroupInfo, Inserted, NO_PARENT};

use super::BATCH;

const GROUP: u8 = 0;
/// Blocks of a path when it is whole: a prompt of 12,800 tokens.
const PATH_BLOCKS: usize = 100;
/// Insertions of a batch.
const INSERTED: usize = BATCH / 2;
/// Records of a batch that the host takes out by itself.
const TAKEN_OUT: usize = 8;
/// Victims that every second call asks for: what two batches insert and nobody took out.
pub(super) const WANT: u32 = 2 * (INSERTED - TAKEN_OUT) as u32;
/// In place of the path of an id that is free.
const FREE: u32 = u32::MAX;

/// The group that policies are told of: blocks of a large model.
pub(super) fn group(records: u32) -> GroupInfo {
    GroupInfo {
        group: GROUP,
        name: "history".to_owned(),
        record_bytes: 647_168,
        capacity_records: records.into(),
        recompute_tokens: 128,
        tree: true,
    }
}

/// Books of one contender, and the batch that it is given next.
pub(super) struct Load {
    /// Ids, root first.
    paths: Vec<Vec<u32>>,
    /// Which path a record is in, by id.
    owners: Vec<u32>,
    free: Vec<u32>,
    /// Paths that have records, in no order, and where in it a path stands.
    live: Vec<u32>,
    places: Vec<u32>,
    empty: Vec<u32>,
    growing: u32,
    batch: EventBuffer,
    asks: bool,
    /// Victims that were wanted and not named: the host takes as many out.
    owed: usize,
    now: u64,
    random: u64,
}

impl Load {
    pub fn new(records: u32) -> Self {
        // More paths than whole ones: some are half eaten away.
        let paths = records.div_ceil(PATH_BLOCKS as u32) * 2 + 2;
        Self {
            paths: vec![Vec::new(); paths as usize],
            owners: vec![FREE; records as usize],
            free: (0..records).rev().collect(),
            live: Vec::new(),
            places: vec![0; paths as usize],
            empty: (1..paths).collect(),
            growing: 0,
            batch: EventBuffer::default(),
            asks: false,
            owed: 0,
            now: 0,
            random: 0x9e37_79b9_7f4a_7c15,
        }
    }

    pub fn words(&self) -> &[u64] {
        self.batch.words()
    }

    /// Events of the batch.
    pub fn events(&self) -> u64 {
        self.batch.len() as u64
    }

    /// Makes a batch of insertions; `false` if there is no room for any.
    pub fn fill_batch(&mut self) -> bool {
        self.batch.clear();
        while self.batch.len() < BATCH && !self.free.is_empty() {
            self.insert();
        }
        !self.batch.is_empty()
    }

    /// Makes the next batch, and says how many victims are to be asked for with it.
    pub fn batch(&mut self) -> u32 {
        self.batch.clear();
        for _ in 0..std::mem::take(&mut self.owed) {
            self.take_out();
        }
        for number in 0..INSERTED {
            if number < TAKEN_OUT {
                self.take_out();
            } else {
                self.touch();
            }
            self.insert();
        }
        let want = if self.asks { WANT } else { 0 };
        self.asks = !self.asks;
        want
    }

    /// Takes the victims that were named where `want` were asked for. Returns how many were not.
    ///
    /// # Errors
    /// When one is no leaf, or not there.
    pub fn take(&mut self, want: u32, victims: &[u32]) -> anyhow::Result<u64> {
        for &id in victims {
            let owner = self.owners.get(id as usize).copied().unwrap_or(FREE);
            let path = self.paths.get(owner as usize);
            if path.and_then(|path| path.last()) != Some(&id) {
                bail!("`step` named the record {id}, which is no leaf, not there, or named before");
            }
            self.pop(owner);
        }
        self.owed = (want as usize).saturating_sub(victims.len());
        Ok(self.owed as u64)
    }

    /// The next block of the path that grows; another one grows when it is whole.
    fn insert(&mut self) {
        if self.paths[self.growing as usize].len() == PATH_BLOCKS
            && let Some(next) = self.empty.pop()
        {
            self.growing = next;
        }
        let Some(id) = self.free.pop() else { return };
        let path = &mut self.paths[self.growing as usize];
        let parent = path.last().copied().unwrap_or(NO_PARENT);
        path.push(id);
        let depth = path.len() as u32;
        if depth == 1 {
            self.places[self.growing as usize] = self.live.len() as u32;
            self.live.push(self.growing);
        }
        self.owners[id as usize] = self.growing;
        self.now += 1;
        self.batch.push(Event::Inserted(Inserted { id, parent, group: GROUP, namespace: 0, depth, now: self.now }));
    }

    fn touch(&mut self) {
        let Some(owner) = self.some_path() else { return };
        let path = &self.paths[owner as usize];
        let Some(&id) = path.last() else { return };
        self.now += 1;
        self.batch.push(Event::Used { id, group: GROUP, depth: path.len() as u32, now: self.now });
    }

    fn take_out(&mut self) {
        let Some(owner) = self.some_path() else { return };
        let Some(&id) = self.paths[owner as usize].last() else { return };
        self.pop(owner);
        self.now += 1;
        self.batch.push(Event::Evicted { id, group: GROUP, now: self.now });
    }

    fn pop(&mut self, owner: u32) {
        let path = &mut self.paths[owner as usize];
        let Some(id) = path.pop() else { return };
        self.owners[id as usize] = FREE;
        self.free.push(id);
        if path.is_empty() {
            let place = self.places[owner as usize];
            self.live.swap_remove(place as usize);
            if let Some(&moved) = self.live.get(place as usize) {
                self.places[moved as usize] = place;
            }
            if owner != self.growing {
                self.empty.push(owner);
            }
        }
    }

    /// A path that has records, by chance.
    fn some_path(&mut self) -> Option<u32> {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let count = self.live.len() as u64;
        (count > 0).then(|| self.live[((self.random >> 33) % count) as usize])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const RECORDS: u32 = 1024;

    /// Parents of what is there, as a policy learns of it.
    #[derive(Default)]
    struct Told(BTreeMap<u32, u32>);

    impl Told {
        fn learn(&mut self, load: &Load) {
            for event in load.batch.events() {
                match event {
                    Event::Inserted(Inserted { id, parent, .. }) => {
                        assert!(parent == NO_PARENT || self.0.contains_key(&parent), "{event:?}");
                        assert_eq!(self.0.insert(id, parent), None, "{event:?}");
                        assert!(self.0.len() <= RECORDS as usize);
                    }
                    Event::Used { id, .. } => assert!(self.0.contains_key(&id), "{event:?}"),
                    Event::Evicted { id, .. } => self.remove(id),
                    other => panic!("{other:?}"),
                }
            }
        }

        fn remove(&mut self, id: u32) {
            assert!(!self.0.values().any(|&parent| parent == id), "{id} has a child");
            self.0.remove(&id).unwrap();
        }

        fn leaf(&self) -> u32 {
            let leaf = self.0.keys().find(|id| !self.0.values().any(|parent| parent == *id));
            *leaf.unwrap()
        }
    }

    /// What a host guarantees: a parent is there before its child, an id is free before it is used again, only leaves go; whether the
    /// policy names all victims or few.
    #[test]
    fn no_event_contradicts_those_before_it() {
        for named in [WANT, 10, 0] {
            let (mut load, mut told) = (Load::new(RECORDS), Told::default());
            while load.fill_batch() {
                told.learn(&load);
            }
            assert_eq!(told.0.len(), RECORDS as usize);
            assert_eq!(load.take(WANT, &[]).unwrap(), u64::from(WANT));
            for call in 0..40 {
                let want = load.batch();
                told.learn(&load);
                assert_eq!(want, if call % 2 == 1 { WANT } else { 0 });
                let mut victims = Vec::new();
                for _ in 0..want.min(named) {
                    victims.push(told.leaf());
                    told.remove(*victims.last().unwrap());
                }
                assert_eq!(load.take(want, &victims).unwrap(), u64::from(want.saturating_sub(named)));
                let owed = if call % 2 == 0 && call > 0 { (WANT - named) as usize } else { 0 };
                assert!(call == 0 || load.events() as usize == BATCH + owed, "{} in call {call}", load.events());
            }
        }
    }

    #[test]
    fn a_victim_that_cannot_go_is_not_taken() {
        let mut load = Load::new(RECORDS);
        while load.fill_batch() {}
        let whole = PATH_BLOCKS as u32;
        // Not there at all, with a child, twice.
        for victims in [&[RECORDS][..], &[0], &[whole - 1, whole - 1]] {
            let error = load.take(2, victims).unwrap_err().to_string();
            assert!(error.contains("no leaf"), "{error}");
        }
        assert_eq!(load.take(2, &[whole - 2]).unwrap(), 1, "the parent of what went is a leaf");
    }
}
