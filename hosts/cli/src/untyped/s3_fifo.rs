//! S3-FIFO (Yang et al., *FIFO queues are all you need for cache eviction*, SOSP 2023) with the details and the defaults of libCacheSim.

use std::collections::VecDeque;

use super::{
    flat::{Access, Flat},
    list::List,
};

/// Share of the capacity that the queue of new keys has.
const SMALL: f64 = 0.1;
/// Keys remembered after they went, as a share of the capacity.
const GHOSTS: f64 = 0.9;
/// Hits that a new key needs to move to the main queue instead of going.
const MOVE_HITS: u8 = 2;
/// Hits that are counted at most: a key of the main queue is spared as often.
const MOST_HITS: u8 = 3;

/// Two queues: new keys go through a small one, and those that are hit there, or soon after they went, into the main one.
pub(super) struct S3Fifo {
    capacity: usize,
    small_capacity: usize,
    small: VecDeque<u32>,
    main: VecDeque<u32>,
    /// Keys that left the small queue without enough hits; not in the cache.
    ghosts: List,
    ghost_capacity: usize,
    /// Hits of each key since it came into its queue; `None` if it is in none.
    hits: Vec<Option<u8>>,
    /// Until something goes, keys that find the small queue full go into the main one.
    has_evicted: bool,
}

impl S3Fifo {
    /// An empty cache for at most `capacity` (not 0) of the keys below `keys`. With a capacity under 20 nothing is ever kept: a key does not
    /// fit a small queue of one.
    pub(super) fn new(capacity: u32, keys: u32) -> Self {
        let share = |ratio: f64| (f64::from(capacity) * ratio) as usize;
        Self {
            capacity: capacity as usize,
            small_capacity: share(SMALL),
            small: VecDeque::new(),
            main: VecDeque::new(),
            ghosts: List::new(keys),
            ghost_capacity: share(GHOSTS),
            hits: vec![None; keys as usize],
            has_evicted: false,
        }
    }

    fn evict(&mut self) {
        self.has_evicted = true;
        if self.main.len() > self.capacity - self.small_capacity || self.small.is_empty() {
            self.evict_main();
        } else {
            self.evict_small();
        }
    }

    /// The first key of the small queue without enough hits goes. If all have them, all move, and none goes.
    fn evict_small(&mut self) {
        while let Some(key) = self.small.pop_front() {
            let hits = &mut self.hits[key as usize];
            if hits.is_some_and(|hits| hits >= MOVE_HITS) {
                *hits = Some(0);
                self.main.push_back(key);
                continue;
            }
            *hits = None;
            if self.ghost_capacity > 0 {
                if self.ghosts.len() == self.ghost_capacity {
                    self.ghosts.pop_front();
                }
                self.ghosts.push_back(key);
            }
            return;
        }
    }

    /// The first key of the main queue that has used its hits up goes.
    fn evict_main(&mut self) {
        while let Some(key) = self.main.pop_front() {
            let hits = &mut self.hits[key as usize];
            match *hits {
                Some(left @ 1..) => {
                    *hits = Some(left - 1);
                    self.main.push_back(key);
                }
                _ => {
                    *hits = None;
                    return;
                }
            }
        }
    }
}

impl Flat for S3Fifo {
    fn access(&mut self, key: u32) -> Access {
        if let Some(hits) = &mut self.hits[key as usize] {
            *hits = MOST_HITS.min(*hits + 1);
            return Access::Hit;
        }
        let was_ghost = self.ghosts.remove(key);
        if self.small_capacity == 0 {
            return Access::Refused;
        }
        while self.len() >= self.capacity {
            self.evict();
        }
        let queue = if was_ghost {
            &mut self.main
        } else if self.small_capacity == 1 {
            return Access::Refused;
        } else if !self.has_evicted && self.small.len() >= self.small_capacity {
            &mut self.main
        } else {
            &mut self.small
        };
        queue.push_back(key);
        self.hits[key as usize] = Some(0);
        Access::Inserted
    }

    fn len(&self) -> usize {
        self.small.len() + self.main.len()
    }
}
