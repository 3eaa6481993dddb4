//! A small host that makes random streams of events, and takes victims as a real one does.
#![allow(dead_code, reason = "each test uses a part")]

use reprise_core::policy::{Admission, Event, EventBuffer, Events, GroupInfo, Inserted, NO_PARENT, Span};

const BLOCK_TOKENS: u32 = 128;

/// Numbers by a linear congruential generator.
pub struct Random(u64);

impl Random {
    pub fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(bound)) as u32
    }
}

#[derive(Clone, Copy)]
struct Record {
    parent: u32,
    depth: u32,
    children: u32,
    order: u64,
    used: u64,
}

/// What is asked before a path is written.
pub struct Question {
    now: u64,
    keys: Vec<u64>,
    first: u32,
    free: u32,
}

impl Question {
    pub fn ask(&self) -> Admission<'_> {
        Admission { now: self.now, group: 0, keys: &self.keys, first: self.first, free: self.free }
    }
}

/// Requests over a tree of blocks with a quota.
pub struct Requests {
    random: Random,
    capacity: u32,
    records: Vec<Option<Record>>,
    free: Vec<u32>,
    events: EventBuffer,
    now: u64,
    order: u64,
    evicted: usize,
    pinned: Option<u32>,
}

impl Requests {
    pub fn new(seed: u64) -> Self {
        Self::of_capacity(seed, 300)
    }

    pub fn of_capacity(seed: u64, capacity: u32) -> Self {
        Self {
            random: Random(seed),
            capacity,
            records: vec![None; capacity as usize],
            free: (0..capacity).rev().collect(),
            events: EventBuffer::default(),
            now: 0,
            order: 0,
            evicted: 0,
            pinned: None,
        }
    }

    pub fn groups(&self) -> [GroupInfo; 1] {
        [GroupInfo {
            group: 0,
            name: "history".into(),
            record_bytes: 647_168,
            capacity_records: self.capacity.into(),
            recompute_tokens: BLOCK_TOKENS,
            tree: true,
        }]
    }

    pub fn words(&self) -> &[u64] {
        self.events.words()
    }

    pub fn events(&self) -> Events<'_> {
        self.events.events()
    }

    /// The events were handed over.
    pub fn taken(&mut self) {
        self.events.clear();
    }

    pub fn evicted(&self) -> usize {
        self.evicted
    }

    pub fn resident(&self) -> usize {
        self.capacity as usize - self.free.len()
    }

    fn some_record(&mut self) -> Option<u32> {
        let start = self.random.below(self.capacity);
        (start..self.capacity).chain(0..start).find(|&id| self.records[id as usize].is_some())
    }

    /// One request: uses a path, lengthens one as far as there is room, pins or unpins.
    pub fn next(&mut self) {
        self.now += 1;
        let now = self.now;
        if let Some(id) = self.pinned.take() {
            self.events.push(Event::Unpinned { id, group: 0, now });
        }
        if self.random.below(3) > 0
            && let Some(id) = self.some_record()
        {
            self.touch(id);
            if self.random.below(4) == 0 {
                self.events.push(Event::Pinned { id, group: 0, now });
                self.pinned = Some(id);
            }
        }
        let blocks = 1 + self.random.below(9);
        self.insert_path(blocks);
    }

    fn touch(&mut self, id: u32) {
        let depth = self.records[id as usize].expect("resident").depth;
        self.events.push(Event::Used { id, group: 0, depth, now: self.now });
        let mut next = id;
        while let Some(record) = self.records.get_mut(next as usize).and_then(Option::as_mut) {
            record.used = self.now;
            next = record.parent;
        }
    }

    /// Inserts a path below a random record or as a new root, as far as there is room.
    pub fn insert_path(&mut self, blocks: u32) {
        let below = if self.random.below(2) == 0 { None } else { self.some_record() };
        if let Some(id) = below {
            self.touch(id);
        }
        let mut parent = below.unwrap_or(NO_PARENT);
        for _ in 0..blocks {
            let Some(id) = self.free.pop() else { return };
            let depth = match self.records.get_mut(parent as usize).and_then(Option::as_mut) {
                Some(record) => {
                    record.children += 1;
                    record.depth + 1
                }
                None => 1,
            };
            self.order += 1;
            let record = Record { parent, depth, children: 0, order: self.order, used: self.now };
            self.records[id as usize] = Some(record);
            self.events.push(Event::Inserted(Inserted { id, parent, group: 0, namespace: 0, depth, now: self.now }));
            parent = id;
        }
    }

    /// Asked in two of three requests.
    pub fn question(&mut self) -> Option<Question> {
        if self.random.below(3) == 0 {
            return None;
        }
        let keys: Vec<u64> = (0..1 + self.random.below(12)).map(|_| u64::from(self.random.below(2_000))).collect();
        let first = self.random.below(keys.len() as u32 + 1);
        Some(Question { now: self.now, keys, first, free: self.free.len() as u32 })
    }

    /// Victims wanted so that there is room for the next request.
    pub fn want(&self) -> u32 {
        10_u32.saturating_sub(self.free.len() as u32)
    }

    /// Takes most of the victims; declines some, and what cannot go. Sometimes takes a leaf of its own.
    pub fn evict(&mut self, victims: &[u32]) {
        let now = self.now;
        let mut gone = Vec::new();
        for &id in victims {
            let record = self.records[id as usize].expect("a victim is resident");
            assert_eq!(record.children, 0, "a victim is a leaf");
            self.remove(id);
            gone.push((id, record));
        }
        // The last one named is declined now and then: no other victim is its ancestor.
        if self.random.below(5) == 0
            && let Some((id, record)) = gone.pop()
        {
            self.free.retain(|&free| free != id);
            self.records[id as usize] = Some(record);
            if let Some(parent) = self.records.get_mut(record.parent as usize).and_then(Option::as_mut) {
                parent.children += 1;
            }
            self.events.push(Event::Kept { id, group: 0, now });
        }
        self.evicted += gone.len();
        if self.random.below(7) == 0
            && self.pinned.is_none()
            && let Some(id) = self.some_record()
            && self.records[id as usize].is_some_and(|record| record.children == 0)
        {
            self.remove(id);
            self.events.push(Event::Evicted { id, group: 0, now });
        }
    }

    fn remove(&mut self, id: u32) {
        let record = self.records[id as usize].take().expect("resident");
        if let Some(parent) = self.records.get_mut(record.parent as usize).and_then(Option::as_mut) {
            parent.children -= 1;
        }
        self.free.push(id);
    }

    /// Events from which a successor learns what is there, in place of those that wait.
    pub fn hand_over(&mut self) {
        self.events.clear();
        let mut residents: Vec<(u32, Record)> =
            (0..).zip(&self.records).filter_map(|(id, record)| record.map(|record| (id, record))).collect();
        residents.sort_by_key(|(_, record)| record.order);
        for (id, Record { parent, depth, used: now, .. }) in residents {
            self.events.push(Event::Inserted(Inserted { id, parent, group: 0, namespace: 0, depth, now }));
        }
        if let Some(id) = self.pinned {
            self.events.push(Event::Pinned { id, group: 0, now: self.now });
        }
    }
}

/// Random spans, empty ones and ones with junctions among them.
pub fn spans(seed: u64, count: usize) -> Vec<Span> {
    let mut random = Random(seed);
    let span = |_| {
        let block = BLOCK_TOKENS;
        let start = random.below(40) * block;
        let end = start + random.below(100) * block;
        let matched = start + random.below((end - start) / block + 1) * block;
        let junction = if random.below(2) == 0 { 0 } else { matched };
        let now = u64::from(random.below(1_000_000));
        Span { now, start, end, prompt_tokens: end + random.below(block), matched, junction, block_tokens: block }
    };
    (0..count).map(span).collect()
}
