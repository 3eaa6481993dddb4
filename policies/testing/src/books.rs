//! What is resident: the truth that a policy's answers are checked against.

use reprise_core::policy::{Event, Inserted, NO_PARENT};

/// The one group there is.
pub(crate) const GROUP: u8 = 0;

/// A resident record.
#[derive(Clone, Copy, Debug)]
struct Record {
    parent: u32,
    depth: u32,
    children: u32,
    pins: u32,
    /// Number of its insertion.
    order: u64,
    used: u64,
}

/// Records by id.
#[derive(Clone, Debug)]
pub(crate) struct Books {
    records: Vec<Option<Record>>,
    insertions: u64,
}

impl Books {
    pub fn new(capacity: u32) -> Self {
        Self { records: vec![None; capacity as usize], insertions: 0 }
    }

    pub fn resident(&self) -> u32 {
        self.ids().count() as u32
    }

    pub fn ids(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.records).filter_map(|(id, record)| record.map(|_| id))
    }

    fn get(&self, id: u32) -> Option<&Record> {
        self.records.get(id as usize)?.as_ref()
    }

    fn get_mut(&mut self, id: u32) -> Option<&mut Record> {
        self.records.get_mut(id as usize)?.as_mut()
    }

    /// # Panics
    /// When the record is not there: the test is wrong, not the policy.
    #[track_caller]
    fn expect(&mut self, id: u32) -> &mut Record {
        self.get_mut(id).unwrap_or_else(|| panic!("the test speaks of record {id}, which is not resident"))
    }

    /// The lowest free id becomes a record behind `parent`.
    #[track_caller]
    pub fn insert(&mut self, parent: Option<u32>, now: u64) -> Inserted {
        let depth = parent.map_or(1, |parent| {
            let above = self.expect(parent);
            above.children += 1;
            above.depth + 1
        });
        let free = self.records.iter().position(Option::is_none);
        let index = free.expect("the test has filled the harness: make room with `victims` first");
        self.insertions += 1;
        let parent = parent.unwrap_or(NO_PARENT);
        self.records[index] = Some(Record { parent, depth, children: 0, pins: 0, order: self.insertions, used: now });
        Inserted { id: index as u32, parent, group: GROUP, namespace: 0, depth, now }
    }

    /// The path to `id` was used. Returns its depth.
    #[track_caller]
    pub fn touch(&mut self, id: u32, now: u64) -> u32 {
        let depth = self.expect(id).depth;
        let mut next = id;
        while let Some(record) = self.get_mut(next) {
            record.used = now;
            next = record.parent;
        }
        depth
    }

    #[track_caller]
    pub fn pin(&mut self, id: u32) {
        self.expect(id).pins += 1;
    }

    #[track_caller]
    pub fn unpin(&mut self, id: u32) {
        let record = self.expect(id);
        record.pins =
            record.pins.checked_sub(1).unwrap_or_else(|| panic!("the test unpins record {id} once too often"));
    }

    /// Says why a record may not go.
    pub fn check(&self, id: u32) -> Result<(), &'static str> {
        match self.get(id) {
            None => Err("it is not resident"),
            Some(record) if record.pins > 0 => Err("it is pinned"),
            Some(record) if record.children > 0 => Err("it is not a leaf"),
            Some(_) => Ok(()),
        }
    }

    /// Takes a record out, or says why it may not go.
    pub fn evict(&mut self, id: u32) -> Result<(), &'static str> {
        self.check(id)?;
        let parent = self.expect(id).parent;
        self.records[id as usize] = None;
        if let Some(above) = self.get_mut(parent) {
            above.children -= 1;
        }
        Ok(())
    }

    pub fn is_resident(&self, id: u32) -> bool {
        self.get(id).is_some()
    }

    pub fn is_pinned(&self, id: u32) -> bool {
        self.get(id).is_some_and(|record| record.pins > 0)
    }

    /// What a policy is told that takes over: every record in order of insertion, then the pins.
    pub fn introduction(&self, now: u64) -> Vec<Event> {
        let mut residents: Vec<(u32, &Record)> = self.ids().filter_map(|id| Some((id, self.get(id)?))).collect();
        residents.sort_by_key(|(_, record)| record.order);
        let inserted = residents.iter().map(|&(id, &Record { parent, depth, used, .. })| {
            Event::Inserted(Inserted { id, parent, group: GROUP, namespace: 0, depth, now: used })
        });
        let pinned = residents.iter().flat_map(|&(id, record)| {
            std::iter::repeat_n(Event::Pinned { id, group: GROUP, now }, record.pins as usize)
        });
        inserted.chain(pinned).collect()
    }
}
