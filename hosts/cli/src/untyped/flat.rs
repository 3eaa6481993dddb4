//! Caches that know no tree: every block of a path is a key of its own, asked for and put in by itself, as web caches are simulated. They
//! give the hits of libCacheSim on the same keys.

use super::{Pool, Served, list::List};

/// What became of a request for a key.
pub(super) enum Access {
    /// It was there.
    Hit,
    /// It was not, and is now.
    Inserted,
    /// It was not, and is not now.
    Refused,
}

/// A cache of keys.
pub(super) trait Flat {
    /// Asks for a key, and puts it in if it is not there.
    fn access(&mut self, key: u32) -> Access;

    /// Keys in the cache.
    fn len(&self) -> usize;
}

/// A flat cache as a pool of blocks.
pub(super) struct FlatPool<C> {
    cache: C,
    capacity: usize,
    was_full: bool,
}

impl<C: Flat> FlatPool<C> {
    /// `cache` holds at most `capacity` keys.
    pub(super) fn new(cache: C, capacity: u32) -> Self {
        Self { cache, capacity: capacity as usize, was_full: false }
    }
}

impl<C: Flat> Pool for FlatPool<C> {
    fn serve(&mut self, path: &[u32]) -> Served {
        let mut served = Served::default();
        for (index, &block) in path.iter().enumerate() {
            match self.cache.access(block) {
                Access::Hit => {
                    // A prompt goes on from the blocks before the first that is missing.
                    served.leading += usize::from(served.hits == index);
                    served.hits += 1;
                }
                Access::Inserted => {
                    served.written += 1;
                    self.was_full |= self.cache.len() == self.capacity;
                }
                Access::Refused => {}
            }
        }
        served
    }

    fn was_full(&self) -> bool {
        self.was_full
    }
}

/// Least recently used first.
pub(super) struct FlatLru {
    capacity: usize,
    /// Every key in the cache, the one that was used last the longest ago in front.
    recent: List,
}

impl FlatLru {
    /// An empty cache for at most `capacity` (not 0) of the keys below `keys`.
    pub(super) fn new(capacity: u32, keys: u32) -> Self {
        Self { capacity: capacity as usize, recent: List::new(keys) }
    }
}

impl Flat for FlatLru {
    fn access(&mut self, key: u32) -> Access {
        let hit = self.recent.remove(key);
        if !hit && self.recent.len() == self.capacity {
            self.recent.pop_front();
        }
        self.recent.push_back(key);
        if hit { Access::Hit } else { Access::Inserted }
    }

    fn len(&self) -> usize {
        self.recent.len()
    }
}
