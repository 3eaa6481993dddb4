//! Prices for room, and the search for good ones.

use super::{
    Room,
    demand::{Demand, Sizes},
};

/// Units of a price in a token.
const UNITS: i128 = 1 << 50;

/// Slices of time that have prices of their own.
const SLICES: usize = 1024;

/// Halvings of the range of one price for all gaps.
const BISECTIONS: u32 = 24;

/// Rounds of raising and lowering prices slice by slice.
const ROUNDS: u32 = 128;

/// The bound at fixed prices, as it depends on the room; in [`UNITS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// With no room at all.
    base: i128,
    /// More for each byte: of history, of windows.
    slopes: [i128; 2],
}

impl Line {
    /// The bound in `room`.
    pub fn tokens(&self, room: Room) -> u64 {
        u64::try_from(self.units(room) / UNITS).unwrap_or(u64::MAX)
    }

    fn units(&self, room: Room) -> i128 {
        let Self { base, slopes: [history, window] } = *self;
        let bytes = |slope: i128, bytes: u64| slope.saturating_mul(i128::from(bytes));
        let room = match room {
            // The policy splits it, so each byte may go where it is worth more.
            Room::Together(together) => bytes(history.max(window), together),
            Room::Apart { history: blocks, window: checkpoints } => {
                bytes(history, blocks).saturating_add(bytes(window, checkpoints))
            }
        };
        base.saturating_add(room)
    }
}

/// Prices by slice, of history and of windows, in units per byte and gap.
type Prices = [Vec<i128>; 2];

/// The search for prices on one trace.
pub(super) struct Market<'a> {
    demand: &'a Demand,
    /// The first gap of each slice, and the end.
    slices: Vec<usize>,
    /// Bytes that somebody could have use for at most, by slice.
    most_held: Prices,
    /// At this price nothing is worth its room.
    highest: i128,
}

/// What the requests take at some prices.
struct Trade {
    line: Line,
    /// Bytes times gaps, by slice.
    taken: Prices,
}

impl<'a> Market<'a> {
    pub fn new(demand: &'a Demand) -> Self {
        let Sizes { block, checkpoint, block_tokens, .. } = demand.sizes;
        let count = SLICES.min(demand.gaps).max(1);
        let slices: Vec<usize> = (0..=count).map(|slice| slice * demand.gaps / count).collect();
        let held = demand.most_held();
        let most_held = [(0, block), (1, checkpoint)].map(|(group, size)| {
            let most = |gaps: &[usize]| held[group][gaps[0]..gaps[1]].iter().copied().max().unwrap_or(0);
            slices.windows(2).map(|gaps| i128::from(most(gaps)) * i128::from(size)).collect()
        });
        let highest = i128::from(block_tokens) * UNITS / i128::from(block.max(1)) + 1;
        Self { demand, slices, most_held, highest }
    }

    /// The line at prices of 0: what is saved if nothing is ever evicted.
    pub fn unlimited(&self) -> Line {
        let free = vec![0; self.slices.len() - 1];
        self.trade(&[free.clone(), free]).line
    }

    /// The lowest line in `room` that the search finds.
    pub fn best(&self, room: Room) -> Line {
        let contended = self.contended(room);
        let flat = |price: i128| -> Prices {
            [0, 1].map(|group| contended[group].iter().map(|&contended| if contended { price } else { 0 }).collect())
        };
        let mut best = self.trade(&flat(self.highest)).line;
        let (mut low, mut high) = (0_i128, self.highest);
        for _ in 0..BISECTIONS {
            // In the middle by ratio: prices span many orders of magnitude.
            let middle = ((low.max(1) as f64) * (high as f64)).sqrt() as i128;
            let trade = self.trade(&flat(middle));
            best = lower(best, trade.line, room);
            let excess: i128 = self.excess(&trade, room).iter().flatten().map(|&(taken, there)| taken - there).sum();
            if excess > 0 { low = middle } else { high = middle }
        }
        let mut prices = flat(high);
        for round in 0..ROUNDS {
            let trade = self.trade(&prices);
            best = lower(best, trade.line, room);
            let step = 0.7 / f64::from(round + 1).sqrt();
            for (prices, excess) in prices.iter_mut().zip(self.excess(&trade, room)) {
                for (price, (taken, there)) in prices.iter_mut().zip(excess) {
                    let pull = (taken - there) as f64 / (there.max(1) as f64);
                    *price = (*price as f64 * (step * pull.clamp(-1.0, 1.0)).exp()) as i128;
                }
            }
        }
        best
    }

    /// Slices in which not everything fits that somebody could have use for, by group.
    fn contended(&self, room: Room) -> [Vec<bool>; 2] {
        let [history, window] = &self.most_held;
        match room {
            Room::Together(bytes) => {
                let contended: Vec<bool> =
                    history.iter().zip(window).map(|(history, window)| history + window > i128::from(bytes)).collect();
                [contended.clone(), contended]
            }
            Room::Apart { history: blocks, window: checkpoints } => [
                history.iter().map(|&held| held > i128::from(blocks)).collect(),
                window.iter().map(|&held| held > i128::from(checkpoints)).collect(),
            ],
        }
    }

    /// What is taken and what there is, by group and slice; of one budget for both, the same for both.
    fn excess(&self, trade: &Trade, room: Room) -> [Vec<(i128, i128)>; 2] {
        let [history, window] = &trade.taken;
        let there =
            |bytes: u64, slice: usize| i128::from(bytes) * (self.slices[slice + 1] - self.slices[slice]) as i128;
        match room {
            Room::Together(bytes) => {
                let sums = history.iter().zip(window).map(|(history, window)| history + window);
                let both: Vec<_> = sums.enumerate().map(|(slice, taken)| (taken, there(bytes, slice))).collect();
                [both.clone(), both]
            }
            Room::Apart { history: blocks, window: checkpoints } => {
                [(history, blocks), (window, checkpoints)].map(|(taken, bytes)| {
                    taken.iter().enumerate().map(|(slice, &taken)| (taken, there(bytes, slice))).collect()
                })
            }
        }
    }

    /// Each request takes what is best for it at these prices.
    fn trade(&self, prices: &Prices) -> Trade {
        let Sizes { block, checkpoint, replay_tokens, .. } = self.demand.sizes;
        let [history, window] = [0, 1].map(|group| self.up_to(&prices[group]));
        let mut changes = [vec![0_i128; self.demand.gaps + 1], vec![0_i128; self.demand.gaps + 1]];
        let mut base = 0;
        for (time, runs) in self.demand.asks() {
            let mut cost = 0;
            let (mut best, mut taken, mut with_checkpoint) = (0, 0, false);
            for (index, run) in runs.iter().enumerate() {
                let since = run.since as usize;
                cost += i128::from(run.blocks) * i128::from(block) * (history[time] - history[since]);
                let worth = i128::from(run.tokens) * UNITS - cost;
                let from_checkpoint = worth - i128::from(checkpoint) * (window[time] - window[since]);
                if from_checkpoint > best {
                    (best, taken, with_checkpoint) = (from_checkpoint, index + 1, true);
                }
                let by_replay = replay_tokens.map_or(0, |tokens| worth - i128::from(tokens) * UNITS);
                if by_replay > best {
                    (best, taken, with_checkpoint) = (by_replay, index + 1, false);
                }
            }
            base += best;
            for run in &runs[..taken] {
                let bytes = i128::from(run.blocks) * i128::from(block);
                changes[0][run.since as usize] += bytes;
                changes[0][time] -= bytes;
            }
            if with_checkpoint {
                changes[1][runs[taken - 1].since as usize] += i128::from(checkpoint);
                changes[1][time] -= i128::from(checkpoint);
            }
        }
        let slopes = [history, window].map(|sums| sums[self.demand.gaps]);
        Trade { line: Line { base, slopes }, taken: changes.map(|changes| self.by_slice(&changes)) }
    }

    /// Price of a byte in all gaps before each.
    fn up_to(&self, prices: &[i128]) -> Vec<i128> {
        let mut sums = Vec::with_capacity(self.demand.gaps + 1);
        let mut sum = 0;
        sums.push(0);
        for (gaps, price) in self.slices.windows(2).zip(prices) {
            for _ in gaps[0]..gaps[1] {
                sum += price;
                sums.push(sum);
            }
        }
        sums
    }

    /// What is there in each slice, summed over its gaps, from what changes at each gap.
    fn by_slice(&self, changes: &[i128]) -> Vec<i128> {
        let mut there = 0;
        let mut sum_of = |gaps: &[usize]| {
            changes[gaps[0]..gaps[1]].iter().fold(0, |sum, change| {
                there += change;
                sum + there
            })
        };
        self.slices.windows(2).map(&mut sum_of).collect()
    }
}

fn lower(one: Line, other: Line, room: Room) -> Line {
    if other.units(room) < one.units(room) { other } else { one }
}
