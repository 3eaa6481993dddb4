//! A four-ary heap over dense ids that knows where each id stands, so that any entry can be moved or removed.

use alloc::vec::Vec;

const ABSENT: u32 = u32::MAX;
const ARITY: usize = 4;

/// Smallest key first; among equal keys the smallest id, so that the order is a function of the entries alone.
///
/// Memory: 4 bytes per id ever seen, plus one entry per id present.
#[derive(Clone, Debug, Default)]
pub struct RankHeap<K> {
    entries: Vec<(K, u32)>,
    places: Vec<u32>,
}

impl<K: Ord + Copy> RankHeap<K> {
    /// An empty heap.
    pub const fn new() -> Self {
        Self { entries: Vec::new(), places: Vec::new() }
    }

    /// How many ids are present.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no id is present.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entry with the smallest key.
    #[inline]
    pub fn first(&self) -> Option<(K, u32)> {
        self.entries.first().copied()
    }

    /// The key of `id`, if present.
    pub fn key(&self, id: u32) -> Option<K> {
        self.place(id).map(|place| self.entries[place].0)
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<(K, u32)>() + self.places.capacity() * size_of::<u32>()
    }

    /// Puts `id` in, or gives it another key.
    #[inline]
    pub fn set(&mut self, id: u32, key: K) {
        match self.place(id) {
            Some(place) => {
                self.entries[place].0 = key;
                self.settle(place);
            }
            None => {
                let place = self.entries.len();
                self.entries.push((key, id));
                self.grow(id);
                self.places[id as usize] = place as u32;
                self.rise(place);
            }
        }
    }

    /// Takes `id` out. Returns whether it was present.
    #[inline]
    pub fn remove(&mut self, id: u32) -> bool {
        let Some(place) = self.place(id) else { return false };
        self.places[id as usize] = ABSENT;
        let last = self.entries.len() - 1;
        let moved = self.entries[last];
        self.entries.truncate(last);
        if place < last {
            self.put(place, moved);
            self.settle(place);
        }
        true
    }

    /// Puts `new` with `key` in the place of `old`: one settling instead of two when a leaf's place in the order passes
    /// to its child or its parent. If `old` is absent, just puts `new` in.
    ///
    /// `new` must not be present.
    #[inline]
    pub fn replace(&mut self, old: u32, new: u32, key: K) {
        let Some(place) = self.place(old) else { return self.set(new, key) };
        debug_assert!(self.place(new).is_none(), "replace puts in an id that is absent");
        self.places[old as usize] = ABSENT;
        self.grow(new);
        self.put(place, (key, new));
        self.settle(place);
    }

    #[inline]
    fn place(&self, id: u32) -> Option<usize> {
        self.places.get(id as usize).filter(|&&place| place != ABSENT).map(|&place| place as usize)
    }

    #[inline]
    fn grow(&mut self, id: u32) {
        if self.places.len() <= id as usize {
            self.places.resize(id as usize + 1, ABSENT);
        }
    }

    #[inline]
    fn put(&mut self, place: usize, entry: (K, u32)) {
        self.entries[place] = entry;
        self.places[entry.1 as usize] = place as u32;
    }

    fn settle(&mut self, place: usize) {
        if place > 0 && self.entries[place] < self.entries[(place - 1) / ARITY] {
            self.rise(place);
        } else {
            self.sink(place);
        }
    }

    fn rise(&mut self, mut place: usize) {
        let entry = self.entries[place];
        while place > 0 {
            let above = (place - 1) / ARITY;
            if self.entries[above] <= entry {
                break;
            }
            self.put(place, self.entries[above]);
            place = above;
        }
        self.put(place, entry);
    }

    fn sink(&mut self, mut place: usize) {
        let entry = self.entries[place];
        loop {
            let below = place * ARITY + 1;
            let end = (below + ARITY).min(self.entries.len());
            let Some(least) = (below..end).min_by_key(|&child| self.entries[child]) else { break };
            if entry <= self.entries[least] {
                break;
            }
            self.put(place, self.entries[least]);
            place = least;
        }
        self.put(place, entry);
    }
}
