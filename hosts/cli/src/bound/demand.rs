//! What the requests of a trace could save, and what must have been held for it.

/// All requests that can find something.
#[derive(Clone, Debug, Default)]
pub(super) struct Demand {
    pub sizes: Sizes,
    asks: Vec<Ask>,
    runs: Vec<Run>,
    /// Gaps before the last of them; gap 0 lies before request 1.
    pub gaps: usize,
}

/// What things take, and what a replay costs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sizes {
    /// Room for a block. Not 0.
    pub block: u64,
    /// Room for a checkpoint; 0 if none is needed to go on from a block.
    pub checkpoint: u64,
    /// Tokens that are computed again to go on without one; `None` if that is not allowed.
    pub replay_tokens: Option<u64>,
    /// Most tokens that a block saves.
    pub block_tokens: u64,
}

/// A request that can find something.
#[derive(Clone, Copy, Debug)]
struct Ask {
    time: u32,
    /// End of its runs; they begin where those of the one before end.
    end: u32,
}

/// Blocks in sequence on a path that were used last by the same request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The request that used them last, from 1.
    pub since: u32,
    pub blocks: u32,
    /// Tokens up to the end of the run: what is saved if everything so far is found.
    pub tokens: u64,
}

impl Demand {
    pub fn new(sizes: Sizes) -> Self {
        Self { sizes, ..Self::default() }
    }

    /// Adds a block to the path of the request at `time`. Blocks come first to last, requests in order; `since` is not 0, and `tokens` is what the
    /// request saves with all blocks so far.
    ///
    /// Only the end of a run is an option of its own. That loses nothing while each block of a run saves as much as the others: value and
    /// cost then grow along a line, and of a line no point in between is better than both ends. What lies before the first
    /// end of which a replay saves anything is on such a line, too. So a run ends where `tokens` grows by another number.
    pub fn push(&mut self, time: u32, since: u32, tokens: u64) {
        let opens = self.asks.last().is_none_or(|ask| ask.time != time);
        if opens {
            self.asks.push(Ask { time, end: self.runs.len() as u32 });
        }
        let first = self.first_run(self.asks.len() - 1);
        let before = self.runs[first..].len().checked_sub(2).map_or(0, |index| self.runs[first + index].tokens);
        match self.runs[first..].last_mut() {
            Some(run) if run.since == since && evenly(run, before, tokens) => {
                run.blocks += 1;
                run.tokens = tokens;
            }
            _ => self.runs.push(Run { since, blocks: 1, tokens }),
        }
        let end = self.runs.len() as u32; // a trace has fewer than 2^32 ids
        self.asks.last_mut().expect("one was opened").end = end;
        self.gaps = self.gaps.max(time as usize);
    }

    fn first_run(&self, ask: usize) -> usize {
        ask.checked_sub(1).map_or(0, |before| self.asks[before].end as usize)
    }

    /// The requests that can find something: when, and the runs of their paths, first to last.
    pub fn asks(&self) -> impl Iterator<Item = (usize, &[Run])> {
        let mut start = 0;
        self.asks.iter().map(move |ask| {
            let runs = &self.runs[start..ask.end as usize];
            start = ask.end as usize;
            (ask.time as usize, runs)
        })
    }

    /// Blocks, and checkpoints, that somebody could have use for in each gap. Of checkpoints a request has use for one.
    pub fn most_held(&self) -> [Vec<i64>; 2] {
        let mut held = [vec![0_i64; self.gaps + 1], vec![0_i64; self.gaps + 1]];
        for (time, runs) in self.asks() {
            for run in runs {
                held[0][run.since as usize] += i64::from(run.blocks);
                held[0][time] -= i64::from(run.blocks);
            }
            // Uses lie the further back the deeper the block.
            if let Some(last) = runs.last() {
                held[1][last.since as usize] += 1;
                held[1][time] -= 1;
            }
        }
        for changes in &mut held {
            let mut sum = 0;
            for change in changes {
                sum += *change;
                *change = sum;
            }
        }
        held
    }
}

/// Whether a block that brings a path to `tokens` saves what the others of its run do, which began at `before`.
fn evenly(run: &Run, before: u64, tokens: u64) -> bool {
    (tokens - run.tokens) * u64::from(run.blocks) == run.tokens - before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_used_apart_or_of_unequal_worth_never_share_a_run() {
        let mut demand = Demand::new(Sizes::default());
        for (time, since, tokens) in
            [(5, 4, 10), (5, 4, 20), (5, 4, 23), (5, 4, 24), (5, 4, 25), (5, 2, 26), (7, 2, 10)]
        {
            demand.push(time, since, tokens);
        }
        let run = |since, blocks, tokens| Run { since, blocks, tokens };
        let asks: Vec<_> = demand.asks().map(|(time, runs)| (time, runs.to_vec())).collect();
        let first = vec![run(4, 2, 20), run(4, 1, 23), run(4, 2, 25), run(2, 1, 26)];
        assert_eq!(asks, [(5, first), (7, vec![run(2, 1, 10)])]);
        assert_eq!(demand.most_held(), [vec![0, 0, 2, 2, 7, 1, 1, 0], vec![0, 0, 2, 2, 2, 1, 1, 0]]);
    }
}
