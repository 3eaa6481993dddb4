//! Who may do what with which slot: the caller's side of the store's promise.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers from a seed (SplitMix64).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

#[derive(Clone, Copy, Default)]
struct Slot {
    /// The record that it holds, or gets, or held last; 0 if there never was one.
    number: u64,
    is_resident: bool,
    /// Somebody puts into it or frees it.
    is_claimed: bool,
    holds: u32,
}

/// A record to be read.
pub struct Reading {
    pub slot: u32,
    pub number: u64,
    /// The record stays until the reading is over.
    pub is_held: bool,
}

/// The slots of a group.
pub struct Book {
    slots: Mutex<Vec<Slot>>,
    numbers: AtomicU64,
}

impl Book {
    pub fn new(slots: u32) -> Self {
        Self { slots: Mutex::new(vec![Slot::default(); slots as usize]), numbers: AtomicU64::new(1) }
    }

    /// Claims some slots that pass `fits`, beginning anywhere, and changes them.
    fn claim(
        &self,
        count: usize,
        random: &mut Random,
        fits: fn(&Slot) -> bool,
        change: impl Fn(&mut Slot),
    ) -> Vec<u32> {
        let mut slots = self.slots.lock().unwrap();
        let len = slots.len();
        let start = random.below(len as u64) as usize;
        let fitting = (start..start + len).map(|at| at % len).filter(|at| !slots[*at].is_claimed && fits(&slots[*at]));
        let claimed: Vec<usize> = fitting.take(count).collect();
        for at in &claimed {
            slots[*at].is_claimed = true;
            change(&mut slots[*at]);
        }
        claimed.into_iter().map(|at| at as u32).collect()
    }

    /// Free slots, with the numbers of the records that are to be put there.
    pub fn claim_free(&self, count: usize, random: &mut Random) -> Vec<(u32, u64)> {
        let number = |slot: &mut Slot| slot.number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let claimed = self.claim(count, random, |slot| !slot.is_resident, number);
        let slots = self.slots.lock().unwrap();
        claimed.into_iter().map(|slot| (slot, slots[slot as usize].number)).collect()
    }

    /// Slots that hold a record which nobody holds on to, unless most are free.
    pub fn claim_resident(&self, count: usize, random: &mut Random) -> Vec<u32> {
        let slots = self.slots.lock().unwrap();
        let is_wanted = slots.iter().filter(|slot| slot.is_resident).count() > slots.len() / 2;
        drop(slots);
        if !is_wanted {
            return Vec::new();
        }
        self.claim(count, random, |slot| slot.is_resident && slot.holds == 0, |_| ())
    }

    /// The put into a slot, or its freeing, is done.
    pub fn settle(&self, slot: u32) {
        let slot = &mut self.slots.lock().unwrap()[slot as usize];
        slot.is_claimed = false;
        slot.is_resident = !slot.is_resident;
    }

    /// Records to be read. Of those that are resident half are held, so that they stay.
    pub fn choose(&self, count: usize, random: &mut Random) -> Vec<Reading> {
        let mut slots = self.slots.lock().unwrap();
        let chosen = (0..count).map(|_| {
            let at = random.below(slots.len() as u64) as usize;
            let slot = &mut slots[at];
            let is_held = slot.is_resident && !slot.is_claimed && random.below(2) == 0;
            slot.holds += u32::from(is_held);
            Reading { slot: at as u32, number: slot.number, is_held }
        });
        chosen.collect()
    }

    /// These readings are over.
    pub fn let_go(&self, readings: &[Reading]) {
        let mut slots = self.slots.lock().unwrap();
        readings.iter().for_each(|reading| slots[reading.slot as usize].holds -= u32::from(reading.is_held));
    }

    /// Slots and the records they hold, in order.
    pub fn into_resident(self) -> Vec<(u32, u64)> {
        let slots = self.slots.into_inner().unwrap();
        (0..).zip(slots).filter(|(_, slot)| slot.is_resident).map(|(at, slot)| (at, slot.number)).collect()
    }
}
