//! `two-hit`: leaf LRU that lets a block into a full pool only at second sight.

use alloc::vec::Vec;

use reprise_core::policy::{Admission, CachePolicy, Description, Events, GroupInfo, Kind, Policy, Settings};

use crate::{lru::Lru, seen::Seen};

/// LRU with a memory of what was asked for in earlier requests: the last 2 × capacity distinct blocks, first in first out.
#[derive(Clone, Debug, Default)]
pub struct TwoHit {
    order: Lru,
    seen: Seen,
}

impl Policy for TwoHit {
    const DESCRIPTION: Description = Description {
        name: "two-hit",
        version: "0.1.0",
        kind: Kind::Cache,
        admission: true,
        state_schema: 1,
        settings: &[],
    };

    fn new(_: &Settings) -> Self {
        Self::default()
    }
}

impl CachePolicy for TwoHit {
    fn attach(&mut self, groups: &[GroupInfo]) {
        self.order.attach(groups);
        let records = groups.iter().filter(|group| group.tree).map(|group| group.capacity_records).sum::<u64>();
        self.seen = Seen::new(u32::try_from(records.saturating_mul(2)).unwrap_or(u32::MAX));
    }

    fn step(&mut self, events: Events<'_>, want: u32, victims: &mut Vec<u32>) {
        self.order.step(events, want, victims);
    }

    fn admit(&mut self, question: &Admission<'_>, verdicts: &mut Vec<bool>) {
        let missing = question.keys.get(question.first as usize..).unwrap_or_default();
        let free = question.free as usize;
        verdicts.extend(missing.iter().enumerate().map(|(index, &key)| index < free || self.seen.contains(key)));
        for &key in question.keys {
            self.seen.insert(key);
        }
    }

    /// The keys in order of first sight, 8 bytes each, little endian.
    fn save(&self) -> Vec<u8> {
        self.seen.keys().flat_map(|key| key.to_le_bytes()).collect()
    }

    fn load(&mut self, bytes: &[u8]) -> bool {
        let (keys, rest) = bytes.as_chunks::<8>();
        if rest.is_empty() {
            for &key in keys {
                self.seen.insert(u64::from_le_bytes(key));
            }
        }
        rest.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(capacity_records: u64) -> TwoHit {
        let mut policy = TwoHit::default();
        policy.attach(&[GroupInfo {
            group: 0,
            name: "history".into(),
            record_bytes: 1,
            capacity_records,
            recompute_tokens: 1,
            tree: true,
        }]);
        policy
    }

    fn ask(policy: &mut TwoHit, keys: &[u64], first: u32, free: u32) -> Vec<bool> {
        let mut verdicts = Vec::new();
        policy.admit(&Admission { now: 0, group: 0, keys, first, free }, &mut verdicts);
        verdicts
    }

    #[test]
    fn a_block_asked_for_once_does_not_enter_a_full_pool() {
        let mut policy = policy(2);
        assert_eq!(ask(&mut policy, &[1, 2], 0, 1), [true, false], "one slot is free");
        assert_eq!(ask(&mut policy, &[1, 2, 3], 1, 0), [true, false], "2 was asked for before, 3 was not");
        assert_eq!(ask(&mut policy, &[7, 7], 0, 0), [false, false], "twice in one request is once");
    }

    #[test]
    fn the_memory_does_not_grow_beyond_twice_the_capacity() {
        let mut policy = policy(2);
        for key in 1..=5 {
            ask(&mut policy, &[key], 0, 0);
        }
        assert_eq!(ask(&mut policy, &[1, 2, 5], 0, 0), [false, true, true], "1 was forgotten, first in first out");
        assert_eq!(policy.save().len(), 4 * 8);
    }

    #[test]
    fn a_successor_does_not_forget_what_was_seen() {
        let mut before = policy(4);
        ask(&mut before, &[3, 1, 4], 0, 0);
        let mut after = policy(4);
        assert!(after.load(&before.save()));
        assert!(!after.load(&[1, 2, 3]), "a torn state is refused");
        assert_eq!(ask(&mut after, &[1, 5], 0, 0), [true, false]);
        assert_eq!(before.save()[..24], after.save()[..24], "in the same order");
    }
}
