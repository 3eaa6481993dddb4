//! The prompts of a trace as paths in one prefix tree whose blocks are numbered in order of first appearance.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use super::UntypedError;
use crate::trace::{Request, Trace};

/// Stands for the parent of a first block.
pub(super) const ROOT: u32 = u32::MAX;

/// The prompts of a trace, to be replayed any number of times.
///
/// A path is kept as its last block: the others are its ancestors. That is far smaller than the trace's ids, as most blocks of a
/// prompt are those of an earlier one.
pub struct Paths {
    block_tokens: u32,
    elapsed: Duration,
    /// The parent of each block, [`ROOT`] for a first block. A parent's number is smaller than its child's.
    parents: Vec<u32>,
    requests: Vec<Path>,
}

struct Path {
    last: u32,
    len: u32,
    prompt_tokens: u32,
}

impl Paths {
    /// The paths of the requests that have tokens and ids, in file order; only the first `limit` of those, if there is a limit.
    ///
    /// Memory: at most about 60 bytes per distinct block while they are numbered, 4 after that.
    ///
    /// # Errors
    /// When no request is left.
    pub fn of(trace: &Trace, limit: Option<usize>) -> Result<Self, UntypedError> {
        let start = Instant::now();
        if limit == Some(0) {
            return Err(UntypedError::NoRequests);
        }
        let limit = limit.unwrap_or(usize::MAX);
        let mut paths = Self {
            block_tokens: trace.block_tokens,
            elapsed: Duration::ZERO,
            parents: Vec::new(),
            requests: Vec::new(),
        };
        let mut children: HashMap<(u64, u32), u32> = HashMap::new();
        // Prompts of a session follow each other and share most of what they say: what a path shares with the one before it is
        // found by comparing, without the table.
        let mut path: Vec<u32> = Vec::new();
        let mut before: (u32, &[u32]) = (0, &[]);
        let replayed = |request: &&Request| request.prompt_tokens > 0 && !trace.ids(request).is_empty();
        for request in trace.requests.iter().filter(replayed).take(limit) {
            let ids = trace.ids(request);
            let same = ids.iter().zip(before.1).take_while(|(id, before)| id == before).count();
            path.truncate(if before.0 == request.scope { same } else { 0 });
            for &id in &ids[path.len()..] {
                // Equal ids of two scopes are different blocks: each scope has a root of its own, beyond all blocks.
                let parent = path.last().copied();
                let above = parent.map_or(u64::from(ROOT) + u64::from(request.scope), u64::from);
                // Fewer than 2^32, as a trace has fewer ids.
                let next = paths.parents.len() as u32;
                let block = *children.entry((above, id)).or_insert(next);
                if block == next {
                    paths.parents.push(parent.unwrap_or(ROOT));
                }
                path.push(block);
            }
            let last = path[path.len() - 1];
            paths.requests.push(Path { last, len: path.len() as u32, prompt_tokens: request.prompt_tokens });
            before = (request.scope, ids);
        }
        if paths.requests.is_empty() {
            return Err(UntypedError::NothingToReplay { trace: trace.name.clone() });
        }
        paths.elapsed = start.elapsed();
        Ok(paths)
    }

    /// Time it took to number the blocks.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// Tokens of a complete block.
    pub fn block_tokens(&self) -> u32 {
        self.block_tokens
    }

    /// How many paths there are, one a request; at least one.
    pub fn requests(&self) -> usize {
        self.requests.len()
    }

    /// How many different blocks they have.
    pub fn blocks(&self) -> u32 {
        self.parents.len() as u32
    }

    /// The parent of each block, [`ROOT`] for a first block.
    pub(super) fn parents(&self) -> &[u32] {
        &self.parents
    }

    /// Blocks of a request; at least one.
    pub fn len(&self, request: usize) -> usize {
        self.requests[request].len as usize
    }

    /// Tokens of the first `blocks` blocks of a request: the sum of max(1, min(S, N - i·S)).
    pub(super) fn leading_tokens(&self, request: usize, blocks: usize) -> u64 {
        leading_tokens(self.requests[request].prompt_tokens, self.block_tokens, blocks as u64)
    }

    /// The blocks of a request, last to first.
    pub(super) fn upwards(&self, request: usize) -> impl Iterator<Item = u32> {
        let first = Some(self.requests[request].last);
        std::iter::successors(first, |&block| Some(self.parents[block as usize]).filter(|&parent| parent != ROOT))
    }

    /// Puts the numbers of the blocks of a request, first to last, in the place of what `path` held.
    pub fn fill(&self, request: usize, path: &mut Vec<u32>) {
        path.resize(self.len(request), ROOT);
        for (place, block) in path.iter_mut().rev().zip(self.upwards(request)) {
            *place = block;
        }
    }
}

fn leading_tokens(prompt_tokens: u32, block_tokens: u32, blocks: u64) -> u64 {
    let (prompt_tokens, block_tokens) = (u64::from(prompt_tokens), u64::from(block_tokens));
    let complete = blocks.min(prompt_tokens / block_tokens);
    match blocks - complete {
        0 => complete * block_tokens,
        // The partial block, and 1 for every id beyond the prompt.
        others => complete * block_tokens + (prompt_tokens % block_tokens).max(1) + (others - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::ReadOptions;

    #[test]
    fn neither_partial_blocks_nor_surplus_ids_count_the_wrong_number_of_tokens() {
        for prompt_tokens in 1..40_u32 {
            for block_tokens in 1..9 {
                let weight = |i: u32| prompt_tokens.saturating_sub(i * block_tokens).clamp(1, block_tokens);
                for blocks in 0..45 {
                    let sum = (0..blocks).map(|i| u64::from(weight(i))).sum::<u64>();
                    let tokens = leading_tokens(prompt_tokens, block_tokens, u64::from(blocks));
                    assert_eq!(tokens, sum, "{blocks} blocks of {block_tokens} in {prompt_tokens} tokens");
                }
            }
        }
    }

    #[test]
    fn equal_ids_of_two_sessions_or_two_paths_are_never_one_block() {
        let text = r#"{"trace":"a","block_size":64}
{"t":0,"in":192,"ref":-1,"lcp":0,"new":[[5,3]]}
{"t":1,"in":192,"ref":0,"lcp":1,"new":[[7,1],[6,1]]}
{"t":2,"in":0,"ref":0,"lcp":1,"new":[]}
{"t":3,"in":64,"ref":-1,"lcp":0,"new":[]}
{"t":4,"in":192,"ref":0,"lcp":3,"new":[]}
{"trace":"b","block_size":64}
{"t":0,"in":128,"ref":-1,"lcp":0,"new":[[5,2]]}
"#;
        let trace = Trace::from_reader("t", text.as_bytes(), &ReadOptions::default()).unwrap();
        let all = |limit| -> Vec<Vec<u32>> {
            let paths = Paths::of(&trace, Some(limit)).unwrap();
            let mut path = vec![99; 7];
            (0..paths.requests())
                .map(|request| {
                    paths.fill(request, &mut path);
                    path.clone()
                })
                .collect()
        };
        // The third has no tokens, the fourth no ids.
        assert_eq!(all(9), [vec![0, 1, 2], vec![0, 3, 4], vec![0, 1, 2], vec![5, 6]]);
        assert_eq!(all(3), [vec![0, 1, 2], vec![0, 3, 4], vec![0, 1, 2]]);
    }
}
