use alloc::{collections::BTreeMap, string::ToString, vec};

use proptest::prelude::*;
use reprise_core::policy::{EventBuffer, NO_PARENT};

use super::{
    ages::{CELLS, cell},
    *,
};

/// A cache of so many blocks that serves prompts and checks every answer. Blocks are named by the path of bytes that leads to them.
struct Host {
    policy: Auto,
    capacity: usize,
    ids: BTreeMap<Vec<u8>, u32>,
    free: Vec<u32>,
    now: u64,
    events: EventBuffer,
    /// Whether questions are asked; else the policy hears of what comes in only.
    asks: bool,
}

fn key(path: &[u8]) -> u64 {
    path.iter().fold(17, |key: u64, &byte| (key ^ u64::from(byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29))
}

impl Host {
    fn new(capacity: u32, settings: &[(&str, &str)]) -> Self {
        let settings = Settings::parse(Auto::DESCRIPTION.settings, settings.iter().copied()).unwrap();
        let mut policy = Auto::new(&settings);
        policy.attach(&[GroupInfo {
            group: 0,
            name: "history".into(),
            record_bytes: 1,
            capacity_records: capacity.into(),
            recompute_tokens: 1,
            tree: true,
        }]);
        Self {
            policy,
            capacity: capacity as usize,
            ids: BTreeMap::new(),
            free: (0..capacity).rev().collect(),
            now: 0,
            events: EventBuffer::default(),
            asks: true,
        }
    }

    fn push(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Serves a prompt; returns how many of its blocks were found.
    fn serve(&mut self, prompt: &[u8]) -> usize {
        self.now += 1;
        let (now, group) = (self.now, 0);
        let found = (1..=prompt.len()).take_while(|&depth| self.ids.contains_key(&prompt[..depth])).count();
        let tip = found.checked_sub(1).map(|_| self.ids[&prompt[..found]]);
        if let Some(id) = tip {
            self.push(Event::Used { id, group, depth: found as u32, now });
            self.push(Event::Pinned { id, group, now });
        }
        let free = self.free.len();
        let mut coming = prompt.len() - found;
        if self.asks {
            self.tell();
            let keys: Vec<u64> = (1..=prompt.len()).map(|depth| key(&prompt[..depth])).collect();
            let mut verdicts = Vec::new();
            let question = Admission { now, group, keys: &keys, first: found as u32, free: free as u32 };
            self.policy.admit(&question, &mut verdicts);
            assert_eq!(verdicts.len(), coming, "one verdict for each block that is missing");
            coming = verdicts.iter().take_while(|&&admitted| admitted).count();
        }
        self.make_room(coming.saturating_sub(free), tip);
        for depth in found + 1..=found + coming {
            let Some(id) = self.free.pop() else { break };
            let parent = if depth == 1 { NO_PARENT } else { self.ids[&prompt[..depth - 1]] };
            self.ids.insert(prompt[..depth].to_vec(), id);
            self.push(Event::Inserted(Inserted { id, parent, group, namespace: 0, depth: depth as u32, now }));
        }
        if let Some(id) = tip {
            self.push(Event::Unpinned { id, group, now });
        }
        assert!(self.ids.len() <= self.capacity);
        found
    }

    fn tell(&mut self) {
        let mut none = Vec::new();
        self.policy.step(self.events.events(), 0, &mut none);
        self.events.clear();
        assert_eq!(none, []);
    }

    fn make_room(&mut self, want: usize, pinned: Option<u32>) {
        let mut victims = Vec::new();
        self.policy.step(self.events.events(), want as u32, &mut victims);
        self.events.clear();
        assert!(victims.len() <= want);
        for id in victims {
            assert_ne!(Some(id), pinned, "pinned");
            self.take_out(id);
        }
    }

    /// Evicts a block, which has to be a resident leaf.
    fn take_out(&mut self, id: u32) {
        let path = self.ids.iter().find(|(_, other)| **other == id).expect("resident").0.clone();
        let is_leaf = !self.ids.range(path.clone()..).nth(1).is_some_and(|(other, _)| other.starts_with(&path));
        assert!(is_leaf, "a leaf");
        self.ids.remove(&path);
        self.free.push(id);
    }

    /// Everything that the policy keeps twice is the same in both places.
    fn audit(&mut self) {
        self.tell();
        let told = self.ids.iter().map(|(path, &id)| (id, path.len() as u32)).collect();
        self.policy.0.chronicle.audit(&told);
    }
}

/// Prompts of few different blocks, so that they share much.
fn prompts() -> impl Strategy<Value = Vec<(u8, Vec<u8>)>> {
    prop::collection::vec((0..20_u8, prop::collection::vec(0..3_u8, 1..9)), 1..80)
}

proptest! {
    #[test]
    fn no_history_makes_it_name_what_must_stay_or_lose_count(
        capacity in 1..24_u32,
        price in 0..3_u64,
        asks in any::<bool>(),
        requests in prompts(),
    ) {
        let mut host = Host::new(capacity, &[("write-price", &(price * 100).to_string()), ("memory", "0")]);
        host.policy.0.chronicle = Chronicle::new(30, 25);
        for (what, prompt) in requests {
            host.asks = asks != (what == 0);
            host.serve(&prompt);
            match what {
                // The host takes a leaf out on its own.
                1 => if let Some((_, &id)) = host.ids.iter().max_by_key(|(path, _)| path.len()) {
                    host.tell();
                    host.take_out(id);
                    let now = host.now;
                    host.push(Event::Evicted { id, group: 0, now });
                },
                // It asks for victims and declines: each is told back, the parent first.
                2 => {
                    let mut victims = Vec::new();
                    host.policy.step(host.events.events(), 3, &mut victims);
                    host.events.clear();
                    let now = host.now;
                    victims.iter().rev().for_each(|&id| host.push(Event::Kept { id, group: 0, now }));
                }
                _ => {}
            }
            host.audit();
        }
    }

    /// A successor is told blocks in order of insertion, with their last use, and no names.
    #[test]
    fn a_hand_over_leaves_no_block_that_can_never_go(capacity in 1..24_u32, before in prompts(), after in prompts()) {
        let mut host = Host::new(capacity, &[]);
        before.iter().for_each(|(_, prompt)| { host.serve(prompt); });
        host.tell();
        let mut entries: Vec<(Vec<u8>, u32)> = host.ids.iter().map(|(path, &id)| (path.clone(), id)).collect();
        entries.sort_by_key(|(path, _)| path.len());
        let saved = host.policy.save();
        let settings = Settings::parse(Auto::DESCRIPTION.settings, [("", ""); 0]).unwrap();
        host.policy = Auto::new(&settings);
        host.policy.0.chronicle = Chronicle::new(100, 50);
        prop_assert!(host.policy.load(&saved));
        for (path, id) in entries {
            let depth = path.len() as u32;
            let parent = if depth == 1 { NO_PARENT } else { host.ids[&path[..path.len() - 1]] };
            host.push(Event::Inserted(Inserted { id, parent, group: 0, namespace: 0, depth, now: u64::from(id) }));
        }
        host.audit();
        for (_, prompt) in after {
            host.serve(&prompt);
            host.audit();
        }
        host.make_room(capacity as usize, None);
        prop_assert!(host.ids.is_empty());
    }
}

#[test]
fn a_loop_that_does_not_fit_is_not_a_loop_of_misses() {
    let mut host = Host::new(40, &[]);
    let mut hits = 0;
    for round in 0..60 {
        for prompt in 0..80_u8 {
            let found = host.serve(&[prompt]);
            hits += if round >= 30 { found } else { 0 };
        }
    }
    // LRU finds nothing, an oracle half.
    assert!(hits > 30 * 80 * 2 / 5, "{hits} of 2400");
}

#[test]
fn passers_by_do_not_displace_what_comes_back() {
    let mut host = Host::new(30, &[]);
    let mut hits = 0;
    for turn in 0..3000_u32 {
        let prompt = match turn % 4 {
            0 => vec![1, (turn / 4 % 5) as u8, 7, 7],
            _ => vec![2, (turn >> 8) as u8, turn as u8, 3, 4, 5, 6],
        };
        let found = host.serve(&prompt);
        if turn >= 2000 && turn % 4 == 0 {
            hits += found;
        }
    }
    // Between two uses of the first kind come 15 passers-by of 6 blocks each: LRU keeps none.
    assert_eq!(hits, 250 * 4);
}

#[test]
fn where_reuse_falls_with_age_it_does_not_depart_from_lru() {
    // Two sessions, one after the other, each prompt going on from the one before: what is used next is what was used last.
    let mut host = Host::new(12, &[]);
    for session in 0..20_u8 {
        for len in 1..11_u8 {
            let prompt: Vec<u8> = core::iter::once(session).chain(0..len).collect();
            let found = host.serve(&prompt);
            assert_eq!(found, if len == 1 { 0 } else { prompt.len() - 1 });
        }
    }
}

#[test]
fn writes_that_bring_nothing_are_not_made_when_writing_has_a_price() {
    let written = |price| {
        let mut host = Host::new(20, &[("write-price", price)]);
        let mut written = 0;
        for turn in 0..2000_u32 {
            let prompt = [(turn >> 8) as u8, turn as u8];
            let found = host.serve(&prompt);
            written += usize::from(found < 2 && host.ids.contains_key(&prompt[..]));
        }
        written
    };
    assert_eq!(written("0"), 2000);
    assert!(written("100") < 200, "{}", written("100"));
}

#[test]
fn a_torn_or_forged_state_is_not_taken() {
    let mut host = Host::new(10, &[]);
    (0..200_u8).for_each(|turn| {
        host.serve(&[turn % 20]);
    });
    let saved = host.policy.save();
    let mut policy = Host::new(10, &[]).policy;
    assert!(policy.load(&saved));
    assert!(!policy.load(&saved[1..]));
    assert!(!policy.load(&[]));
    let mut forged = saved.clone();
    // More uses than exposure.
    forged[8 * (CELLS + cell(0, 0))..][..8].fill(0xff);
    assert!(!policy.load(&forged));
}
