//! `adaptive`: a checkpoint where it can be expected to save more than what goes for it.

use alloc::{collections::BTreeMap, vec, vec::Vec};

use reprise_core::policy::{
    CheckpointInfo, CheckpointPolicy, Description, Kind, Policy, Prompt, Setting, Settings, Span,
};

/// Namespaces whose prompts are counted apart; those beyond share with others.
const NAMESPACES: usize = 64;
/// Lengths of what a checkpoint covers that are counted apart, in powers of two of blocks.
const LENGTHS: usize = 12;
/// Counts are halved when they have come to this: what was long ago says less.
const HALVED_AT: u64 = 1024;
/// So many positions of all lengths and namespaces a class begins with, as it were.
const PRIOR: u64 = 16;
/// Checkpoints before which what is lost by eviction says little.
const SETTLED: u64 = 64;

/// Where near the end of a prompt a checkpoint may be.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// So many blocks before the end: what follows is written anew in the next turn.
    Back(u32),
    /// The end rounded down to a multiple of so many blocks: prompts are told apart in coarser pieces than blocks.
    Down(u32),
}

const PLACES: [Place; 8] = [
    Place::Back(0),
    Place::Back(1),
    Place::Back(2),
    Place::Back(3),
    Place::Down(2),
    Place::Down(4),
    Place::Down(8),
    Place::Down(16),
];

impl Place {
    const fn of(self, end_blocks: u32) -> u32 {
        match self {
            Self::Back(blocks) => end_blocks.saturating_sub(blocks),
            Self::Down(multiple) => end_blocks / multiple * multiple,
        }
    }
}

/// Kinds of positions that are counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// Where a request leaves a cached path in its middle.
    Junction,
    /// The end of a prompt that goes on from none that is remembered.
    NewEnd,
    /// The end of one that does: what came back once often comes back again.
    ReturnedEnd,
}

const POSITIONS: usize = 3;

/// What positions of a class have saved.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    positions: u64,
    /// Tokens, by place, whether a checkpoint was there or not.
    saved: [u64; PLACES.len()],
}

impl Counts {
    fn count(&mut self) {
        self.positions += 1;
        if self.positions >= HALVED_AT {
            self.positions /= 2;
            self.saved.iter_mut().for_each(|saved| *saved /= 2);
        }
    }
}

/// Positions of one kind, of about the same length, in one namespace.
#[derive(Clone, Copy, Debug)]
struct Class {
    position: Position,
    index: usize,
}

/// A prompt, up to its end or a junction in it, that may come back.
#[derive(Clone, Copy, Debug)]
struct Remembered {
    class: Class,
    end_blocks: u32,
    /// Tokens that needed no checkpoint in it.
    start: u32,
    /// Block at whose end a checkpoint was asked for; 0 if none was.
    chosen_block: u32,
    /// Keys of the blocks that end at its places; 0 where there is none.
    keys: [u64; PLACES.len()],
}

/// Checkpoints by what they can be expected to save.
///
/// The policy remembers the last prompts by the keys of the blocks near their ends. When a later prompt matches one of these, it knows
/// what a checkpoint at each of a few places near the end would have saved: the tokens that had to be computed without it, at most
/// those of a replay. From that it learns, for each namespace, kind of position and length, what a checkpoint there saves on
/// average, chance of reuse included, and keeps the place that saves most.
///
/// A checkpoint takes bytes from others. What the average one costs is measured too: tokens that were computed because a
/// checkpoint that had been asked for was gone, for each that was asked for. A position that is worth less gets none. As long as nothing
/// is lost to eviction, that is 0, and the policy is as generous as `events`. Bytes can have a price of their own, `write-price`.
///
/// Memory: `prompts` times about 500 bytes, and 160 KiB.
#[derive(Clone, Debug)]
pub struct Adaptive {
    write_price: u64,
    /// The price of one checkpoint in tokens.
    price: u64,
    replay_tokens: u32,
    classes: Vec<Counts>,
    /// Of all lengths and namespaces.
    positions: [Counts; POSITIONS],
    prompts: Vec<Remembered>,
    most_prompts: usize,
    /// Place in `prompts` of the next, and of the oldest once there are enough.
    next: usize,
    by_key: BTreeMap<u64, usize>,
    asked: u64,
    /// Tokens lost because checkpoints that had been asked for were gone.
    lost: u64,
}

impl Adaptive {
    /// Notes what earlier positions would have saved this prompt. Returns whether it goes on from the end of an earlier one.
    fn learn(&mut self, span: &Span, prompt: &Prompt<'_>, start: u32) -> bool {
        let Some(&at) = prompt.matched_keys.iter().rev().find_map(|key| self.by_key.get(key)) else { return false };
        let Remembered { class, end_blocks, start: was_start, chosen_block, .. } = self.prompts[at];
        let matched_blocks = span.matched / span.block_tokens;
        let without = span.matched.saturating_sub(was_start).min(self.replay_tokens);
        let saves = |block: u32| match matched_blocks.checked_sub(block) {
            Some(behind) if block != 0 => without.saturating_sub(behind.saturating_mul(span.block_tokens)).into(),
            _ => 0,
        };
        let junction = class.position == Position::Junction;
        let places = if junction { &PLACES[..1] } else { &PLACES };
        for counts in [&mut self.classes[class.index], &mut self.positions[class.position as usize]] {
            for (saved, place) in counts.saved.iter_mut().zip(places) {
                *saved = saved.saturating_add(saves(place.of(end_blocks)));
            }
        }
        if start / span.block_tokens < chosen_block {
            self.lost = self.lost.saturating_add(saves(chosen_block));
        }
        !junction
    }

    fn class(&self, position: Position, namespace: u16, covered_blocks: u32) -> Class {
        let length = (covered_blocks.max(1).ilog2() as usize).min(LENGTHS - 1);
        let index = (usize::from(namespace) % NAMESPACES * POSITIONS + position as usize) * LENGTHS + length;
        Class { position, index }
    }

    /// Tokens that a checkpoint at a place saves on average.
    fn value(&self, class: Class, place: usize) -> u64 {
        let (own, all) = (&self.classes[class.index], &self.positions[class.position as usize]);
        let prior = all.saved[place] / all.positions.max(1);
        own.saved[place].saturating_add(prior.saturating_mul(PRIOR)) / (own.positions + PRIOR)
    }

    /// Tokens that a checkpoint must be expected to save.
    fn threshold(&self) -> u64 {
        (self.lost / (self.asked + SETTLED)).max(self.price)
    }

    fn remember(&mut self, prompt: Remembered) {
        self.classes[prompt.class.index].count();
        self.positions[prompt.class.position as usize].count();
        if self.most_prompts == 0 {
            return;
        }
        let at = self.next;
        self.next = (at + 1) % self.most_prompts;
        match self.prompts.get_mut(at) {
            Some(place) => {
                let old = core::mem::replace(place, prompt);
                for key in old.keys {
                    if self.by_key.get(&key) == Some(&at) {
                        self.by_key.remove(&key);
                    }
                }
            }
            None => self.prompts.push(prompt),
        }
        for key in prompt.keys.into_iter().filter(|&key| key != 0) {
            self.by_key.insert(key, at);
        }
    }

    fn at_junction(&mut self, span: &Span, prompt: &Prompt<'_>, start: u32) -> Option<u32> {
        let end_blocks = span.junction / span.block_tokens;
        let covered = span.junction.saturating_sub(start) / span.block_tokens;
        let class = self.class(Position::Junction, prompt.namespace, covered);
        let chosen = span.allows(span.junction) && self.value(class, 0) >= self.threshold();
        if let Some(&key) = prompt.matched_keys.last() {
            let mut keys = [0; PLACES.len()];
            keys[0] = key;
            let chosen_block = if chosen { end_blocks } else { 0 };
            self.remember(Remembered { class, end_blocks, start, chosen_block, keys });
        }
        chosen.then_some(span.junction)
    }

    fn at_end(&mut self, span: &Span, prompt: &Prompt<'_>, start: u32, threshold: u64, returned: bool) -> Option<u32> {
        let end_blocks = span.end / span.block_tokens;
        let position = if returned { Position::ReturnedEnd } else { Position::NewEnd };
        let covered = span.end.saturating_sub(start) / span.block_tokens;
        let class = self.class(position, prompt.namespace, covered);
        let tokens = |place: Place| place.of(end_blocks) * span.block_tokens;
        let best = (0..PLACES.len())
            .rev()
            .filter(|&place| tokens(PLACES[place]) > span.junction && span.allows(tokens(PLACES[place])))
            .max_by_key(|&place| self.value(class, place));
        let chosen = best.filter(|&place| self.value(class, place) >= threshold).map(|place| PLACES[place]);
        if !prompt.end_keys.is_empty() {
            let keys = PLACES.map(|place| {
                let back = (end_blocks - place.of(end_blocks)) as usize;
                prompt.end_keys.iter().rev().nth(back).copied().unwrap_or(0)
            });
            let chosen_block = chosen.map_or(0, |place| place.of(end_blocks));
            self.remember(Remembered { class, end_blocks, start, chosen_block, keys });
        }
        chosen.map(tokens)
    }
}

impl Policy for Adaptive {
    const DESCRIPTION: Description = Description {
        name: "adaptive",
        version: "0.1.0",
        kind: Kind::Checkpoint,
        admission: false,
        state_schema: 0,
        settings: &[
            Setting {
                key: "write-price",
                help: "tokens that a GiB of checkpoints must be expected to save to be written at all",
                default: 0,
                min: 0,
                max: 1 << 40,
            },
            Setting {
                key: "prompts",
                help: "prompts that are remembered, to know them when they come back",
                default: 1 << 14,
                min: 0,
                max: 1 << 17,
            },
        ],
    };

    fn new(settings: &Settings) -> Self {
        Self {
            write_price: settings.get("write-price"),
            price: 0,
            replay_tokens: u32::MAX,
            classes: vec![Counts::default(); NAMESPACES * POSITIONS * LENGTHS],
            positions: [Counts::default(); POSITIONS],
            // At once: growing would cost an unlucky request the move of all.
            prompts: Vec::with_capacity(settings.get("prompts") as usize),
            most_prompts: settings.get("prompts") as usize,
            next: 0,
            by_key: BTreeMap::new(),
            asked: 0,
            lost: 0,
        }
    }
}

impl CheckpointPolicy for Adaptive {
    fn attach(&mut self, info: &CheckpointInfo) {
        self.replay_tokens = info.replay_tokens;
        self.price = ((u128::from(self.write_price) * u128::from(info.checkpoint_bytes)) >> 30) as u64;
    }

    /// Without keys nothing comes back: this is `events`.
    fn choose(&mut self, span: &Span, positions: &mut Vec<u32>) {
        self.choose_for(span, &Prompt::default(), positions);
    }

    fn choose_for(&mut self, span: &Span, prompt: &Prompt<'_>, positions: &mut Vec<u32>) {
        let start = span.start.saturating_sub(prompt.replayed_tokens);
        let returned = self.learn(span, prompt, start);
        let threshold = self.threshold();
        let junction = if span.junction == 0 { None } else { self.at_junction(span, prompt, start) };
        let end = if span.end > span.start { self.at_end(span, prompt, start, threshold, returned) } else { None };
        let chosen = junction.into_iter().chain(end);
        self.asked += chosen.clone().count() as u64;
        positions.extend(chosen);
        if self.asked >= HALVED_AT {
            self.asked /= 2;
            self.lost /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u32 = 128;

    fn policy(given: &[(&str, &str)]) -> Adaptive {
        let mut policy =
            Adaptive::new(&Settings::parse(Adaptive::DESCRIPTION.settings, given.iter().copied()).unwrap());
        let info = CheckpointInfo {
            capacity_checkpoints: 4,
            checkpoint_bytes: 1 << 20,
            block_bytes: 1 << 16,
            replay_tokens: 5_000,
        };
        policy.attach(&info);
        policy
    }

    /// A prompt of a conversation that matches some of its blocks and loads a checkpoint at others. Returns the blocks chosen.
    fn ask(policy: &mut Adaptive, conversation: u64, loaded: u32, matched: u32, end: u32) -> Vec<u32> {
        let keys = |blocks: u32| -> Vec<u64> {
            (blocks.saturating_sub(16)..blocks).map(|block| conversation << 32 | u64::from(block + 1)).collect()
        };
        let span = Span {
            start: loaded * BLOCK,
            end: end * BLOCK,
            prompt_tokens: end * BLOCK + 1,
            matched: matched * BLOCK,
            block_tokens: BLOCK,
            ..Span::default()
        };
        let mut positions = Vec::new();
        let prompt = Prompt { matched_keys: &keys(matched), end_keys: &keys(end), ..Prompt::default() };
        policy.choose_for(&span, &prompt, &mut positions);
        positions.iter().map(|position| position / BLOCK).collect()
    }

    #[test]
    fn a_checkpoint_is_not_put_where_the_next_turn_does_not_reach() {
        let mut policy = policy(&[]);
        assert_eq!(ask(&mut policy, 1, 0, 0, 50), [50], "as events does, while nothing is known");
        for conversation in 1..40 {
            ask(&mut policy, conversation, 0, 0, 50);
            ask(&mut policy, conversation, 0, 48, 80);
        }
        assert_eq!(ask(&mut policy, 99, 0, 0, 50), [48], "two blocks before the end each turn left the path");
    }

    #[test]
    fn a_turn_that_leaves_early_does_not_outweigh_many_that_do_not() {
        let mut policy = policy(&[]);
        for conversation in 1..100 {
            ask(&mut policy, conversation, 0, 0, 4);
            ask(&mut policy, conversation, 0, if conversation % 10 == 0 { 3 } else { 4 }, 60);
        }
        assert_eq!(ask(&mut policy, 999, 0, 0, 4), [4], "a block less would be computed again by nine of ten");
    }

    #[test]
    fn what_never_comes_back_does_not_push_out_what_does() {
        let mut policy = policy(&[]);
        // Long conversations come back and find their checkpoint gone; short prompts never do.
        for round in 0..200 {
            ask(&mut policy, 1_000 + round, 0, 0, 4);
            ask(&mut policy, round, 0, 0, 100);
            ask(&mut policy, round, 0, 100, 120);
        }
        assert_eq!(ask(&mut policy, 5_000, 0, 0, 4), []);
        assert_eq!(ask(&mut policy, 5_001, 0, 0, 100).len(), 1);
    }

    #[test]
    fn while_nothing_is_lost_no_checkpoint_is_refused() {
        let mut policy = policy(&[]);
        for round in 0..200 {
            assert_eq!(ask(&mut policy, 1_000 + round, 0, 0, 4).len(), 1);
            let chosen = ask(&mut policy, round, 0, 0, 100)[0];
            ask(&mut policy, round, chosen, 100, 120);
        }
    }

    #[test]
    fn a_price_does_not_let_what_saves_less_be_written() {
        // 1 MiB a checkpoint: 100 tokens each.
        let mut policy = policy(&[("write-price", "102400")]);
        for round in 0..100 {
            ask(&mut policy, round, 0, 0, 100);
        }
        assert_eq!(ask(&mut policy, 5_000, 0, 0, 100), []);
    }

    #[test]
    fn memory_does_not_grow_beyond_the_prompts_that_are_remembered() {
        let mut policy = policy(&[("prompts", "10")]);
        let reserved = policy.prompts.capacity();
        for conversation in 0..500 {
            ask(&mut policy, conversation % 90, 0, 0, 20 + (conversation % 7) as u32);
            assert!(policy.prompts.len() <= 10 && policy.by_key.len() <= 10 * PLACES.len());
            assert!(policy.by_key.values().all(|&at| at < policy.prompts.len()));
        }
        assert_eq!(policy.prompts.capacity(), reserved);
    }
}
