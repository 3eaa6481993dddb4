//! `flop-aware`: recency, and what a block saves when it is hit.

use alloc::vec::Vec;

use reprise_core::policy::{
    Admission, CachePolicy, Description, Event, Events, GroupInfo, Inserted, Kind, Policy, Setting, Settings,
};

use crate::{miniature::Miniature, ranking::Ranking};

/// Weights of the saving that are tried, in eighths: how many times the age at which blocks go the deepest block may outlive the first.
const WEIGHTS: [u64; 5] = [0, 2, 8, 32, 128];
const EIGHTHS: u64 = 8;
const MOST_WEIGHT: u64 = 1024;

/// Blocks of one miniature at most: what all of them together cost stays far below what moving blocks costs.
const MINIATURE_BLOCKS: u64 = 512;
/// Turnovers in which what a weight saved is forgotten: less, and chance decides.
const REMEMBERED_TURNOVERS: u64 = 64;
/// The part of its saving by which another weight must be better.
const CLEARLY: u64 = 64;

/// Tokens of context at which computing a token costs twice what it does at the start of one: the straight line of
/// [`reprise_core::plan::Prices`].
const DOUBLING_TOKENS: u64 = 17_900_000 * 1024 / 61_700;

/// Leaves by last use, later for those that save more.
///
/// After Marconi (Pan and others, MLSys 2025, arXiv:2411.19379), where the utility of an entry is `recency + α · compute saved per
/// byte`. All blocks have the same bytes, and what a token costs to compute grows in a straight line with the context before it. Scaled
/// to the range there is, as Marconi does it, what a block saves per byte is its depth over the greatest depth, and recency is
/// the last use over the time in which the cache is filled anew once. So a leaf goes by
/// `last use + α · turnover · depth / deepest`: a block in the middle of a prompt is worth something because of those behind it, which
/// go first in any case.
///
/// α is the one of a few that would have saved most compute lately, tried on miniatures of the cache: the same requests, one
/// block in so many, an equal part of the records. Where nothing is gained by depth, α stays 0 and this is `lru`.
///
/// It gains where a cache is far too small for what comes back and long prompts are worth keeping at the expense of short ones. It may
/// lose to `lru` where uses are regular, all prompts are long and there is room for a part of them: then what a weight
/// saved lately says little about what it will save.
///
/// Not handed over: what the miniatures hold, and by which weight a block was ranked; a successor ranks all blocks by the weight of now.
#[derive(Clone, Debug)]
pub struct FlopAware {
    tunes: bool,
    /// What `alpha` says, in eighths; the tuned one otherwise.
    weight: u64,
    ranking: Ranking,
    capacity_records: u64,
    block_tokens: u64,
    /// Ticks in which as many blocks came in last as there are records.
    turnover: u64,
    turnover_began: u64,
    inserted: u64,
    /// Greatest depth in this turnover and the one before.
    deepest: [u32; 2],
    /// One block in a power of two is sampled: those with these bits of the key 0.
    sampled: u64,
    miniatures: [Miniature; WEIGHTS.len()],
    /// Compute each weight saved, in tokens at the start of a context, the older the less.
    saved: [u64; WEIGHTS.len()],
    sample: Vec<(u64, u32)>,
}

impl FlopAware {
    fn learn(&mut self, event: Event) {
        match event {
            Event::Inserted(block) => self.insert(&block),
            Event::Used { id, depth, now, .. } => self.ranking.set_rank(id, self.rank(self.weight, depth, now)),
            Event::Evicted { id, .. } => self.ranking.remove(id, u64::max),
            Event::Kept { id, .. } => self.ranking.keep(id),
            Event::Pinned { id, .. } => self.ranking.pin(id),
            Event::Unpinned { id, .. } => self.ranking.unpin(id),
        }
    }

    fn insert(&mut self, block: &Inserted) {
        self.deepest[0] = self.deepest[0].max(block.depth);
        self.ranking.insert(block, self.rank(self.weight, block.depth, block.now));
        self.inserted += 1;
        if self.inserted >= self.capacity_records {
            self.inserted = 0;
            self.turnover = block.now.saturating_sub(self.turnover_began);
            self.turnover_began = block.now;
            self.deepest = [0, self.deepest[0]];
            if self.tunes {
                self.tune();
            }
        }
    }

    fn rank(&self, weight: u64, depth: u32, now: u64) -> u64 {
        let deepest = self.deepest[0].max(self.deepest[1]).max(1);
        let longest = u128::from(weight) * u128::from(self.turnover) / u128::from(EIGHTHS);
        let more = longest * u128::from(depth.min(deepest)) / u128::from(deepest);
        now.saturating_add(u64::try_from(more).unwrap_or(u64::MAX))
    }

    /// Takes the weight that saved most, if it saved clearly more than the one there is.
    fn tune(&mut self) {
        let saved = |weight: u64| {
            WEIGHTS.iter().zip(&self.saved).find(|&(&other, _)| other == weight).map_or(0, |(_, &saved)| saved)
        };
        let now = saved(self.weight);
        let best = WEIGHTS.iter().rev().copied().max_by_key(|&weight| saved(weight)).unwrap_or(0);
        if saved(best) - now > now / CLEARLY {
            self.weight = best;
        }
        for saved in &mut self.saved {
            *saved -= *saved / REMEMBERED_TURNOVERS;
        }
    }

    /// Serves the request in all miniatures.
    fn rehearse(&mut self, keys: &[u64], now: u64) {
        self.sample.clear();
        let sampled = keys.iter().zip(1_u32..).filter(|&(key, _)| key & self.sampled == 0);
        self.sample.extend(sampled.map(|(&key, depth)| (key, depth)));
        if self.sample.is_empty() {
            return;
        }
        for (index, &weight) in WEIGHTS.iter().enumerate() {
            let mut miniature = core::mem::take(&mut self.miniatures[index]);
            let found = miniature.serve(&self.sample, now, |depth| self.rank(weight, depth, now));
            let tokens = |&(_, depth): &(u64, u32)| {
                let context = u64::from(depth).saturating_mul(self.block_tokens);
                self.block_tokens.saturating_mul(DOUBLING_TOKENS.saturating_add(context)) / DOUBLING_TOKENS
            };
            let saved = self.sample[..found].iter().map(tokens).fold(0, u64::saturating_add);
            self.saved[index] = self.saved[index].saturating_add(saved);
            self.miniatures[index] = miniature;
        }
    }
}

impl Policy for FlopAware {
    const DESCRIPTION: Description = Description {
        name: "flop-aware",
        version: "0.1.0",
        kind: Kind::Cache,
        admission: true,
        state_schema: 1,
        settings: &[
            Setting {
                key: "tune",
                help: "1: the weight of compute saved is found while serving; 0: it is what alpha says",
                default: 1,
                min: 0,
                max: 1,
            },
            Setting {
                key: "alpha",
                help: "weight to begin with, in eighths: 8 keeps the deepest block for one turnover of the cache more than the first",
                default: 0,
                min: 0,
                max: MOST_WEIGHT,
            },
        ],
    };

    fn new(settings: &Settings) -> Self {
        Self {
            tunes: settings.get("tune") != 0,
            weight: settings.get("alpha"),
            ranking: Ranking::default(),
            capacity_records: 0,
            block_tokens: 1,
            turnover: 0,
            turnover_began: 0,
            inserted: 0,
            deepest: [0; 2],
            sampled: 0,
            miniatures: Default::default(),
            saved: [0; WEIGHTS.len()],
            sample: Vec::new(),
        }
    }
}

impl CachePolicy for FlopAware {
    fn attach(&mut self, groups: &[GroupInfo]) {
        self.ranking.reserve(groups);
        self.capacity_records = groups.iter().fold(0, |sum, group| sum.saturating_add(group.capacity_records));
        self.block_tokens = groups.iter().map(|group| group.recompute_tokens.into()).max().unwrap_or(1);
        let one_in = self.capacity_records.div_ceil(MINIATURE_BLOCKS).max(1).next_power_of_two();
        self.sampled = one_in - 1;
        let blocks = (self.capacity_records / one_in) as u32;
        self.miniatures = core::array::from_fn(|_| Miniature::new(blocks));
    }

    fn step(&mut self, events: Events<'_>, want: u32, victims: &mut Vec<u32>) {
        for event in events {
            self.learn(event);
        }
        self.ranking.name_victims(want, victims, u64::max);
    }

    fn admit(&mut self, question: &Admission<'_>, verdicts: &mut Vec<bool>) {
        let missing = question.keys.get(question.first as usize..).unwrap_or_default();
        verdicts.extend(missing.iter().map(|_| true));
        if self.tunes {
            self.rehearse(question.keys, question.now);
        }
    }

    /// The weight, the turnover and what each weight saved: 8 bytes each, little endian.
    fn save(&self) -> Vec<u8> {
        let numbers = [self.weight, self.turnover].into_iter().chain(self.saved);
        numbers.flat_map(u64::to_le_bytes).collect()
    }

    fn load(&mut self, bytes: &[u8]) -> bool {
        let (numbers, rest) = bytes.as_chunks::<8>();
        let [weight, turnover, saved @ ..] = numbers else { return false };
        let Ok(saved) = <[[u8; 8]; WEIGHTS.len()]>::try_from(saved) else { return false };
        let weight = u64::from_le_bytes(*weight);
        if !rest.is_empty() || weight > MOST_WEIGHT {
            return false;
        }
        if self.tunes {
            self.weight = weight;
        }
        self.turnover = u64::from_le_bytes(*turnover);
        self.saved = saved.map(u64::from_le_bytes);
        true
    }
}

#[cfg(test)]
mod tests {
    use reprise_core::policy::{EventBuffer, NO_PARENT};

    use super::*;

    fn policy(given: &[(&str, &str)]) -> FlopAware {
        let mut policy =
            FlopAware::new(&Settings::parse(FlopAware::DESCRIPTION.settings, given.iter().copied()).unwrap());
        policy.attach(&[GroupInfo {
            group: 0,
            name: "history".into(),
            record_bytes: 1,
            capacity_records: 8,
            recompute_tokens: 128,
            tree: true,
        }]);
        policy
    }

    /// Six blocks in a row at time 4, then two roots at time 8: eight records, so that a turnover takes 8 ticks.
    fn fill(policy: &mut FlopAware) {
        let mut events = EventBuffer::default();
        let inserted =
            |id, parent, depth, now| Event::Inserted(Inserted { id, parent, group: 0, namespace: 0, depth, now });
        for id in 0..6 {
            events.push(inserted(id, id.checked_sub(1).unwrap_or(NO_PARENT), id + 1, 4));
        }
        events.push(inserted(6, NO_PARENT, 1, 8));
        events.push(inserted(7, NO_PARENT, 1, 8));
        events.push(Event::Used { id: 5, group: 0, depth: 6, now: 10 });
        events.push(Event::Used { id: 6, group: 0, depth: 1, now: 12 });
        events.push(Event::Used { id: 7, group: 0, depth: 1, now: 13 });
        policy.step(events.events(), 0, &mut Vec::new());
    }

    #[test]
    fn a_deep_path_does_not_go_before_a_shallow_one_used_a_little_later() {
        for (alpha, expected) in [("0", [5, 4, 3]), ("8", [6, 7, 5])] {
            let mut policy = policy(&[("tune", "0"), ("alpha", alpha)]);
            fill(&mut policy);
            let mut victims = Vec::new();
            policy.step(Events::default(), 3, &mut victims);
            assert_eq!(victims, expected, "alpha {alpha}");
        }
    }

    #[test]
    fn where_recency_tells_all_depth_does_not_weigh() {
        let mut policy = policy(&[]);
        for now in 1..2_000_u64 {
            let root = now / 2 % 900 + 1;
            let keys: Vec<u64> = (0..=now % 2 * 3).map(|block| root << 8 | block).collect();
            policy.admit(&Admission { now, group: 0, keys: &keys, first: 0, free: 8 }, &mut Vec::new());
            fill(&mut policy);
            assert_eq!(policy.weight, 0);
        }
        assert!(policy.saved[0] > 0);
    }

    #[test]
    fn a_torn_state_is_not_taken() {
        let (mut before, mut after) = (policy(&[("alpha", "5")]), policy(&[]));
        fill(&mut before);
        let saved = before.save();
        assert!(!after.load(&saved[1..]) && !after.load(&[]) && !after.load(&[0xff; 56]));
        assert!(!after.load(&[&saved[..], &[0]].concat()));
        assert!(after.load(&saved));
        assert_eq!((after.weight, after.turnover), (before.weight, 8));
    }
}
