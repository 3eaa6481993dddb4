//! Leases: what a plan counts on stays until its lease ends.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Names a lease: a plain value that can cross a process boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LeaseId(pub(crate) u64);

/// One path, held by its deepest block, and the checkpoint that the plan loads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lease {
    pub block: u32,
    pub checkpoint: Option<u32>,
    pub blocks: u32,
    pub deadline: u64,
}

/// Leases in force, bounded in what they hold.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    leases: BTreeMap<u64, Lease>,
    deadlines: BTreeMap<(u64, u64), ()>,
    next: u64,
    blocks: u64,
    checkpoints: u64,
}

impl Leases {
    /// Takes a lease in. Paths share blocks, so `blocks` is an upper bound of what is held.
    pub fn insert(&mut self, lease: Lease) -> LeaseId {
        let id = self.next;
        self.next += 1;
        self.blocks += u64::from(lease.blocks);
        self.checkpoints += u64::from(lease.checkpoint.is_some());
        self.deadlines.insert((lease.deadline, id), ());
        self.leases.insert(id, lease);
        LeaseId(id)
    }

    /// Ends a lease; `None` if it has ended already.
    pub fn remove(&mut self, id: LeaseId) -> Option<Lease> {
        let lease = self.leases.remove(&id.0)?;
        self.deadlines.remove(&(lease.deadline, id.0));
        self.blocks -= u64::from(lease.blocks);
        self.checkpoints -= u64::from(lease.checkpoint.is_some());
        Some(lease)
    }

    /// A lease whose deadline is before `now`.
    pub fn expired(&self, now: u64) -> Option<LeaseId> {
        let (&(deadline, id), ()) = self.deadlines.first_key_value()?;
        (deadline < now).then_some(LeaseId(id))
    }

    /// Leases in force.
    pub fn len(&self) -> usize {
        self.leases.len()
    }

    /// At most how many blocks are held.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// At most how many checkpoints are held.
    pub fn checkpoints(&self) -> u64 {
        self.checkpoints
    }
}
