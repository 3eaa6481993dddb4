//! The prefix tree against a plain model: a map from paths to what a reader of the rules would note down.

use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;
use reprise_core::{
    Digest,
    policy::NO_PARENT,
    tree::{Found, Placement, Refusal, Restored, Tree},
};

/// Name of the block at the end of a path of small numbers.
fn name(path: &[u8]) -> Digest {
    let mut digest = Digest([0; 32]);
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for (place, &step) in path.iter().enumerate() {
        hash = (hash ^ u64::from(step)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(17);
        digest.0[8 + place % 24] ^= step + 1;
    }
    digest.0[..8].copy_from_slice(&hash.to_le_bytes());
    digest
}

fn names(path: &[u8]) -> Vec<Digest> {
    (1..=path.len()).map(|depth| name(&path[..depth])).collect()
}

#[derive(Clone, Debug, Default)]
struct Block {
    last_use: u64,
    pins: u32,
    /// Last use and depth.
    checkpoint: Option<(u64, u32)>,
}

#[derive(Debug)]
struct Model {
    blocks: BTreeMap<Vec<u8>, Block>,
    capacity: usize,
    checkpoint_capacity: usize,
}

impl Model {
    fn resident(&self, path: &[u8]) -> usize {
        (1..=path.len()).take_while(|&depth| self.blocks.contains_key(&path[..depth])).count()
    }

    fn touch(&mut self, path: &[u8], now: u64) {
        for depth in 1..=self.resident(path) {
            self.blocks.get_mut(&path[..depth]).unwrap().last_use = now;
        }
    }

    fn is_leaf(&self, path: &[u8]) -> bool {
        !self.blocks.keys().any(|other| other.len() > path.len() && other.starts_with(path))
    }

    fn oldest_leaf(&self) -> Option<Vec<u8>> {
        let free = self.blocks.iter().filter(|(path, block)| self.is_leaf(path) && block.pins == 0);
        free.min_by_key(|(_, block)| block.last_use).map(|(path, _)| path.clone())
    }

    fn place_checkpoint(&mut self, path: &[u8], now: u64) -> bool {
        if self.blocks[path].checkpoint.is_some() || self.checkpoint_capacity == 0 {
            return false;
        }
        let held = || self.blocks.iter().filter_map(|(path, block)| Some((block.checkpoint?, path.clone())));
        if held().count() == self.checkpoint_capacity {
            let (_, oldest) = held().min().unwrap();
            self.blocks.get_mut(&oldest).unwrap().checkpoint = None;
        }
        self.blocks.get_mut(path).unwrap().checkpoint = Some((now, path.len() as u32));
        true
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// A request as a replay makes it: touch what is there, insert the rest, evicting leaf by leaf; then keep windows.
    Request {
        path: Vec<u8>,
        windows: Vec<u8>,
    },
    Pin(Vec<u8>),
    Unpin(usize),
    Load(Vec<u8>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let path = || prop::collection::vec(0..3_u8, 1..9);
    let step = prop_oneof![
        6 => (path(), prop::collection::vec(1..9_u8, 0..3)).prop_map(|(path, windows)| Step::Request { path, windows }),
        1 => path().prop_map(Step::Pin),
        1 => (0..4_usize).prop_map(Step::Unpin),
        2 => path().prop_map(Step::Load),
    ];
    prop::collection::vec(step, 1..60)
}

struct Both {
    tree: Tree,
    model: Model,
    pins: Vec<(u32, Vec<u8>)>,
}

impl Both {
    fn new(capacity: u32, checkpoint_capacity: u32) -> Self {
        Self {
            tree: Tree::new(capacity, checkpoint_capacity),
            model: Model {
                blocks: BTreeMap::new(),
                capacity: capacity as usize,
                checkpoint_capacity: checkpoint_capacity as usize,
            },
            pins: Vec::new(),
        }
    }

    fn request(&mut self, path: &[u8], windows: &[u8], now: u64) {
        let found = self.tree.look_up(&names(path));
        assert_eq!(found.depth as usize, self.model.resident(path), "galloping finds what a walk finds");
        if found.depth > 0 {
            self.tree.touch(found.id, now);
            self.tree.pin(found.id);
        }
        self.model.touch(path, now);
        let mut parent = found.id;
        let mut stored = found.depth as usize;
        for depth in found.depth as usize + 1..=path.len() {
            let held: Vec<u8> = path[..depth - 1].to_vec();
            if let Some(block) = self.model.blocks.get_mut(&held) {
                block.pins += 1;
            }
            if self.tree.vacant() == 0 {
                assert_eq!(self.model.blocks.len(), self.model.capacity);
                let victim = self.tree.least_recent();
                let expected = self.model.oldest_leaf();
                assert_eq!(victim.map(|id| self.tree.digest(id)), expected.as_deref().map(name), "the same leaf goes");
                if let (Some(id), Some(victim)) = (victim, expected) {
                    let removed = self.tree.remove(id).unwrap();
                    let block = self.model.blocks.remove(&victim).unwrap();
                    assert_eq!(
                        removed.orphan.is_some(),
                        block.checkpoint.is_some(),
                        "a checkpoint goes with its block"
                    );
                }
            }
            let id = self.tree.insert(parent, name(&path[..depth]), 0, now, false);
            if let Some(block) = self.model.blocks.get_mut(&held) {
                block.pins -= 1;
            }
            assert_eq!(id.is_some(), self.model.blocks.len() < self.model.capacity);
            let Some(id) = id else { break };
            if depth > found.depth as usize + 1 {
                self.tree.unpin(parent);
            }
            self.tree.pin(id);
            self.model.blocks.insert(path[..depth].to_vec(), Block { last_use: now, ..Block::default() });
            parent = id;
            stored = depth;
        }
        if stored > found.depth as usize {
            self.tree.unpin(parent);
        }
        if found.depth > 0 {
            self.tree.unpin(found.id);
        }
        for &depth in windows {
            if usize::from(depth) <= stored {
                let at = &path[..usize::from(depth)];
                let id = self.tree.find(&name(at)).unwrap();
                let placed = matches!(self.tree.place_checkpoint(id, now, false), Placement::Placed { .. });
                assert_eq!(placed, self.model.place_checkpoint(at, now));
            }
        }
    }

    fn load(&mut self, path: &[u8], now: u64) {
        let found = self.tree.look_up(&names(path));
        let expected =
            (1..=self.model.resident(path)).rev().find(|&d| self.model.blocks[&path[..d]].checkpoint.is_some());
        let checkpoint = self.tree.deepest_checkpoint(&names(path)[..found.depth as usize]);
        assert_eq!(checkpoint.map(|(_, at)| at.depth as usize), expected, "the deepest checkpoint of the path");
        if let (Some((slot, _)), Some(depth)) = (checkpoint, expected) {
            self.tree.touch_checkpoint(slot, now);
            self.model.blocks.get_mut(&path[..depth]).unwrap().checkpoint = Some((now, depth as u32));
        }
    }

    fn check(&self) {
        assert_eq!(self.tree.len() as usize, self.model.blocks.len());
        let checkpoints = self.model.blocks.values().filter(|block| block.checkpoint.is_some()).count();
        assert_eq!(self.tree.checkpoints().len() as usize, checkpoints);
        for (path, block) in &self.model.blocks {
            let id = self.tree.find(&name(path)).expect("resident in both");
            assert_eq!(self.tree.checkpoint_of(id).is_some(), block.checkpoint.is_some());
            let expected = match (self.model.is_leaf(path), block.pins) {
                (false, _) => Err(Refusal::NotLeaf),
                (true, 0) => Ok(()),
                (true, _) => Err(Refusal::Pinned),
            };
            assert_eq!(self.tree.check_evictable(id), expected);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_sequence_of_requests_makes_the_tree_differ_from_the_rules(
        capacity in 1..14_u32,
        checkpoints in 0..5_u32,
        steps in steps(),
    ) {
        let mut both = Both::new(capacity, checkpoints);
        for (now, step) in (1..).zip(steps) {
            match step {
                Step::Request { path, windows } => both.request(&path, &windows, now),
                Step::Pin(path) => {
                    let found = both.tree.look_up(&names(&path));
                    if found.depth > 0 {
                        both.tree.pin(found.id);
                        let held = path[..found.depth as usize].to_vec();
                        both.model.blocks.get_mut(&held).unwrap().pins += 1;
                        both.pins.push((found.id, held));
                    }
                }
                Step::Unpin(which) if !both.pins.is_empty() => {
                    let (id, held) = both.pins.remove(which % both.pins.len());
                    both.tree.unpin(id);
                    both.model.blocks.get_mut(&held).unwrap().pins -= 1;
                }
                Step::Unpin(_) => {}
                Step::Load(path) => both.load(&path, now),
            }
            both.check();
        }
    }

    /// What a store keeps is the tree's blocks in any order with some lost: what comes back is closed under prefixes, keeps its
    /// slots, and the rest of the slots is free.
    #[test]
    fn a_restored_tree_never_holds_a_block_without_its_path(
        paths in prop::collection::vec(prop::collection::vec(0..3_u8, 1..6), 1..12),
        lost in prop::collection::vec(any::<bool>(), 64),
    ) {
        let mut both = Both::new(64, 8);
        for (now, path) in (1..).zip(&paths) {
            both.request(path, &[path.len() as u8], now);
        }
        let mut stored: Vec<(u32, Restored)> = Vec::new();
        let mut kept = HashMap::new();
        for (place, entry) in both.tree.entries().iter().enumerate() {
            if !lost[place % lost.len()] {
                let parent = (entry.parent != NO_PARENT).then(|| both.tree.digest(entry.parent));
                let digest = both.tree.digest(entry.id);
                let block = Restored {
                    digest, parent, depth: entry.depth, namespace: 0, last_use: entry.last_use, inserted: place as u64 + 1,
                };
                stored.push((entry.id, block));
                kept.insert(digest, entry.id);
            }
        }
        let mut tree = Tree::new(64, 8);
        let dropped = tree.restore(stored.iter().copied());
        prop_assert_eq!(tree.len() as usize + dropped.len(), stored.len());
        for path in both.model.blocks.keys() {
            let whole = (1..=path.len()).all(|depth| kept.contains_key(&name(&path[..depth])));
            let id = tree.find(&name(path));
            prop_assert_eq!(id, whole.then(|| kept[&name(path)]), "{:?}", path);
        }
        let mut free = 64 - tree.len();
        while let Some(id) = tree.insert(NO_PARENT, name(&[9, (free % 251) as u8, (free / 251) as u8]), 0, 99, false) {
            prop_assert!(id < 64);
            free -= 1;
        }
        prop_assert_eq!(free, 0, "every slot that holds nothing can be used");
    }
}

#[test]
fn a_look_up_of_nothing_finds_nothing() {
    let tree = Tree::new(4, 4);
    assert_eq!(tree.look_up(&[]), Found::NOTHING);
    assert_eq!(tree.look_up(&names(&[1, 2, 3])), Found::NOTHING);
    assert_eq!(tree.deepest_checkpoint(&[]), None);
    assert_eq!(tree.check_evictable(0), Err(Refusal::Absent));
}

#[test]
fn a_million_blocks_do_not_take_more_than_120_bytes_each() {
    const BLOCKS: u32 = 1_000_000;
    let mut tree = Tree::new(BLOCKS, 0);
    for path in 0..BLOCKS / 100 {
        let mut parent = NO_PARENT;
        for depth in 0..100_u32 {
            let mut digest = Digest([0; 32]);
            let hash = u64::from(path * 100 + depth + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            digest.0[..8].copy_from_slice(&hash.to_le_bytes());
            parent = tree.insert(parent, digest, 0, u64::from(path), false).unwrap();
        }
    }
    let bytes = tree.memory_bytes() as f64 / f64::from(BLOCKS);
    assert!(bytes <= 120.0, "{bytes} bytes a block");
}

/// A checkpoint that turns out unreadable while a lease holds it: nobody is offered it, its slot is not given to another, and it goes
/// with the lease.
#[test]
fn a_dropped_checkpoint_does_not_give_its_slot_away_while_it_is_held() {
    let mut tree = Tree::new(4, 1);
    let first = tree.insert(NO_PARENT, name(&[1]), 0, 1, false).unwrap();
    let second = tree.insert(NO_PARENT, name(&[2]), 0, 1, false).unwrap();
    assert_eq!(tree.place_checkpoint(first, 1, false), Placement::Placed { slot: 0, evicted: None });
    tree.pin_checkpoint(0);
    tree.drop_checkpoint(first);
    assert_eq!(tree.deepest_checkpoint(&[name(&[1])]), None);
    assert_eq!(tree.place_checkpoint(second, 2, false), Placement::NoRoom);
    tree.touch_checkpoint(0, 3);
    tree.unpin_checkpoint(0);
    assert_eq!((tree.checkpoint_of(first), tree.checkpoints().len()), (None, 0));
    assert_eq!(tree.place_checkpoint(second, 4, false), Placement::Placed { slot: 0, evicted: None });
}

proptest! {
    /// Limits that come and go: what is too much goes when it is taken out, and nothing comes in above them.
    #[test]
    fn no_more_is_kept_than_the_limits_allow_once_they_are_met(
        limits in prop::collection::vec((0..12_u32, 0..6_u32), 1..20),
        names in prop::collection::vec(any::<u8>(), 1..60),
    ) {
        let mut tree = Tree::new(10, 5);
        let mut steps = limits.iter().cycle();
        for (now, name) in (1..).zip(names) {
            let &(blocks, checkpoints) = steps.next().unwrap();
            tree.set_limits(blocks, checkpoints);
            prop_assert_eq!((tree.limit(), tree.checkpoints().limit()), (blocks.min(10), checkpoints.min(5)));
            while tree.len() > tree.limit() {
                let leaf = tree.least_recent().unwrap();
                tree.remove(leaf).unwrap();
            }
            while tree.trim_checkpoint() {}
            prop_assert!(tree.checkpoints().len() <= tree.checkpoints().limit());
            let digest = Digest([name; 32]);
            let had_room = tree.vacant() > 0;
            let is_new = tree.find(&digest).is_none();
            let inserted = tree.insert(NO_PARENT, digest, 0, now, false);
            prop_assert_eq!(inserted.is_some(), had_room && is_new);
            if let Some(id) = inserted {
                prop_assert!(id < tree.capacity());
                let placed = tree.place_checkpoint(id, now, false);
                prop_assert_eq!(placed == Placement::NoRoom, tree.checkpoints().limit() == 0);
            }
            prop_assert!(tree.len() <= tree.limit() && tree.checkpoints().len() <= tree.checkpoints().limit());
        }
    }
}
