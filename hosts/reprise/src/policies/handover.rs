//! Telling a newcomer everything that is resident while requests go on.
//!
//! The tree is read in slices, each under the ledger's lock, and what happens meanwhile is kept as changes. The two together give
//! what is resident at the end of the reading, exactly: the newcomer is told that, in the order of insertion, and then what
//! happened since, until so little is left that it can be told in the call that takes the seat.

use std::sync::Mutex;

use reprise_core::{
    policy::{Event, EventBuffer, Inserted},
    tree::Entry,
};

use super::{
    PolicyError,
    runner::{CacheRunner, SavedState},
};
use crate::{
    cache::lock,
    ledger::{Change, Changes, HISTORY, Ledger},
};

/// Ids that are looked at under one lock of the ledger: some tens of microseconds.
const SLICE_IDS: u32 = 1024;
/// Events of one call that tells a newcomer.
const SLICE_EVENTS: usize = 4096;
/// Changes that may be left for the call that takes the seat.
const LAST_EVENTS: usize = 256;
/// Rounds of telling what happened during the round before. Each is shorter than the last unless events come in faster than the
/// newcomer takes them; then it has to take them all at once in the end.
const ROUNDS: u32 = 64;

/// What is done between two slices; `false` ends the hand-over.
pub(super) type Between<'a> = &'a mut dyn FnMut() -> bool;

/// A policy that knows everything up to a moment ago, and is kept informed until it takes the seat.
pub(super) struct Newcomer<'a> {
    pub runner: CacheRunner,
    rest: EventBuffer,
    ledger: Following<'a>,
}

/// While it lives, the ledger keeps changes.
struct Following<'a>(&'a Mutex<Ledger>);

impl Drop for Following<'_> {
    fn drop(&mut self) {
        lock(self.0).end_changes();
    }
}

/// An entry, and how many changes there were when it was read.
struct Read {
    entry: Entry,
    changes_before: usize,
}

impl<'a> Newcomer<'a> {
    /// Tells a fresh policy what a predecessor saved, and then everything resident. At most one newcomer at a time.
    pub fn told(
        mut runner: CacheRunner,
        saved: Option<&SavedState>,
        ledger: &'a Mutex<Ledger>,
        between: Between<'_>,
    ) -> Result<Self, PolicyError> {
        if let Some((schema, bytes)) = saved {
            runner.load(*schema, bytes)?;
        }
        let following = Following(ledger);
        let mut events = read(ledger, SLICE_IDS, between)?;
        for round in 0.. {
            let mut since = EventBuffer::default();
            // What happens meanwhile is fetched at each slice: a long list that grows would be moved by a request, with the ledger locked.
            let mut fetch = || {
                let changes = lock(ledger).take_changes();
                since.append(&told_events(&changes));
            };
            tell(&mut runner, &events, &mut || {
                fetch();
                between()
            })?;
            fetch();
            events = since;
            if events.len() <= LAST_EVENTS || round == ROUNDS {
                break;
            }
        }
        Ok(Self { runner, rest: events, ledger: following })
    }

    /// Tells the rest. `at_the_end` is called when there is nothing more to tell, with the ledger locked: from then on the ledger's
    /// own events are for this policy.
    pub fn take_over(mut self, at_the_end: impl FnOnce(&mut Ledger)) -> Result<CacheRunner, PolicyError> {
        let mut ledger = lock(self.ledger.0);
        self.rest.append(&told_events(&ledger.take_changes()));
        at_the_end(&mut ledger);
        ledger.recording = true;
        drop(ledger);
        if !self.rest.is_empty() {
            self.runner.step(self.rest.words(), 0, &mut Vec::new())?;
        }
        Ok(self.runner)
    }
}

/// Hands events over in calls of bounded length; in one call, if there are none: what fails at once is to fail here.
fn tell(runner: &mut CacheRunner, events: &EventBuffer, between: Between<'_>) -> Result<(), PolicyError> {
    if events.is_empty() {
        runner.tell(&[])?;
    }
    for words in events.words().chunks(SLICE_EVENTS * reprise_core::policy::EVENT_WORDS) {
        runner.tell(words)?;
        if !between() {
            return Err(PolicyError::Closing);
        }
    }
    Ok(())
}

/// What policies are told of `changes`.
fn told_events(changes: &Changes) -> EventBuffer {
    let mut events = EventBuffer::default();
    for change in changes.iter() {
        if let Change::Event(event) = change {
            events.push(*event);
        }
    }
    events
}

/// Everything resident at the moment of return; changes from that moment on stay with the ledger.
fn read(ledger: &Mutex<Ledger>, slice_ids: u32, between: Between<'_>) -> Result<EventBuffer, PolicyError> {
    let (insertions, slots, blocks) = {
        let mut ledger = lock(ledger);
        ledger.begin_changes();
        (ledger.tree.insertions(), ledger.tree.slots_used(), ledger.tree.len())
    };
    // Room for all at once, here and below: growing, tens of megabytes would be moved in the address space of the requests.
    let mut reads = Vec::with_capacity(blocks as usize);
    let mut changes: Vec<Change> = Vec::new();
    let mut next = 0_u32;
    while next < slots {
        if next > 0 && !between() {
            return Err(PolicyError::Closing);
        }
        let end = next.saturating_add(slice_ids).min(slots);
        let mut ledger = lock(ledger);
        let since = ledger.take_changes();
        let changes_before = changes.len() + since.len();
        // What came in since the beginning is in the changes, with all that happened to it.
        let old = ledger.tree.entries_among(next..end).filter(|entry| entry.inserted <= insertions);
        reads.extend(old.map(|entry| Read { entry, changes_before }));
        drop(ledger);
        changes.extend(since.iter());
        next = end;
    }
    Ok(introduction(&Settled::of(reads, insertions, &changes).into_entries()))
}

/// What is resident, by id.
struct Settled(Vec<Option<Read>>);

impl Settled {
    /// What is resident after `changes`, the first of which found `insertions` made, given what was read on the way.
    fn of(reads: Vec<Read>, mut insertions: u64, changes: &[Change]) -> Self {
        let last = reads.iter().map(|read| read.entry.id).max().unwrap_or(0);
        let mut settled = Self(Vec::with_capacity(last as usize + 1));
        for read in reads {
            settled.put(read);
        }
        for (index, change) in changes.iter().enumerate() {
            match *change {
                Change::Event(Event::Inserted(Inserted { id, parent, namespace, depth, now, .. })) => {
                    insertions += 1;
                    let entry = Entry { id, parent, depth, namespace, last_use: now, pins: 0, inserted: insertions };
                    settled.put(Read { entry, changes_before: index });
                }
                Change::Event(Event::Evicted { id, .. }) => {
                    if settled.get(id, index).is_some() {
                        settled.0[id as usize] = None;
                    }
                }
                Change::Event(Event::Used { id, now: last_use, .. }) | Change::Inherited { id, last_use } => {
                    if let Some(entry) = settled.get(id, index) {
                        entry.last_use = entry.last_use.max(last_use);
                    }
                }
                Change::Event(Event::Pinned { id, .. }) => {
                    if let Some(entry) = settled.get(id, index) {
                        entry.pins += 1;
                    }
                }
                Change::Event(Event::Unpinned { id, .. }) => {
                    if let Some(entry) = settled.get(id, index) {
                        entry.pins -= 1;
                    }
                }
                Change::Event(Event::Kept { .. }) => {}
            }
        }
        settled
    }

    fn put(&mut self, read: Read) {
        let id = read.entry.id as usize;
        if self.0.len() <= id {
            self.0.resize_with(id + 1, || None);
        }
        self.0[id] = Some(read);
    }

    /// The block `id`, if it was there before change `index` and does not know of it yet.
    fn get(&mut self, id: u32, index: usize) -> Option<&mut Entry> {
        let read = self.0.get_mut(id as usize)?.as_mut()?;
        (index >= read.changes_before).then_some(&mut read.entry)
    }

    /// All of it, in the order of insertion.
    fn into_entries(self) -> Vec<Entry> {
        let mut entries = Vec::with_capacity(self.0.len());
        entries.extend(self.0.into_iter().flatten().map(|read| read.entry));
        entries.sort_unstable_by_key(Entry::order);
        entries
    }
}

/// What is resident as events: blocks in the order of insertion, then what holds them.
fn introduction(entries: &[Entry]) -> EventBuffer {
    let mut events = EventBuffer::with_capacity(entries.len() + entries.len() / 8);
    for &Entry { id, parent, depth, namespace, last_use: now, .. } in entries {
        events.push(Event::Inserted(Inserted { id, parent, group: HISTORY, namespace, depth, now }));
    }
    for &Entry { id, pins, last_use: now, .. } in entries {
        for _ in 0..pins {
            events.push(Event::Pinned { id, group: HISTORY, now });
        }
    }
    events
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;
    use reprise_core::{
        Digest,
        policy::NO_PARENT,
        tree::{Found, Tree},
    };

    use super::*;
    use crate::ledger::NewBlock;

    /// Something that happens in the books; numbers are taken modulo what there is.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Insert(u32),
        Use(u32),
        Pin(u32),
        Unpin(u32),
        Evict { choice: u32, named: bool },
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => any::<u32>().prop_map(Step::Insert),
            2 => any::<u32>().prop_map(Step::Use),
            1 => any::<u32>().prop_map(Step::Pin),
            1 => any::<u32>().prop_map(Step::Unpin),
            3 => (any::<u32>(), any::<bool>()).prop_map(|(choice, named)| Step::Evict { choice, named }),
        ]
    }

    /// Books with a clock.
    struct Books {
        ledger: Mutex<Ledger>,
        now: Cell<u64>,
    }

    impl Books {
        fn new() -> Self {
            let mut ledger = Ledger::new(Tree::new(64, 0), false);
            ledger.recording = true;
            Self { ledger: Mutex::new(ledger), now: Cell::new(0) }
        }

        fn take(&self, step: Step) {
            let now = self.now.get() + 1;
            self.now.set(now);
            let mut ledger = lock(&self.ledger);
            let entries = ledger.tree.entries();
            let any = |choice: u32| entries.get(choice as usize % entries.len().max(1));
            match step {
                Step::Insert(choice) => {
                    let parent = any(choice).filter(|_| choice % 5 > 0).map_or(NO_PARENT, |entry| entry.id);
                    let mut digest = Digest::default();
                    digest.0[..8].copy_from_slice(&now.to_le_bytes());
                    ledger.insert(&NewBlock { parent, digest, namespace: choice as u16 % 3, pending: false }, now);
                }
                Step::Use(choice) => {
                    if let Some(entry) = any(choice) {
                        ledger.touch(Found { id: entry.id, depth: entry.depth }, now);
                    }
                }
                Step::Pin(choice) => {
                    if let Some(entry) = any(choice) {
                        ledger.pin(entry.id, now);
                    }
                }
                Step::Unpin(choice) => {
                    let pinned: Vec<u32> =
                        entries.iter().filter(|entry| entry.pins > 0).map(|entry| entry.id).collect();
                    if let Some(&id) = pinned.get(choice as usize % pinned.len().max(1)) {
                        ledger.unpin(id, now);
                    }
                }
                Step::Evict { choice, named } => {
                    let leaves: Vec<u32> = entries
                        .iter()
                        .map(|entry| entry.id)
                        .filter(|&id| ledger.tree.check_evictable(id).is_ok())
                        .collect();
                    if let Some(&id) = leaves.get(choice as usize % leaves.len().max(1)) {
                        ledger.evict(id, now, named).unwrap();
                    }
                }
            }
        }
    }

    proptest! {
        /// Whatever happens between the slices, the newcomer is told what it would be told if nothing had.
        #[test]
        fn a_hand_over_in_slices_does_not_tell_anything_else_than_one_at_once(
            before in prop::collection::vec(step(), 0..120),
            during in prop::collection::vec(prop::collection::vec(step(), 0..12), 0..24),
            slice_ids in 1_u32..9,
        ) {
            let books = Books::new();
            before.into_iter().for_each(|step| books.take(step));
            let mut during = during.into_iter();
            let mut between = || {
                during.next().unwrap_or_default().into_iter().for_each(|step| books.take(step));
                true
            };
            let told = read(&books.ledger, slice_ids, &mut between).unwrap();
            let at_once = lock(&books.ledger).tree.entries();
            let at_once = introduction(&at_once);
            prop_assert_eq!(told.words(), at_once.words());
        }
    }
}
