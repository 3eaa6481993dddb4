//! What every leaf policy keeps: parents, children, pins, and the order of the leaves that may go.

use alloc::vec::Vec;

use reprise_core::policy::{GroupInfo, Inserted, NO_PARENT};

use crate::order::Order;

/// Records of all groups together, as far as room is made for them at once.
pub fn reserved(groups: &[GroupInfo]) -> usize {
    let records = groups.iter().fold(0_u64, |sum, group| sum.saturating_add(group.capacity_records));
    usize::try_from(records.min(MOST_RESERVED)).unwrap_or(0)
}

#[derive(Clone, Copy, Debug)]
struct Row {
    parent: u32,
    children: u32,
    /// With [`GONE`] if the block is not resident.
    pins: u32,
}

const GONE: u32 = 1 << 31;

/// Records that room is made for at once at most: more than that may never come, and would not fit the memory of a policy.
const MOST_RESERVED: u64 = 1 << 22;

/// Leaves by rank, lowest first; a block becomes a leaf when its last child goes.
///
/// An id that the host never inserted is ignored: a policy does not trap on a host's mistake. Children and pins of a block that was
/// named are counted like any other's: other requests go on while a policy answers, so it may be kept with both.
///
/// Memory: 28 bytes per id, and 20 per leaf whose rank is neither the highest nor the lowest when it comes in; classes: see [`Order`].
#[derive(Clone, Debug, Default)]
pub struct Ranking<const CLASSES: usize = 1> {
    rows: Vec<Row>,
    leaves: Order<CLASSES>,
}

impl<const CLASSES: usize> Ranking<CLASSES> {
    /// Makes room for all records of the groups at once: growing on the way would take up to three times the memory, and one unlucky
    /// request would wait while everything is moved. Memory that is not touched costs nothing.
    pub fn reserve(&mut self, groups: &[GroupInfo]) {
        let records = reserved(groups);
        self.rows.reserve_exact(records.saturating_sub(self.rows.len()));
        self.leaves.reserve(records);
    }

    /// A block came in behind its parent, with this rank.
    #[inline]
    pub fn insert(&mut self, block: &Inserted, rank: u64) {
        let Inserted { id, parent, .. } = *block;
        if self.rows.len() <= id as usize {
            self.rows.resize(id as usize + 1, Row { parent: NO_PARENT, children: 0, pins: GONE });
        }
        self.rows[id as usize] = Row { parent, children: 0, pins: 0 };
        self.leaves.admit(id);
        if let Some(above) = self.row(parent) {
            above.children += 1;
            self.leaves.remove(parent);
        }
        self.leaves.set(id, rank);
    }

    /// A block has another rank now.
    #[inline]
    pub fn set_rank(&mut self, id: u32, rank: u64) {
        match self.row(id) {
            Some(Row { children: 0, pins: 0, .. }) => self.leaves.set(id, rank),
            Some(_) => self.leaves.note(id, rank),
            None => {}
        }
    }

    /// The block and all above it must not go until unpinned.
    #[inline]
    pub fn pin(&mut self, id: u32) {
        let Some(row) = self.row(id) else { return };
        if row.pins & !GONE < GONE - 1 {
            row.pins += 1;
        }
        self.leaves.remove(id);
    }

    /// Takes one pin back.
    #[inline]
    pub fn unpin(&mut self, id: u32) {
        let Some(row) = self.row(id) else { return };
        if row.pins & !GONE > 0 {
            row.pins -= 1;
        }
        if row.children == 0 && row.pins == 0 {
            self.leaves.set(id, self.leaves.rank(id));
        }
    }

    /// A block is gone. Its parent's rank becomes `inherit(parent's, child's)`.
    #[inline]
    pub fn remove(&mut self, id: u32, inherit: impl Fn(u64, u64) -> u64) {
        let Some(row) = self.row(id).filter(|row| row.pins & GONE == 0) else { return };
        row.pins |= GONE;
        let parent = row.parent;
        self.leaves.remove(id);
        let Some(above) = self.row(parent) else { return };
        above.children = above.children.saturating_sub(1);
        let may_go = above.children == 0 && above.pins == 0;
        let rank = inherit(self.leaves.rank(parent), self.leaves.rank(id));
        if may_go {
            self.leaves.set(parent, rank);
        } else {
            self.leaves.note(parent, rank);
        }
    }

    /// A block that this policy had named stays after all.
    pub fn keep(&mut self, id: u32) {
        let Some(row) = self.row(id).filter(|row| row.pins & GONE != 0) else { return };
        row.pins &= !GONE;
        let parent = row.parent;
        if let Some(above) = self.row(parent) {
            above.children += 1;
            self.leaves.remove(parent);
        }
        self.set_rank(id, self.leaves.rank(id));
    }

    /// Appends up to `want` victims, each as if those before it were gone.
    pub fn name_victims(&mut self, want: u32, victims: &mut Vec<u32>, inherit: impl Fn(u64, u64) -> u64) {
        for _ in 0..want {
            let Some(id) = self.leaves.first() else { break };
            victims.push(id);
            self.remove(id, &inherit);
        }
    }

    /// The leaf of a class that goes first.
    #[inline]
    pub fn first_of(&self, class: usize) -> Option<u32> {
        self.leaves.first_of(class)
    }

    /// The rank of a block, if this id was ever inserted.
    #[inline]
    pub fn rank(&self, id: u32) -> Option<u64> {
        self.rows.get(id as usize).map(|_| self.leaves.rank(id))
    }

    /// The parent of a block, if this id was ever inserted and is resident.
    #[inline]
    pub fn parent(&self, id: u32) -> Option<u32> {
        self.rows.get(id as usize).filter(|row| row.pins & GONE == 0).map(|row| row.parent)
    }

    #[inline]
    fn row(&mut self, id: u32) -> Option<&mut Row> {
        self.rows.get_mut(id as usize)
    }
}
