//! The prefix tree: which blocks are resident, in which order they may go, and which of them end in a checkpoint.
//!
//! A node is a block of the `history` group; its id is dense and is the slot its record lies in. What is resident is closed
//! under prefixes, so a look-up gallops and bisects over the digests of a prompt instead of walking them. A touch marks
//! only the deepest block of a path: ancestors are implied, and a block that loses its last child takes over the child's
//! last use if that is later. The order of leaves by last use is always kept, so that a victim can be named at once when
//! a policy cannot.

mod checkpoints;
mod heap;
mod index;
mod inventory;
mod lookup;
mod node;

use alloc::vec::Vec;

use crate::{Digest, policy::NO_PARENT};

pub use checkpoints::{Checkpoints, Placement};
pub use heap::RankHeap;
pub use index::Index;
pub use inventory::{Entry, Kept, Restored};
pub use lookup::Found;
use node::{Identity, Links, NONE};

/// Why a block may not be evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No resident block has this id.
    #[error("no such record")]
    Absent,
    /// Blocks behind it are resident.
    #[error("not a leaf")]
    NotLeaf,
    /// A lease, a save in flight or the current request holds it.
    #[error("leased")]
    Pinned,
}

/// A block that left the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    /// Its name.
    pub digest: Digest,
    /// The id of the block before it, or [`NO_PARENT`].
    pub parent: u32,
    /// The checkpoint at its end that was dropped with it.
    pub orphan: Option<u32>,
}

/// Resident blocks with their checkpoints, bounded by a number of slots for each.
///
/// Memory per block: 80 bytes in the slab, 4 to 20 in the order of leaves; and 12 to 24 in the index, by capacity.
#[derive(Debug)]
pub struct Tree {
    links: Vec<Links>,
    identities: Vec<Identity>,
    index: Index,
    free: Vec<u32>,
    leaves: RankHeap<u64>,
    checkpoints: Checkpoints,
    capacity: u32,
    /// Blocks that may be resident now.
    limit: u32,
    insertions: u64,
}

impl Tree {
    /// An empty tree for at most `capacity` blocks and `checkpoint_capacity` checkpoints.
    pub fn new(capacity: u32, checkpoint_capacity: u32) -> Self {
        Self {
            links: Vec::new(),
            identities: Vec::new(),
            index: Index::new(capacity),
            free: Vec::new(),
            leaves: RankHeap::new(),
            checkpoints: Checkpoints::new(checkpoint_capacity),
            capacity,
            limit: capacity,
            insertions: 0,
        }
    }

    /// Resident blocks.
    pub fn len(&self) -> u32 {
        self.links.len() as u32 - self.free.len() as u32
    }

    /// Whether no block is resident.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Blocks that may be resident at once.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Blocks that can come in before one must go.
    pub fn vacant(&self) -> u32 {
        self.limit.saturating_sub(self.len())
    }

    /// Blocks that may be resident now: the capacity, unless a lower limit was set.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Lets no more than so many blocks and checkpoints be kept from now on, each at most the capacity. What is too much stays until it is
    /// taken out: blocks by whoever decides that, checkpoints with [`Tree::trim_checkpoint`].
    pub fn set_limits(&mut self, blocks: u32, checkpoints: u32) {
        self.limit = blocks.min(self.capacity);
        self.checkpoints.set_limit(checkpoints);
    }

    /// If there are more checkpoints than may be kept, takes the one out that goes first and is not held. Returns whether one went.
    pub fn trim_checkpoint(&mut self) -> bool {
        let Some(node) = self.checkpoints.trim() else { return false };
        self.links[node as usize].checkpoint = NONE;
        true
    }

    /// The checkpoints and their order.
    pub fn checkpoints(&self) -> &Checkpoints {
        &self.checkpoints
    }

    /// The slot of the checkpoint at the end of block `id`, readable or not.
    pub fn checkpoint_of(&self, id: u32) -> Option<u32> {
        Some(self.links[id as usize].checkpoint).filter(|&slot| slot != NONE)
    }

    /// Whether a resident block follows block `id`.
    pub fn has_children(&self, id: u32) -> bool {
        self.links[id as usize].children > 0
    }

    /// The name of a resident block.
    pub fn digest(&self, id: u32) -> Digest {
        self.identities[id as usize].digest
    }

    /// The id of the block before `id`, or [`NO_PARENT`].
    pub fn parent(&self, id: u32) -> u32 {
        self.links[id as usize].parent
    }

    /// The depth of block `id`, from 1.
    pub fn depth(&self, id: u32) -> u32 {
        self.identities[id as usize].depth
    }

    /// Marks a path as used at `now`, by its deepest block.
    pub fn touch(&mut self, id: u32, now: u64) {
        let links = &mut self.links[id as usize];
        if now > links.last_use {
            links.last_use = now;
            if links.is_evictable() {
                self.leaves.set(id, now);
            }
        }
    }

    /// Keeps block `id`, and so all blocks above it, from eviction until [`Tree::unpin`].
    pub fn pin(&mut self, id: u32) {
        self.links[id as usize].pins += 1;
        self.leaves.remove(id);
    }

    /// Takes one [`Tree::pin`] back.
    ///
    /// # Panics
    /// When the block holds no pin: pins are owned by guards, so that is a defect.
    pub fn unpin(&mut self, id: u32) {
        let links = &mut self.links[id as usize];
        links.pins = links.pins.checked_sub(1).expect("a pin is taken back once");
        if links.is_evictable() {
            self.leaves.set(id, links.last_use);
        }
    }

    /// Puts a block behind `parent` ([`NO_PARENT`] for the first of a path). Returns its id, or `None` when every slot is
    /// taken or a block of this name is there: a name is never in the tree twice. `pending` blocks are not readable until
    /// [`Tree::set_readable`].
    pub fn insert(&mut self, parent: u32, digest: Digest, namespace: u16, now: u64, pending: bool) -> Option<u32> {
        if self.vacant() == 0 || self.find(&digest).is_some() {
            return None;
        }
        let id = match self.free.pop() {
            Some(id) => id,
            None => {
                self.links.push(Links::VACANT);
                self.identities.push(Identity::VACANT);
                self.links.len() as u32 - 1
            }
        };
        self.occupy(id, parent, digest, namespace, now, pending);
        Some(id)
    }

    fn occupy(&mut self, id: u32, parent: u32, digest: Digest, namespace: u16, now: u64, pending: bool) {
        debug_assert!(self.find(&digest).is_none(), "a name is in the tree once");
        let depth = if parent == NO_PARENT { 1 } else { self.identities[parent as usize].depth + 1 };
        self.links[id as usize] =
            Links { parent, children: 0, checkpoint: NONE, pins: 0, last_use: now, resident: true };
        self.insertions += 1;
        self.identities[id as usize] = Identity { digest, inserted: self.insertions, depth, namespace, pending };
        self.index.insert(digest.short(), id);
        if parent == NO_PARENT {
            self.leaves.set(id, now);
        } else {
            self.links[parent as usize].children += 1;
            self.leaves.replace(parent, id, now);
        }
    }

    /// Whether the record of block `id` is still to be written.
    pub fn is_pending(&self, id: u32) -> bool {
        self.identities[id as usize].pending
    }

    /// Says that the record of block `id` can be read from now on.
    pub fn set_readable(&mut self, id: u32) {
        self.identities[id as usize].pending = false;
    }

    /// Whether block `id` may be evicted now.
    pub fn check_evictable(&self, id: u32) -> Result<(), Refusal> {
        match self.links.get(id as usize) {
            Some(links) if links.resident => {
                if links.children > 0 {
                    Err(Refusal::NotLeaf)
                } else if links.pins > 0 {
                    Err(Refusal::Pinned)
                } else {
                    Ok(())
                }
            }
            _ => Err(Refusal::Absent),
        }
    }

    /// The leaf that was used least recently and is not pinned.
    pub fn least_recent(&self) -> Option<u32> {
        self.leaves.first().map(|(_, id)| id)
    }

    /// Takes a block out, and the checkpoint at its end.
    ///
    /// # Errors
    /// When the block is not there, not a leaf, or pinned; nothing has changed then.
    pub fn remove(&mut self, id: u32) -> Result<Removed, Refusal> {
        self.check_evictable(id)?;
        let Links { parent, checkpoint, last_use, .. } = self.links[id as usize];
        let digest = self.identities[id as usize].digest;
        let orphan = (checkpoint != NONE).then(|| {
            self.checkpoints.remove(checkpoint);
            checkpoint
        });
        self.index.remove(digest.short(), id);
        self.links[id as usize] = Links::VACANT;
        self.free.push(id);
        let mut heir = None;
        if parent != NO_PARENT {
            let above = &mut self.links[parent as usize];
            above.children -= 1;
            above.last_use = above.last_use.max(last_use);
            heir = above.is_evictable().then_some(above.last_use);
        }
        match heir {
            Some(last_use) => self.leaves.replace(id, parent, last_use),
            None => {
                self.leaves.remove(id);
            }
        }
        Ok(Removed { digest, parent, orphan })
    }

    /// Keeps a window at the end of block `id`. Makes room by the order of [`Checkpoints`].
    pub fn place_checkpoint(&mut self, id: u32, now: u64, pending: bool) -> Placement {
        if self.links[id as usize].checkpoint != NONE {
            return Placement::Present;
        }
        let Identity { digest, depth, .. } = self.identities[id as usize];
        let placement = self.checkpoints.place(digest.short(), id, depth, now, pending);
        if let Placement::Placed { slot, evicted } = placement {
            if let Some(node) = evicted {
                self.links[node as usize].checkpoint = NONE;
            }
            self.links[id as usize].checkpoint = slot;
        }
        placement
    }

    /// Takes the checkpoint at the end of block `id` out, for instance because it could not be written or read. One that is pinned goes
    /// with its last pin, and is not offered until then.
    pub fn drop_checkpoint(&mut self, id: u32) {
        let links = &mut self.links[id as usize];
        if links.checkpoint != NONE && self.checkpoints.drop_or_doom(links.checkpoint) {
            links.checkpoint = NONE;
        }
    }

    /// Marks a checkpoint as loaded at `now`.
    pub fn touch_checkpoint(&mut self, slot: u32, now: u64) {
        self.checkpoints.touch(slot, now);
    }

    /// Keeps a checkpoint from eviction until [`Tree::unpin_checkpoint`]. Its block must be pinned, too, or it may go with it.
    pub fn pin_checkpoint(&mut self, slot: u32) {
        self.checkpoints.pin(slot);
    }

    /// Takes one [`Tree::pin_checkpoint`] back.
    ///
    /// # Panics
    /// When the checkpoint holds no pin.
    pub fn unpin_checkpoint(&mut self, slot: u32) {
        if self.checkpoints.unpin(slot) {
            let block = self.checkpoints.block(slot);
            self.checkpoints.remove(slot);
            self.links[block as usize].checkpoint = NONE;
        }
    }

    /// Says that the window in `slot` can be read from now on.
    pub fn set_checkpoint_readable(&mut self, slot: u32) {
        self.checkpoints.set_readable(slot);
    }

    /// Bytes of memory held by the tree's own structures.
    pub fn memory_bytes(&self) -> usize {
        self.links.capacity() * size_of::<Links>()
            + self.identities.capacity() * size_of::<Identity>()
            + self.index.memory_bytes()
            + self.free.capacity() * size_of::<u32>()
            + self.leaves.memory_bytes()
    }
}
