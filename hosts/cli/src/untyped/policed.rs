//! A pool whose victims a cache policy names, and whose new blocks it may refuse.
//!
//! The policy is told and asked as by a cache: the found path is used and pinned, then comes the question of admission, then one for as
//! many victims as room is needed, then what came in, then the path is unpinned. What it answers is checked.
//! What a policy leaves undone, leaf LRU does; one that breaks a rule is replaced by it from there on.

use reprise::{PolicyError, RunningCachePolicy};
use reprise_core::policy::{Admission, CachePolicy, Event, EventBuffer, Events, GroupInfo, Inserted, NO_PARENT};
use reprise_policies::Lru;

use super::{PolicyFailure, Pool, Served};

/// The number of the only group.
const GROUP: u8 = 0;
/// In place of a slot: there is none. A block without one is not in the pool.
const NONE: u32 = NO_PARENT;
/// Events that may wait before a policy is told even when no room is needed.
const BATCH_EVENTS: usize = 256;

/// The group that a policy ranks: blocks of `block_tokens` tokens in a tree. A pool counts blocks, so a record is one byte: there is no
/// model that says more.
pub(super) fn group(capacity_blocks: u32, block_tokens: u32) -> GroupInfo {
    GroupInfo {
        group: GROUP,
        name: "history".to_owned(),
        record_bytes: 1,
        capacity_records: capacity_blocks.into(),
        recompute_tokens: block_tokens,
        tree: true,
    }
}

/// The pool.
pub(super) struct Policed<'a> {
    group: GroupInfo,
    /// The slot of each block, which is the id that policies know it by.
    slots: Vec<u32>,
    rows: Vec<Row>,
    vacant: Vec<u32>,
    /// Resident blocks without children.
    leaves: usize,
    was_full: bool,
    /// The number of the request, from 1.
    now: u64,
    policy: Option<RunningCachePolicy>,
    failure: Option<PolicyFailure>,
    name: &'a str,
    /// What the policy has not been told.
    untold: EventBuffer,
    /// Leaf LRU, from when it was first needed. It is told everything at once.
    understudy: Option<Lru>,
    victims: Vec<u32>,
    verdicts: Vec<bool>,
    keys: Vec<u64>,
}

#[derive(Clone, Copy)]
struct Row {
    block: u32,
    parent: u32,
    /// In blocks, from 1; 0 if the slot is vacant.
    depth: u32,
    children: u32,
    /// The request that used it last, or a child that is gone.
    last_use: u64,
}

impl<'a> Policed<'a> {
    /// An empty pool for at most `group.capacity_records` (not 0, below 2^32) of the blocks below `blocks`. `started` is the policy named
    /// `name`, or how it failed at once.
    pub(super) fn new(
        group: GroupInfo,
        blocks: u32,
        name: &'a str,
        started: Result<RunningCachePolicy, PolicyError>,
    ) -> Self {
        let slots = group.capacity_records.min(blocks.into()) as u32;
        let mut pool = Self {
            slots: vec![NONE; blocks as usize],
            rows: vec![Row { block: 0, parent: NONE, depth: 0, children: 0, last_use: 0 }; slots as usize],
            vacant: (0..slots).rev().collect(),
            leaves: 0,
            was_full: false,
            now: 0,
            policy: None,
            failure: None,
            name,
            untold: EventBuffer::with_capacity(BATCH_EVENTS),
            understudy: None,
            victims: Vec::new(),
            verdicts: Vec::new(),
            keys: Vec::new(),
            group,
        };
        match started {
            Ok(policy) => pool.policy = Some(policy),
            Err(error) => pool.replace_policy(&error),
        }
        pool
    }

    /// Blocks that fit before one must go. A pool that is larger than all blocks together is never full.
    fn room(&self) -> u64 {
        self.group.capacity_records - (self.rows.len() - self.vacant.len()) as u64
    }

    /// Tells the policy, and leaf LRU if that is at work.
    fn tell(&mut self, event: Event) {
        if self.policy.is_some() {
            self.untold.push(event);
        }
        self.tell_understudy(event);
    }

    fn tell_understudy(&mut self, event: Event) {
        if let Some(understudy) = &mut self.understudy {
            understudy.step(Events::new(&event.pack()), 0, &mut Vec::new());
        }
    }

    /// How many of the `missing` last blocks of a path may come in, as far as the policy says.
    fn admitted(&mut self, path: &[u32], missing: usize) -> usize {
        let free = self.room() as u32; // no more than the capacity, which is below 2^32
        let Some(policy) = self.policy.as_mut().filter(|policy| policy.asks_admission()) else { return missing };
        self.keys.clear();
        self.keys.extend(path.iter().map(|&block| key(block)));
        let first = (path.len() - missing) as u32; // a path has fewer than 2^32 blocks
        let question = Admission { now: self.now, group: GROUP, keys: &self.keys, first, free };
        let told = match self.untold.is_empty() {
            true => Ok(()),
            false => policy.step(self.untold.words(), 0, &mut self.victims),
        };
        self.untold.clear();
        match told.and_then(|()| policy.admit(&question, &mut self.verdicts)) {
            Ok(admitted) => admitted,
            Err(error) => {
                self.replace_policy(&error);
                missing
            }
        }
    }

    /// Makes room for `want` blocks beside the protected one, or as far as leaves may go. With nothing wanted, sees to it that no more than
    /// a batch of events waits.
    fn make_room(&mut self, want: u32, protected: u32) {
        let mut missing = want;
        if let Some(policy) = &mut self.policy
            && (want > 0 || self.untold.len() >= BATCH_EVENTS)
        {
            let answer = policy.step(self.untold.words(), want, &mut self.victims);
            self.untold.clear();
            let checked = answer.and_then(|()| self.evict_named(protected, &mut missing));
            if let Err(error) = checked {
                self.replace_policy(&error);
            }
        }
        self.fill_up(missing, protected);
    }

    /// Evicts what the policy named, up to the first that may not go.
    fn evict_named(&mut self, protected: u32, missing: &mut u32) -> Result<(), PolicyError> {
        for index in 0..self.victims.len() {
            let slot = self.victims[index];
            if let Some(reason) = self.why_not(slot, protected) {
                return Err(PolicyError::Answer(format!("victim {slot}: {reason}")));
            }
            self.remove(slot);
            self.tell_understudy(Event::Evicted { id: slot, group: GROUP, now: self.now });
            *missing -= 1;
        }
        Ok(())
    }

    /// Why a slot may not be emptied; `None` if it may.
    fn why_not(&self, slot: u32, protected: u32) -> Option<&'static str> {
        match self.rows.get(slot as usize) {
            None | Some(Row { depth: 0, .. }) => Some("not resident"),
            Some(Row { children: 0, .. }) if slot == protected => Some("pinned"),
            Some(Row { children: 0, .. }) => None,
            Some(_) => Some("not a leaf"),
        }
    }

    /// Has leaf LRU evict `missing` blocks, or as many as may go.
    fn fill_up(&mut self, missing: u32, protected: u32) {
        let is_protected_leaf = protected != NONE && self.rows[protected as usize].children == 0;
        if missing == 0 || self.leaves == usize::from(is_protected_leaf) {
            return;
        }
        if self.understudy.is_none() {
            self.call_understudy(protected);
        }
        let mut victims = std::mem::take(&mut self.victims);
        victims.clear();
        if let Some(understudy) = &mut self.understudy {
            understudy.step(Events::default(), missing, &mut victims);
        }
        for &slot in &victims {
            self.remove(slot);
            if self.policy.is_some() {
                self.untold.push(Event::Evicted { id: slot, group: GROUP, now: self.now });
            }
        }
        self.victims = victims;
    }

    /// Begins leaf LRU with what is resident, as a successor in a cache is told.
    fn call_understudy(&mut self, protected: u32) {
        // A parent's number is smaller than its child's, so this is an order of insertion.
        let resident = self.slots.iter().filter(|&&slot| slot != NONE);
        let mut events = EventBuffer::default();
        for &slot in resident {
            let Row { parent, depth, last_use, .. } = self.rows[slot as usize];
            events.push(Event::Inserted(Inserted {
                id: slot,
                parent,
                group: GROUP,
                namespace: 0,
                depth,
                now: last_use,
            }));
        }
        if protected != NONE {
            events.push(Event::Pinned { id: protected, group: GROUP, now: self.now });
        }
        let mut lru = Lru::default();
        lru.attach(std::slice::from_ref(&self.group));
        lru.step(events.events(), 0, &mut Vec::new());
        self.understudy = Some(lru);
    }

    /// Leaf LRU decides from now on.
    fn replace_policy(&mut self, error: &PolicyError) {
        self.policy = None;
        self.untold.clear();
        self.failure =
            Some(PolicyFailure { policy: self.name.to_owned(), request: self.now, error: error.to_string() });
    }

    /// Takes a leaf out of the books.
    fn remove(&mut self, slot: u32) {
        let Row { block, parent, last_use, .. } = self.rows[slot as usize];
        self.rows[slot as usize].depth = 0;
        self.slots[block as usize] = NONE;
        self.vacant.push(slot);
        self.leaves -= 1;
        if parent != NONE {
            let above = &mut self.rows[parent as usize];
            above.children -= 1;
            above.last_use = above.last_use.max(last_use);
            self.leaves += usize::from(above.children == 0);
        }
    }

    /// Puts a block behind the block in the slot `parent`. Returns its slot; `None` if the pool is full.
    fn insert(&mut self, block: u32, parent: u32, depth: u32) -> Option<u32> {
        if self.room() == 0 {
            return None;
        }
        let slot = self.vacant.pop()?;
        self.rows[slot as usize] = Row { block, parent, depth, children: 0, last_use: self.now };
        self.slots[block as usize] = slot;
        self.leaves += 1;
        if parent != NONE {
            let above = &mut self.rows[parent as usize];
            self.leaves -= usize::from(above.children == 0);
            above.children += 1;
        }
        self.was_full |= self.room() == 0;
        self.tell(Event::Inserted(Inserted { id: slot, parent, group: GROUP, namespace: 0, depth, now: self.now }));
        Some(slot)
    }

    /// Inserts the blocks of `path` from `found` on behind the block in the slot `tip`, as far as there is room. Returns how many came in.
    fn insert_path(&mut self, path: &[u32], found: usize, mut tip: u32) -> usize {
        for (written, (&block, depth)) in path[found..].iter().zip(found as u32 + 1..).enumerate() {
            let Some(slot) = self.insert(block, tip, depth) else {
                // The simulator protects what was found, not what came in. Nothing else being left, the block that came in last makes
                // room for its own child, which then has no parent and stays out.
                if written > 0 {
                    self.remove(tip);
                    self.tell(Event::Evicted { id: tip, group: GROUP, now: self.now });
                }
                return written;
            };
            tip = slot;
        }
        path.len() - found
    }
}

impl Pool for Policed<'_> {
    fn serve(&mut self, path: &[u32]) -> Served {
        self.now += 1;
        let now = self.now;
        let found = path.iter().take_while(|&&block| self.slots[block as usize] != NONE).count();
        let missing = path.len() - found;
        let tip = path[..found].last().map_or(NONE, |&block| self.slots[block as usize]);
        if found > 0 {
            self.rows[tip as usize].last_use = now;
            self.tell(Event::Used { id: tip, group: GROUP, depth: found as u32, now });
            self.tell(Event::Pinned { id: tip, group: GROUP, now });
        }
        let admitted = self.admitted(path, missing);
        let want = (admitted as u64).saturating_sub(self.room());
        self.make_room(want as u32, tip); // a path has fewer than 2^32 blocks
        let written = self.insert_path(&path[..found + admitted], found, tip);
        if found > 0 {
            self.tell(Event::Unpinned { id: tip, group: GROUP, now });
        }
        Served { leading: found, hits: found, written }
    }

    fn was_full(&self) -> bool {
        self.was_full
    }

    fn failure(&mut self) -> Option<PolicyFailure> {
        self.failure.take()
    }
}

/// A key that stands for a block wherever it appears in the trace. Blocks are numbered in order of first appearance; the numbers are mixed
/// without loss, so that no two are equal and policies may take any bits of a key (the finalizer of SplitMix64).
fn key(block: u32) -> u64 {
    let mut mixed = (u64::from(block) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}
