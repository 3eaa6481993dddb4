//! A node of the tree in two columns: what a walk reads, and what names it.

use crate::{Digest, policy::NO_PARENT};

/// No checkpoint.
pub(super) const NONE: u32 = u32::MAX;

/// What walks and evictions read: 32 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Links {
    /// The block before, or [`NO_PARENT`].
    pub parent: u32,
    /// Resident blocks right behind.
    pub children: u32,
    /// Slot of the checkpoint at this block's end, or [`NONE`].
    pub checkpoint: u32,
    /// Guards that hold this block.
    pub pins: u32,
    /// Logical time at which a path ended here, or was evicted down to here after its use.
    pub last_use: u64,
    /// Whether the slot holds a block at all.
    pub resident: bool,
}

impl Links {
    /// A slot without a block.
    pub const VACANT: Self =
        Self { parent: NO_PARENT, children: 0, checkpoint: NONE, pins: 0, last_use: 0, resident: false };

    /// A leaf that nothing holds.
    #[inline]
    pub const fn is_evictable(&self) -> bool {
        self.children == 0 && self.pins == 0
    }
}

/// What names a block: 48 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    /// Name of the prefix that ends with this block.
    pub digest: Digest,
    /// Number of this insertion: the order for hand-overs.
    pub inserted: u64,
    /// From 1.
    pub depth: u32,
    /// Index the host assigned.
    pub namespace: u16,
    /// Inserted, not yet written.
    pub pending: bool,
}

impl Identity {
    /// A slot without a block.
    pub const VACANT: Self = Self { digest: Digest([0; 32]), inserted: 0, depth: 0, namespace: 0, pending: false };
}
