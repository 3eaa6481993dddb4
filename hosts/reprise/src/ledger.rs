//! The books of a cache: what is resident, leased and counted, and what policies have not been told yet.
//!
//! Everything here is done under one lock, and nothing here does I/O or calls a policy.

use std::collections::HashSet;

use reprise_core::{
    Digest,
    policy::{Event, EventBuffer, Inserted, NO_PARENT},
    tree::{Found, Refusal, Tree},
};

use crate::{
    counters::Counters,
    group::Group,
    lease::{Lease, LeaseId, Leases},
};

pub(crate) const HISTORY: u8 = Group::History.number();

/// The truth that policies' answers are checked against.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub tree: Tree,
    pub leases: Leases,
    pub counters: Counters,
    /// Events for the eviction policy; kept only while `recording`.
    pub events: EventBuffer,
    /// Whether an eviction policy listens.
    pub recording: bool,
    /// Whether a checkpoint has draft records.
    drafts: bool,
    /// What happened since a newcomer began to read what is resident; `None` while there is no newcomer.
    changes: Option<Changes>,
    /// Changes with every pin, insertion and eviction: an answer to an older version may be stale without being wrong.
    pub version: u64,
    /// Blocks whose record turned out unreadable. They are cut from plans and rewritten by the next save of their path.
    unreadable: HashSet<u32>,
}

impl Ledger {
    pub fn new(tree: Tree, drafts: bool) -> Self {
        Self {
            tree,
            leases: Leases::default(),
            counters: Counters::default(),
            events: EventBuffer::default(),
            recording: false,
            changes: None,
            drafts,
            version: 0,
            unreadable: HashSet::new(),
        }
    }

    fn tell(&mut self, event: Event) {
        self.version += 1;
        if self.recording {
            self.events.push(event);
        }
        if let Some(changes) = &mut self.changes {
            changes.push(Change::Event(event));
        }
    }

    /// Ids of blocks that came in since the policy in the seat was told last.
    pub fn inserted_untold(&self) -> impl Iterator<Item = u32> + '_ {
        self.events.events().into_iter().filter_map(|event| match event {
            Event::Inserted(Inserted { id, .. }) => Some(id),
            _ => None,
        })
    }

    /// Keeps what happens from now on for a newcomer, beside what the policy in the seat is told.
    pub fn begin_changes(&mut self) {
        self.changes = Some(Changes::default());
    }

    /// What happened since this was asked last.
    pub fn take_changes(&mut self) -> Changes {
        self.changes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// There is no newcomer any more.
    pub fn end_changes(&mut self) {
        self.changes = None;
    }

    /// The deepest block at or above `found`, which ends a path that `digests` name, up to which every record can be read.
    pub fn readable(&self, digests: &[Digest], found: Found) -> Found {
        let good = self.tree.readable(found);
        let on_path = |&id: &u32| {
            let depth = self.tree.depth(id);
            (depth <= good.depth && digests[depth as usize - 1] == self.tree.digest(id)).then_some(depth)
        };
        match self.unreadable.iter().filter_map(on_path).min() {
            Some(depth) => self.tree.at_depth(digests, depth - 1),
            None => good,
        }
    }

    /// Whether the record of block `id` is known to be unreadable.
    pub fn is_unreadable(&self, id: u32) -> bool {
        self.unreadable.contains(&id)
    }

    /// Notes that the record of block `id` cannot be read: it was not written, or did not verify.
    pub fn set_unreadable(&mut self, id: u32) {
        self.unreadable.insert(id);
    }

    /// Notes that the record of block `id` is in the store.
    pub fn set_written(&mut self, id: u32) {
        self.tree.set_readable(id);
        self.unreadable.remove(&id);
    }

    /// Marks the path down to `found` as used.
    pub fn touch(&mut self, found: Found, now: u64) {
        if found.depth > 0 {
            self.tree.touch(found.id, now);
            self.tell(Event::Used { id: found.id, group: HISTORY, depth: found.depth, now });
        }
    }

    /// Keeps the path down to block `id`.
    pub fn pin(&mut self, id: u32, now: u64) {
        self.tree.pin(id);
        self.tell(Event::Pinned { id, group: HISTORY, now });
    }

    /// Takes one [`Ledger::pin`] back.
    pub fn unpin(&mut self, id: u32, now: u64) {
        self.tree.unpin(id);
        self.tell(Event::Unpinned { id, group: HISTORY, now });
    }

    /// Puts a block in; `None` if every slot is taken.
    pub fn insert(&mut self, block: &NewBlock, now: u64) -> Option<u32> {
        let NewBlock { parent, digest, namespace, pending } = *block;
        let id = self.tree.insert(parent, digest, namespace, now, pending)?;
        let depth = self.tree.depth(id);
        self.tell(Event::Inserted(Inserted { id, parent, group: HISTORY, namespace, depth, now }));
        Some(id)
    }

    /// Takes a block out, with the checkpoint at its end. `named` says that the policy named it and need not be told.
    pub fn evict(&mut self, id: u32, now: u64, named: bool) -> Result<(), Refusal> {
        let removed = self.tree.remove(id)?;
        if !self.unreadable.is_empty() {
            self.unreadable.remove(&id);
        }
        self.counters.group_mut(Group::History).evicted_records += 1;
        if removed.orphan.is_some() {
            self.counters.group_mut(Group::Window).orphaned_records += 1;
            self.counters.group_mut(Group::Draft).orphaned_records += u64::from(self.drafts);
        }
        let event = Event::Evicted { id, group: HISTORY, now };
        if named {
            self.version += 1;
            // The policy in the seat knows; a newcomer did not name it.
            if let Some(changes) = &mut self.changes {
                changes.push(Change::Event(event));
            }
        } else {
            self.tell(event);
        }
        if let Some(changes) = &mut self.changes
            && removed.parent != NO_PARENT
        {
            changes.push(Change::Inherited { id: removed.parent, last_use: self.tree.last_use(removed.parent) });
        }
        Ok(())
    }

    /// Tells the policy that a block it named stays. A newcomer never named it.
    pub fn keep(&mut self, id: u32, now: u64) {
        self.version += 1;
        if self.recording {
            self.events.push(Event::Kept { id, group: HISTORY, now });
        }
    }

    /// Takes a lease in, unless leases hold `limit_ppm` of a group already.
    pub fn lease(&mut self, lease: Lease, limit_ppm: u32, now: u64) -> Option<LeaseId> {
        let share = |capacity: u32| u64::from(capacity) * u64::from(limit_ppm) / 1_000_000;
        let checkpoints = self.leases.checkpoints() + u64::from(lease.checkpoint.is_some());
        if self.leases.blocks() + u64::from(lease.blocks) > share(self.tree.capacity())
            || checkpoints > share(self.tree.checkpoints().capacity()).max(1)
        {
            return None;
        }
        self.pin(lease.block, now);
        if let Some(slot) = lease.checkpoint {
            self.tree.pin_checkpoint(slot);
        }
        Some(self.leases.insert(lease))
    }

    /// Ends a lease, if it has not ended.
    pub fn end_lease(&mut self, id: LeaseId, now: u64) -> bool {
        let Some(lease) = self.leases.remove(id) else { return false };
        self.unpin(lease.block, now);
        if let Some(slot) = lease.checkpoint {
            self.tree.unpin_checkpoint(slot);
        }
        true
    }

    /// Ends the leases whose deadline has passed.
    pub fn expire_leases(&mut self, now: u64) {
        while let Some(id) = self.leases.expired(now) {
            self.end_lease(id, now);
            self.counters.expired_leases += 1;
        }
    }
}

/// What a newcomer has to know besides what it read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    /// Something that policies are told.
    Event(Event),
    /// Block `id` lost a child, and its last use is now this: policies infer it from the child's eviction, but a newcomer may never
    /// have heard of the child.
    Inherited { id: u32, last_use: u64 },
}

/// Changes in the order in which they happened, in pieces: one long list would be moved as it grows, by a request that holds the ledger.
#[derive(Debug, Default)]
pub(crate) struct Changes(Vec<Vec<Change>>);

impl Changes {
    /// Changes of a piece: less than what an allocator asks the system for.
    const PIECE: usize = 2048;

    fn push(&mut self, change: Change) {
        match self.0.last_mut().filter(|piece| piece.len() < Self::PIECE) {
            Some(piece) => piece.push(change),
            None => {
                let mut piece = Vec::with_capacity(Self::PIECE);
                piece.push(change);
                self.0.push(piece);
            }
        }
    }

    /// All of them, first to last.
    pub fn iter(&self) -> impl Iterator<Item = &Change> {
        self.0.iter().flatten()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }
}

/// A block that is to come in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewBlock {
    /// Id of the block before it, or [`reprise_core::policy::NO_PARENT`].
    pub parent: u32,
    pub digest: Digest,
    pub namespace: u16,
    /// Whether its record is still to be written.
    pub pending: bool,
}
