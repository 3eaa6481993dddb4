//! What every leaf policy keeps: parents, children, pins, and the order of the leaves that may go.

use alloc::vec::Vec;

use reprise_core::{
    policy::{Inserted, NO_PARENT},
    tree::RankHeap,
};

#[derive(Clone, Copy, Debug)]
struct Row {
    parent: u32,
    children: u32,
    pins: u32,
    resident: bool,
    rank: u64,
}

const VACANT: Row = Row { parent: NO_PARENT, children: 0, pins: 0, resident: false, rank: 0 };

/// Leaves by rank, lowest first; a block becomes a leaf when its last child goes.
///
/// An id that the host never inserted is ignored: a policy does not trap on a host's mistake.
#[derive(Clone, Debug, Default)]
pub struct Ranking {
    rows: Vec<Row>,
    leaves: RankHeap<u64>,
}

impl Ranking {
    /// A block came in behind its parent, with this rank.
    #[inline]
    pub fn insert(&mut self, block: &Inserted, rank: u64) {
        let Inserted { id, parent, .. } = *block;
        if self.rows.len() <= id as usize {
            self.rows.resize(id as usize + 1, VACANT);
        }
        self.rows[id as usize] = Row { parent, children: 0, pins: 0, resident: true, rank };
        match self.row(parent) {
            Some(above) => {
                above.children += 1;
                self.leaves.replace(parent, id, rank);
            }
            None => self.leaves.set(id, rank),
        }
    }

    /// A resident block has another rank now.
    #[inline]
    pub fn set_rank(&mut self, id: u32, rank: u64) {
        let Some(row) = self.row(id) else { return };
        row.rank = rank;
        if row.children == 0 && row.pins == 0 {
            self.leaves.set(id, rank);
        }
    }

    /// The block and all above it must not go until unpinned.
    #[inline]
    pub fn pin(&mut self, id: u32) {
        let Some(row) = self.row(id) else { return };
        row.pins += 1;
        self.leaves.remove(id);
    }

    /// Takes one pin back.
    #[inline]
    pub fn unpin(&mut self, id: u32) {
        let Some(row) = self.row(id) else { return };
        row.pins = row.pins.saturating_sub(1);
        let rank = row.rank;
        if row.children == 0 && row.pins == 0 {
            self.leaves.set(id, rank);
        }
    }

    /// A block is gone. Its parent's rank becomes `inherit(parent's, child's)`.
    #[inline]
    pub fn remove(&mut self, id: u32, inherit: impl Fn(u64, u64) -> u64) {
        let Some(row) = self.row(id) else { return };
        row.resident = false;
        let (parent, rank) = (row.parent, row.rank);
        let heir = self.row(parent).and_then(|above| {
            above.children = above.children.saturating_sub(1);
            above.rank = inherit(above.rank, rank);
            (above.children == 0 && above.pins == 0).then_some(above.rank)
        });
        match heir {
            Some(rank) => self.leaves.replace(id, parent, rank),
            None => {
                self.leaves.remove(id);
            }
        }
    }

    /// A block that this policy had named stays after all.
    pub fn keep(&mut self, id: u32) {
        let Some(&Row { parent, rank, resident: false, .. }) = self.rows.get(id as usize) else { return };
        self.rows[id as usize].resident = true;
        if let Some(above) = self.row(parent) {
            above.children += 1;
            self.leaves.remove(parent);
        }
        self.set_rank(id, rank);
    }

    /// Appends up to `want` victims, each as if those before it were gone.
    pub fn name_victims(&mut self, want: u32, victims: &mut Vec<u32>, inherit: impl Fn(u64, u64) -> u64) {
        for _ in 0..want {
            let Some((_, id)) = self.leaves.first() else { break };
            victims.push(id);
            self.remove(id, &inherit);
        }
    }

    #[inline]
    fn row(&mut self, id: u32) -> Option<&mut Row> {
        self.rows.get_mut(id as usize).filter(|row| row.resident)
    }
}
