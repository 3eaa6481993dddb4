//! `segmented`: what was used once makes room for what was used again.

use alloc::vec::Vec;

use reprise_core::policy::{
    Admission, CachePolicy, Description, Event, Events, GroupInfo, Inserted, Kind, Policy, Setting, Settings,
};

use crate::{
    order::{ranked, unranked},
    pending::Pending,
    ranking::Ranking,
    runs::Runs,
    seen::Seen,
};

/// Blocks on probation are in class 0, protected ones in class 1.
const PROBATION: usize = 0;
const PROTECTED: usize = 1;

/// Segmented LRU over leaves (Karedla, Love, Wherry: "Caching strategies to improve disk system performance", 1994).
///
/// A new block is on probation. A hit protects the whole path; so does a return while the block's key is remembered from an earlier
/// insertion (a *ghost*). While blocks on probation, with those about to come in, hold more than their share, they go first, the
/// least recently used of them first; else the least recently used protected leaf goes.
#[derive(Clone, Debug)]
pub struct Segmented {
    probation_percent: u64,
    ghost_percent: u64,
    capacity_records: u64,
    ranking: Ranking<2>,
    runs: Runs,
    ghosts: Seen,
    pending: Pending,
    /// Blocks that were admitted last and will be on probation.
    coming: u64,
    /// Ids of blocks that a predecessor protected and that are still to be told, a bit each.
    inherited: Vec<u64>,
}

/// The more protected class and the later use of both.
fn later(parent: u64, child: u64) -> u64 {
    let ((above, used), (below, child_used)) = (unranked(parent), unranked(child));
    ranked(above.max(below), used.max(child_used))
}

impl Segmented {
    fn learn(&mut self, event: Event) {
        match event {
            Event::Inserted(block) => self.insert(&block),
            Event::Used { id, now, .. } => {
                self.ranking.set_rank(id, ranked(PROTECTED as u64, now));
                self.runs.mark(id);
            }
            Event::Evicted { id, .. } => self.remove(id),
            Event::Kept { id, .. } => {
                self.ranking.keep(id);
                if let (Some(parent), Some(rank)) = (self.ranking.parent(id), self.ranking.rank(id)) {
                    self.runs.keep(id, parent, unranked(rank).0 == PROTECTED as u64);
                }
            }
            Event::Pinned { id, .. } => self.ranking.pin(id),
            Event::Unpinned { id, .. } => self.ranking.unpin(id),
        }
    }

    fn insert(&mut self, block: &Inserted) {
        let protected = self.inherits(block.id) || block.depth <= self.pending.known(block.now);
        self.ranking.insert(block, ranked(u64::from(protected), block.now));
        self.runs.insert(block, protected);
        self.coming = 0;
    }

    /// Whether a predecessor protected the block that is told now.
    fn inherits(&mut self, id: u32) -> bool {
        let Some(word) = self.inherited.get_mut(id as usize / 64) else { return false };
        let bit = 1 << (id % 64);
        let protected = *word & bit != 0;
        *word &= !bit;
        protected
    }

    fn remove(&mut self, id: u32) {
        self.runs.remove(id);
        self.ranking.remove(id, later);
    }
}

impl Policy for Segmented {
    const DESCRIPTION: Description = Description {
        name: "segmented",
        version: "0.1.0",
        kind: Kind::Cache,
        admission: true,
        state_schema: 1,
        settings: &[
            Setting {
                key: "probation",
                help: "percent of the records that blocks used only once may hold before they go first",
                default: 10,
                min: 0,
                max: 100,
            },
            Setting {
                key: "ghosts",
                help: "keys of inserted blocks that are remembered, in percent of the records",
                default: 400,
                min: 0,
                max: 400,
            },
        ],
    };

    fn new(settings: &Settings) -> Self {
        Self {
            probation_percent: settings.get("probation"),
            ghost_percent: settings.get("ghosts"),
            capacity_records: 0,
            ranking: Ranking::default(),
            runs: Runs::default(),
            ghosts: Seen::default(),
            pending: Pending::default(),
            coming: 0,
            inherited: Vec::new(),
        }
    }
}

impl CachePolicy for Segmented {
    fn attach(&mut self, groups: &[GroupInfo]) {
        self.capacity_records = groups.iter().fold(0, |sum, group| sum.saturating_add(group.capacity_records));
        self.ranking.reserve(groups);
        self.runs.reserve(crate::ranking::reserved(groups));
        let ghosts = self.capacity_records.saturating_mul(self.ghost_percent) / 100;
        self.ghosts = Seen::new(u32::try_from(ghosts).unwrap_or(u32::MAX));
    }

    fn step(&mut self, events: Events<'_>, want: u32, victims: &mut Vec<u32>) {
        for event in events {
            self.learn(event);
        }
        let share = (u128::from(self.capacity_records) * u128::from(self.probation_percent) / 100) as u64;
        for _ in 0..want {
            let over = self.runs.unmarked().saturating_add(self.coming) > share;
            let (first, second) = if over { (PROBATION, PROTECTED) } else { (PROTECTED, PROBATION) };
            let Some(id) = self.ranking.first_of(first).or_else(|| self.ranking.first_of(second)) else { break };
            victims.push(id);
            self.remove(id);
        }
    }

    fn admit(&mut self, question: &Admission<'_>, verdicts: &mut Vec<bool>) {
        let first = question.first as usize;
        let missing = question.keys.get(first..).unwrap_or_default();
        verdicts.extend(missing.iter().map(|_| true));
        let known = missing.iter().rposition(|&key| self.ghosts.contains(key)).map_or(0, |last| last + 1);
        self.pending.note(question.now, if known == 0 { 0 } else { (first + known) as u32 });
        self.coming = (missing.len() - known) as u64;
        for &key in missing {
            self.ghosts.insert(key);
        }
    }

    /// Words of 8 bytes, little endian: how many words of protected ids follow, those, the last questions, and the remembered keys, the
    /// oldest first.
    fn save(&self) -> Vec<u8> {
        let marks = self.runs.marks();
        let words = [marks.len() as u64].into_iter().chain(marks).chain(self.pending.words()).chain(self.ghosts.keys());
        words.flat_map(u64::to_le_bytes).collect()
    }

    fn load(&mut self, bytes: &[u8]) -> bool {
        let (words, rest) = bytes.as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|&word| u64::from_le_bytes(word)).collect();
        let Some((&marks, words)) = words.split_first().filter(|_| rest.is_empty()) else { return false };
        let Some((marks, words)) = usize::try_from(marks).ok().and_then(|marks| words.split_at_checked(marks)) else {
            return false;
        };
        let Some((questions, keys)) = words.split_at_checked(Pending::WORDS) else { return false };
        self.inherited = marks.to_vec();
        self.pending.take(questions);
        for &key in keys {
            self.ghosts.insert(key);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use reprise_core::policy::{EventBuffer, NO_PARENT};

    use super::*;

    fn policy(capacity_records: u64) -> Segmented {
        let settings = Settings::parse::<&str, &str>(Segmented::DESCRIPTION.settings, []).unwrap();
        let mut policy = Segmented::new(&settings);
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

    /// A request at `now` that inserts one root.
    fn request(policy: &mut Segmented, now: u64, key: u64, id: u32) {
        policy.admit(&Admission { now, group: 0, keys: &[key], first: 0, free: 0 }, &mut Vec::new());
        let mut events = EventBuffer::default();
        events.push(Event::Inserted(Inserted { id, parent: NO_PARENT, group: 0, namespace: 0, depth: 1, now }));
        policy.step(events.events(), 0, &mut Vec::new());
    }

    fn victims(policy: &mut Segmented, want: u32) -> Vec<u32> {
        let mut victims = Vec::new();
        policy.step(Events::default(), want, &mut victims);
        victims
    }

    #[test]
    fn a_block_that_comes_back_is_not_on_probation_again() {
        let mut policy = policy(10);
        for id in 0..10 {
            request(&mut policy, id + 1, id + 100, id as u32);
        }
        assert_eq!(victims(&mut policy, 1), [0]);
        request(&mut policy, 11, 100, 0);
        assert_eq!(
            victims(&mut policy, 9),
            [1, 2, 3, 4, 5, 6, 7, 8, 0],
            "the one that came back outlives all but a share"
        );
    }

    #[test]
    fn what_is_remembered_does_not_grow_with_what_comes_by() {
        let mut policy = policy(10);
        for now in 1..500 {
            request(&mut policy, now, now * 7, (now % 10) as u32);
        }
        assert_eq!(policy.save().len(), 8 * (1 + 1 + Pending::WORDS + 40), "four times the records");
    }

    #[test]
    fn a_successor_does_not_forget_who_was_protected() {
        let mut before = policy(10);
        for id in 0..10 {
            request(&mut before, id + 1, id + 100, id as u32);
        }
        let mut events = EventBuffer::default();
        events.push(Event::Used { id: 2, group: 0, depth: 1, now: 11 });
        before.step(events.events(), 0, &mut Vec::new());
        let mut after = policy(10);
        for torn in [&before.save()[..9], &before.save()[..100], &[0xff; 16], &[]] {
            assert!(!after.load(torn), "a torn state is refused");
        }
        assert!(after.load(&before.save()));
        let mut told = EventBuffer::default();
        for id in 0..10 {
            let now = if id == 2 { 11 } else { u64::from(id) + 1 };
            told.push(Event::Inserted(Inserted { id, parent: NO_PARENT, group: 0, namespace: 0, depth: 1, now }));
        }
        after.step(told.events(), 0, &mut Vec::new());
        assert_eq!(before.save(), after.save());
        assert_eq!(victims(&mut before, 10), victims(&mut after, 10));
    }
}
