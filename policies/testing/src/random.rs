//! Random requests: what a cache goes through in a long day, the same for the same seed.

use crate::cache::{CAPACITY, CacheHarness};

/// Numbers by a linear congruential generator.
pub(crate) struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(bound)) as u32
    }

    fn one_of(&mut self, ids: &[u32]) -> Option<u32> {
        (!ids.is_empty()).then(|| ids[self.below(ids.len() as u32) as usize])
    }
}

impl CacheHarness {
    /// Runs random requests and checks every answer: paths are used, lengthened and leased, records damaged, and now and then other
    /// requests come in between a question and its answer. Returns all victims in order, so that two policies can be compared: the
    /// same seed and the same victims give the same requests.
    #[track_caller]
    pub fn random_requests(&mut self, seed: u64, requests: u32) -> Vec<u32> {
        let mut random = Random::new(seed);
        let mut gone = Vec::new();
        for _ in 0..requests {
            let resident = self.resident();
            if let Some(pinned) = resident.iter().copied().find(|&id| self.is_pinned(id))
                && random.below(2) == 0
            {
                self.unpin(pinned);
            }
            let below = random.one_of(&resident).filter(|_| random.below(3) > 0);
            if let Some(id) = below {
                self.touch(id);
                if random.below(5) == 0 {
                    self.pin(id);
                }
            }
            let blocks = 1 + random.below(9);
            let free = CAPACITY - resident.len() as u32;
            if free < blocks {
                gone.extend(self.make_room(&mut random, blocks - free, below));
            }
            if random.below(7) == 0 {
                self.damage(&mut random);
            }
            // What the request builds upon may have gone meanwhile.
            let parent = below.filter(|&id| self.resident().contains(&id));
            let room = CAPACITY - self.resident().len() as u32;
            self.insert_path(parent, blocks.min(room));
        }
        gone
    }

    /// Asks for victims; in every third case with another request in between.
    #[track_caller]
    fn make_room(&mut self, random: &mut Random, want: u32, below: Option<u32>) -> Vec<u32> {
        let disturbed = random.below(3) == 0;
        self.victims_while(want, |host| {
            let resident = host.resident();
            if !disturbed {
                return;
            }
            match (random.below(3), random.one_of(&resident)) {
                (0, Some(id)) => host.pin(id),
                (1, Some(id)) if (resident.len() as u32) < CAPACITY => drop(host.insert(id)),
                _ => {
                    if let Some(id) = below {
                        host.touch(id);
                    }
                }
            }
        })
    }

    /// The host takes a leaf out, as it does when a record cannot be read.
    fn damage(&mut self, random: &mut Random) {
        let resident = self.resident();
        if let Some(id) = random.one_of(&resident).filter(|&id| self.may_go(id)) {
            self.evict(id);
        }
    }
}
