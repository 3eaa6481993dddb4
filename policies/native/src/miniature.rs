//! A cache in small, on paper: what a ranking would have found, tried on a sample of the blocks.
//!
//! A block is in the sample or not by its key, so that the sample of a prompt is a path itself, and a cache of an n-th of the records
//! under an n-th of the blocks behaves like the whole (spatial sampling: Waldspurger and others, "Efficient MRC construction with
//! SHARDS", FAST 2015).

use alloc::{collections::BTreeMap, vec::Vec};

use reprise_core::policy::{Inserted, NO_PARENT};

use crate::ranking::Ranking;

/// Memory: about 100 bytes per block.
#[derive(Clone, Debug, Default)]
pub struct Miniature {
    blocks: u32,
    ids: BTreeMap<u64, u32>,
    keys: Vec<u64>,
    free: Vec<u32>,
    ranking: Ranking,
    victims: Vec<u32>,
}

impl Miniature {
    /// An empty one for so many blocks.
    pub fn new(blocks: u32) -> Self {
        Self { blocks, free: (0..blocks).rev().collect(), ..Self::default() }
    }

    /// Looks a path up, root first, as keys with their depth in the prompt, and puts in what is missing. Returns how many of its
    /// leading blocks were found.
    pub fn serve(&mut self, path: &[(u64, u32)], now: u64, rank: impl Fn(u32) -> u64) -> usize {
        let mut tip = NO_PARENT;
        let mut found = 0;
        for (key, _) in path {
            let Some(&id) = self.ids.get(key) else { break };
            tip = id;
            found += 1;
        }
        if let Some(&(_, depth)) = path[..found].last() {
            self.ranking.set_rank(tip, rank(depth));
            self.ranking.pin(tip);
        }
        let missing = &path[found..];
        let want = missing.len().min(self.blocks as usize).saturating_sub(self.free.len());
        self.make_room(want as u32);
        let mut parent = tip;
        for &(key, depth) in missing {
            let Some(id) = self.free.pop() else { break };
            if self.keys.len() <= id as usize {
                self.keys.resize(id as usize + 1, 0);
            }
            self.keys[id as usize] = key;
            self.ids.insert(key, id);
            let block = Inserted { id, parent, group: 0, namespace: 0, depth, now };
            self.ranking.insert(&block, rank(depth));
            parent = id;
        }
        self.ranking.unpin(tip);
        found
    }

    fn make_room(&mut self, want: u32) {
        self.victims.clear();
        self.ranking.name_victims(want, &mut self.victims, u64::max);
        for &id in &self.victims {
            self.ids.remove(&self.keys[id as usize]);
            self.free.push(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a list of blocks with their parents and last uses.
        #[test]
        fn what_is_found_is_not_other_than_in_a_plain_cache(
            requests in prop::collection::vec((0..4_u64, 0..4_u64, 1..7_usize), 1..200),
        ) {
            let mut miniature = Miniature::new(10);
            let mut plain: Vec<(u64, Option<u64>, u64)> = Vec::new();
            for (now, (root, branch, blocks)) in (1..).zip(requests) {
                let key = |block: usize| root << 16 | if block > 2 { branch << 8 } else { 0 } | block as u64 | 1 << 32;
                let path: Vec<(u64, u32)> = (0..blocks).map(|block| (key(block), block as u32 + 1)).collect();
                let resident = |plain: &[(u64, Option<u64>, u64)], key| plain.iter().any(|&(other, ..)| other == key);
                let found = path.iter().take_while(|&&(key, _)| resident(&plain, key)).count();
                prop_assert_eq!(miniature.serve(&path, now, |_| now), found);
                for (key, _, used) in &mut plain {
                    if path[..found].iter().any(|(other, _)| other == key) {
                        *used = now;
                    }
                }
                while plain.len() + blocks - found > 10 {
                    let leaf = |&&(key, _, used): &&(u64, Option<u64>, u64)| {
                        used < now && plain.iter().all(|&(_, parent, _)| parent != Some(key))
                    };
                    let (gone, ..) = *plain.iter().filter(leaf).min_by_key(|&&(_, _, used)| used).unwrap();
                    plain.retain(|&(key, ..)| key != gone);
                }
                for block in found..blocks {
                    plain.push((path[block].0, block.checked_sub(1).map(|above| path[above].0), now));
                }
                prop_assert_eq!(miniature.ids.len(), plain.len());
            }
        }
    }
}
