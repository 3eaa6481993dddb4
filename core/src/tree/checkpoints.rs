//! Checkpoints in their slots: the one loaded or placed longest ago goes first, the shallower first among equals.

use alloc::vec::Vec;

use super::{Index, RankHeap};

/// What became of a checkpoint that was to be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// There is one at this position already; it is left alone.
    Present,
    /// Not even evicting makes room: the group has no slot, or every slot is held.
    NoRoom,
    /// It has a slot.
    Placed {
        /// The slot.
        slot: u32,
        /// The block whose checkpoint went to make room.
        evicted: Option<u32>,
    },
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Part of the block's name that the index goes by.
    name: u64,
    node: u32,
    depth: u32,
    last_use: u64,
    pins: u32,
    pending: bool,
    /// To be dropped, but held: it goes with its last pin, and nobody is offered it until then.
    doomed: bool,
}

/// The slots of the window group.
#[derive(Debug)]
pub struct Checkpoints {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// From a block's name to the slot of its checkpoint: small beside the tree's, so that a long path is looked through in the
    /// processor's cache.
    names: Index,
    order: RankHeap<(u64, u32)>,
    capacity: u32,
    /// Checkpoints that may be kept now.
    limit: u32,
}

impl Checkpoints {
    pub(super) fn new(capacity: u32) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            names: Index::new(capacity),
            order: RankHeap::new(),
            capacity,
            limit: capacity,
        }
    }

    /// Checkpoints that have a slot.
    pub fn len(&self) -> u32 {
        (self.slots.len() - self.free.len()) as u32
    }

    /// Whether there is no checkpoint.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Checkpoints that may be kept at once.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Checkpoints that may be kept now: the capacity, unless a lower limit was set.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    pub(super) fn set_limit(&mut self, limit: u32) {
        self.limit = limit.min(self.capacity);
    }

    /// The block whose checkpoint is to go because there are more than may be kept; it is taken out.
    pub(super) fn trim(&mut self) -> Option<u32> {
        if self.len() <= self.limit {
            return None;
        }
        let (_, oldest) = self.order.first()?;
        let node = self.slots[oldest as usize].node;
        self.remove(oldest);
        Some(node)
    }

    /// The block at whose end the checkpoint in `slot` lies.
    pub fn block(&self, slot: u32) -> u32 {
        self.slots[slot as usize].node
    }

    /// The slot of a readable checkpoint at the end of a block that goes by `name` and of which `is_same` says that it is the one.
    pub(super) fn find(&self, name: u64, is_same: impl Fn(u32) -> bool) -> Option<u32> {
        let slot = self.names.find(name, |slot| is_same(self.slots[slot as usize].node))?;
        self.is_readable(slot).then_some(slot)
    }

    fn is_readable(&self, slot: u32) -> bool {
        let Slot { pending, doomed, .. } = self.slots[slot as usize];
        !pending && !doomed
    }

    /// Takes the checkpoint out of `slot`, or has it go with its last pin. Returns whether it went.
    pub(super) fn drop_or_doom(&mut self, slot: u32) -> bool {
        let entry = &mut self.slots[slot as usize];
        entry.doomed = entry.pins > 0;
        let goes = !entry.doomed;
        if goes {
            self.remove(slot);
        }
        goes
    }

    pub(super) fn set_readable(&mut self, slot: u32) {
        self.slots[slot as usize].pending = false;
    }

    pub(super) fn place(&mut self, name: u64, node: u32, depth: u32, now: u64, pending: bool) -> Placement {
        let mut evicted = None;
        if self.len() >= self.limit {
            let Some((_, oldest)) = self.order.first().filter(|_| self.len() == self.limit) else {
                return Placement::NoRoom;
            };
            evicted = Some(self.slots[oldest as usize].node);
            self.remove(oldest);
        } else if self.free.is_empty() {
            self.free.push(self.slots.len() as u32);
            self.slots.push(Slot::default());
        }
        let slot = self.free.pop().expect("a slot was freed or made above");
        self.slots[slot as usize] = Slot { name, node, depth, last_use: now, pending, ..Slot::default() };
        self.names.insert(name, slot);
        self.order.set(slot, (now, depth));
        Placement::Placed { slot, evicted }
    }

    pub(super) fn restore(&mut self, slot: u32, name: u64, node: u32, depth: u32, last_use: u64) -> bool {
        if slot >= self.capacity || self.order.key(slot).is_some() {
            return false;
        }
        // A store names its records in the order of slots, so that hardly ever one is passed over and comes later.
        let known = self.slots.len() as u32;
        for vacant in known..slot {
            self.slots.push(Slot::default());
            self.free.push(vacant);
        }
        if slot < known {
            self.free.retain(|&vacant| vacant != slot);
        } else {
            self.slots.push(Slot::default());
        }
        self.slots[slot as usize] = Slot { name, node, depth, last_use, ..Slot::default() };
        self.names.insert(name, slot);
        self.order.set(slot, (last_use, depth));
        true
    }

    pub(super) fn remove(&mut self, slot: u32) {
        self.names.remove(self.slots[slot as usize].name, slot);
        self.order.remove(slot);
        self.free.push(slot);
    }

    pub(super) fn last_use(&self, slot: u32) -> u64 {
        self.slots[slot as usize].last_use
    }

    pub(super) fn touch(&mut self, slot: u32, now: u64) {
        let entry = &mut self.slots[slot as usize];
        entry.last_use = now;
        if entry.pins == 0 {
            self.order.set(slot, (now, entry.depth));
        }
    }

    pub(super) fn pin(&mut self, slot: u32) {
        self.slots[slot as usize].pins += 1;
        self.order.remove(slot);
    }

    /// Returns whether the checkpoint is to go now.
    pub(super) fn unpin(&mut self, slot: u32) -> bool {
        let entry = &mut self.slots[slot as usize];
        entry.pins = entry.pins.checked_sub(1).expect("a pin is taken back once");
        if entry.pins == 0 && !entry.doomed {
            self.order.set(slot, (entry.last_use, entry.depth));
        }
        entry.pins == 0 && entry.doomed
    }
}
