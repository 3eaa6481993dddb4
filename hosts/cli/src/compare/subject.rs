//! A trace that is compared on: decoded once, with all that is the same for every policy.

use std::collections::HashSet;

use reprise_core::Digest;

use super::Sessions;
use crate::{
    replay::{Grid, Misfit},
    trace::Trace,
};

/// One trace and what follows from it alone.
pub struct Subject {
    /// What to call it: its file name, or its path if two have that name.
    pub label: String,
    /// The trace.
    pub trace: Trace,
    /// Requests to replay, in their order.
    pub order: Vec<u32>,
    /// Which of them belong together.
    pub sessions: Sessions,
    /// Microseconds from the first arrival to the last.
    pub trace_us: u64,
    /// Tokens of all prompts.
    pub prompt_tokens: u64,
}

impl Subject {
    /// A trace of which the first `limit` requests are replayed, sessions starting `session_gap_us` apart.
    pub fn new(label: String, trace: Trace, limit: Option<usize>, session_gap_us: u64) -> Self {
        let mut order = trace.order_of_arrival(session_gap_us);
        order.truncate(limit.unwrap_or(usize::MAX));
        let arrival = |index: Option<&u32>| {
            index.map_or(0, |&index| trace.arrival_us(&trace.requests[index as usize], session_gap_us))
        };
        let trace_us = arrival(order.last()) - arrival(order.first());
        let prompt_tokens = order.iter().map(|&index| u64::from(trace.requests[index as usize].prompt_tokens)).sum();
        let sessions = Sessions::of(&trace, &order);
        Self { label, trace, order, sessions, trace_us, prompt_tokens }
    }

    /// What tells this trace from others: BLAKE3 of everything that a replay looks at, and of which requests it takes in what order.
    pub fn digest(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.trace.block_tokens.to_le_bytes());
        let mut bytes = Vec::new();
        for request in &self.trace.requests {
            let ids = self.trace.ids(request);
            bytes.clear();
            bytes.extend(request.time_us.to_le_bytes());
            for word in [request.session, request.scope, request.prompt_tokens, ids.len() as u32] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.extend(ids.iter().flat_map(|id| id.to_le_bytes()));
            hasher.update(&bytes);
        }
        bytes.clear();
        bytes.extend(self.order.iter().flat_map(|index| index.to_le_bytes()));
        hasher.update(&bytes).finalize()
    }

    /// Different blocks of `block_tokens` that the prompts have: what a cache that never evicts would hold.
    ///
    /// # Errors
    /// When the block size does not fit that of the trace.
    pub fn distinct_blocks(&self, block_tokens: u32) -> Result<u64, Misfit> {
        let grid = Grid::new(block_tokens, self.trace.block_tokens)?;
        let mut distinct: HashSet<Digest> = HashSet::new();
        let (mut names, mut before) = (Vec::new(), Vec::new());
        for &index in &self.order {
            let request = &self.trace.requests[index as usize];
            let ids = self.trace.ids(request);
            names.clear();
            let blocks = grid.complete_blocks(request.prompt_tokens, ids.len());
            grid.name_by_ids(request.scope, ids, blocks, &mut names);
            // Most of a prompt is that of the one before.
            let same = names.iter().zip(&before).take_while(|(name, before)| name == before).count();
            distinct.extend(&names[same..]);
            std::mem::swap(&mut names, &mut before);
        }
        Ok(distinct.len() as u64)
    }
}

/// How many budgets there are where none are given.
const BUDGETS: u32 = 6;

/// Powers of two that end with the first that holds all of `working_set_bytes`. None has less than `least_bytes`.
pub fn budgets(working_set_bytes: u64, least_bytes: u64) -> Vec<u64> {
    let most = working_set_bytes.max(least_bytes).max(1).next_power_of_two();
    (0..BUDGETS).rev().map(|halvings| most >> halvings).filter(|&budget| budget >= least_bytes.max(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::ReadOptions;

    fn subject(lines: &[(u32, u32, &[u32])]) -> Subject {
        let line = |&(time, tokens, ids): &(u32, u32, &[u32])| {
            format!("{{\"timestamp\":{time},\"input_length\":{tokens},\"hash_ids\":{ids:?}}}\n")
        };
        let text: String = lines.iter().map(line).collect();
        let trace = Trace::from_reader("t", text.as_bytes(), &ReadOptions::default()).unwrap();
        Subject::new("t".into(), trace, None, 0)
    }

    #[test]
    fn a_block_that_is_shared_is_not_counted_twice() {
        let subject = subject(&[(5, 1024, &[1, 2]), (9, 1536, &[1, 2, 3]), (7, 600, &[4, 5]), (8, 1024, &[1, 6])]);
        assert_eq!(subject.distinct_blocks(512).unwrap(), 5, "1, 12, 123, 4, 16");
        assert_eq!(subject.distinct_blocks(128).unwrap(), 20);
        assert_eq!(subject.distinct_blocks(1024).unwrap(), 2);
        assert!(subject.distinct_blocks(384).is_err());
        assert_eq!((subject.trace_us, subject.prompt_tokens), (4_000, 4_184));
        assert_eq!(subject.order, [0, 2, 3, 1]);
    }

    #[test]
    fn another_time_or_id_is_not_the_same_trace() {
        let one = subject(&[(5, 1024, &[1, 2])]).digest();
        for other in [&[(6, 1024, &[1, 2][..])][..], &[(5, 1023, &[1, 2])], &[(5, 1024, &[1, 3])], &[(5, 1024, &[1])]] {
            assert_ne!(one, subject(other).digest());
        }
        let part = |limit| {
            let lines = "{\"timestamp\":0,\"input_length\":600,\"hash_ids\":[1,2]}\n".repeat(2);
            let trace = Trace::from_reader("t", lines.as_bytes(), &ReadOptions::default()).unwrap();
            Subject::new("t".into(), trace, limit, 0).digest()
        };
        assert_ne!(part(Some(1)), part(None));
    }

    #[test]
    fn budgets_do_not_end_below_what_the_trace_asks_for() {
        assert_eq!(budgets(100, 1), [4, 8, 16, 32, 64, 128]);
        assert_eq!(budgets(128, 20), [32, 64, 128]);
        assert_eq!(budgets(0, 700), [1024], "one record has to fit");
    }
}
