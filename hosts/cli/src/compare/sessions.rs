//! Which requests belong together, so that what a policy saves can be told by session.
//!
//! Formats with sessions say so. In the others a request goes on with the session of an earlier one if its prompt begins with all complete
//! blocks of that one's prompt, the last of which no request before that one had: a next turn repeats what was said before. Of several such
//! the longest counts. A prompt all of whose blocks were there before, none as somebody's last, begins a session of its own; so does one
//! without a complete block.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::trace::Trace;

/// Sessions whose figures are kept one by one: the largest.
pub const LARGEST: usize = 48;

/// Of what share of their tokens all sessions are told, in percent: so many are below.
pub const QUANTILES: [u32; 5] = [10, 25, 50, 75, 90];

/// The requests of a trace by session.
#[derive(Debug)]
pub struct Sessions {
    /// The session of each request, by its place in the trace.
    of: Vec<u32>,
    /// Tokens of the prompts of each session.
    prompt_tokens: Vec<u64>,
    /// Requests of each session.
    requests: Vec<u32>,
    /// The sessions with most tokens, most first, among equals the earlier first.
    largest: Vec<u32>,
    /// Whether the trace says what belongs together.
    pub stated: bool,
}

/// What one replay saved, by session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionFigures {
    /// Saved tokens of the largest sessions, in their order.
    pub largest_saved_tokens: Vec<u64>,
    /// Saved share of the tokens of a session, in millionths: of the sessions of more than one request, [`QUANTILES`] percent
    /// saved at most so much. Empty if there is none.
    pub saved_ppm: Vec<u32>,
}

impl Sessions {
    /// The sessions of the requests in `order`.
    pub fn of(trace: &Trace, order: &[u32]) -> Self {
        let stated = trace.sessions > 0;
        let mut of = vec![0; trace.requests.len()];
        let mut sessions = 0;
        if stated {
            let mut numbers = HashMap::new();
            for &index in order {
                let request = &trace.requests[index as usize];
                of[index as usize] = *numbers.entry(request.session).or_insert(sessions);
                sessions = numbers.len() as u32;
            }
        } else {
            let mut chains = Chains::default();
            for &index in order {
                of[index as usize] = chains.session(trace, index, &mut sessions);
            }
        }
        let mut prompt_tokens = vec![0; sessions as usize];
        let mut requests = vec![0; sessions as usize];
        for &index in order {
            let session = of[index as usize] as usize;
            prompt_tokens[session] += u64::from(trace.requests[index as usize].prompt_tokens);
            requests[session] += 1;
        }
        let mut largest: Vec<u32> = (0..sessions).collect();
        largest.sort_by_key(|&session| (std::cmp::Reverse(prompt_tokens[session as usize]), session));
        largest.truncate(LARGEST);
        Self { of, prompt_tokens, requests, largest, stated }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.prompt_tokens.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.prompt_tokens.is_empty()
    }

    /// How many have more than one request.
    pub fn of_several_requests(&self) -> usize {
        self.requests.iter().filter(|&&requests| requests > 1).count()
    }

    /// Prompt tokens and requests of the largest, in their order.
    pub fn largest(&self) -> Vec<(u64, u32)> {
        let sizes = |&session: &u32| (self.prompt_tokens[session as usize], self.requests[session as usize]);
        self.largest.iter().map(sizes).collect()
    }

    /// A sum for each session, of nothing yet.
    pub fn sums(&self) -> Vec<u64> {
        vec![0; self.len()]
    }

    /// Adds what the request at `index` saved.
    pub fn add(&self, sums: &mut [u64], index: u32, saved_tokens: u64) {
        sums[self.of[index as usize] as usize] += saved_tokens;
    }

    /// What these sums come to.
    pub fn figures(&self, sums: &[u64]) -> SessionFigures {
        let whole = self.prompt_tokens.iter().zip(&self.requests);
        let several = sums.iter().zip(whole).filter(|&(_, (&tokens, &requests))| requests > 1 && tokens > 0);
        let mut shares: Vec<u32> = several.map(|(&saved, (&tokens, _))| (saved * 1_000_000 / tokens) as u32).collect();
        shares.sort_unstable();
        let at = |percent: u32| shares.get((shares.len().saturating_sub(1) * percent as usize + 50) / 100).copied();
        SessionFigures {
            largest_saved_tokens: self.largest.iter().map(|&session| sums[session as usize]).collect(),
            saved_ppm: QUANTILES.iter().filter_map(|&percent| at(percent)).collect(),
        }
    }
}

/// Prompts as chains of blocks, and the sessions whose prompts end at them.
#[derive(Default)]
struct Chains {
    /// A block by the block before it and its id; scopes have roots of their own.
    blocks: HashMap<(u64, u32), u32>,
    /// The session of the request that brought a block and ended at it.
    ends: HashMap<u32, u32>,
}

impl Chains {
    /// The session of a request; a new one is the next of `sessions`.
    fn session(&mut self, trace: &Trace, index: u32, sessions: &mut u32) -> u32 {
        let request = &trace.requests[index as usize];
        let complete = (request.prompt_tokens / trace.block_tokens) as usize;
        let mut above = 1 << 32 | u64::from(request.scope);
        let (mut found, mut last_is_new) = (None, None);
        for &id in trace.ids(request).iter().take(complete) {
            // A trace has fewer than 2^32 ids.
            let next = self.blocks.len() as u32;
            let block = *self.blocks.entry((above, id)).or_insert(next);
            found = self.ends.get(&block).copied().or(found);
            last_is_new = Some((block, block == next));
            above = block.into();
        }
        let session = found.unwrap_or_else(|| {
            *sessions += 1;
            *sessions - 1
        });
        if let Some((block, true)) = last_is_new {
            self.ends.insert(block, session);
        }
        session
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::ReadOptions;

    fn flat(prompts: &[&[u32]]) -> Trace {
        let line =
            |ids: &&[u32]| format!("{{\"timestamp\":0,\"input_length\":{},\"hash_ids\":{ids:?}}}\n", ids.len() * 512);
        let text: String = prompts.iter().map(line).collect();
        Trace::from_reader("t", text.as_bytes(), &ReadOptions::default()).unwrap()
    }

    fn of(trace: &Trace) -> Vec<u32> {
        Sessions::of(trace, &trace.order_of_arrival(0)).of
    }

    #[test]
    fn chats_that_share_a_system_prompt_are_not_one_session() {
        // 1 is the system prompt.
        let trace = flat(&[&[1, 2], &[1, 3], &[1, 2, 4], &[1, 3, 5], &[1, 2, 4, 6], &[1, 7], &[]]);
        assert_eq!(of(&trace), [0, 1, 0, 1, 0, 2, 3]);
        // Somebody ends with the system prompt, which was there before: nobody follows him.
        let trace = flat(&[&[1, 2], &[1], &[1, 3]]);
        assert_eq!(of(&trace), [0, 1, 2]);
    }

    #[test]
    fn stated_sessions_are_not_guessed() {
        let text = r#"{"trace":"a","block_size":64}
{"t":0,"in":64,"ref":-1,"lcp":0,"new":[[1,1]]}
{"t":9,"in":64,"ref":-1,"lcp":0,"new":[[2,1]]}
{"trace":"b","block_size":64}
{"t":1,"in":128,"ref":-1,"lcp":0,"new":[[1,2]]}
"#;
        let trace = Trace::from_reader("t", text.as_bytes(), &ReadOptions::default()).unwrap();
        let order = trace.order_of_arrival(0);
        let sessions = Sessions::of(&trace, &order);
        assert!(sessions.stated);
        assert_eq!(sessions.of, [0, 0, 1]);
        assert_eq!(sessions.largest(), [(128, 2), (128, 1)]);
        let mut sums = sessions.sums();
        sessions.add(&mut sums, 1, 32);
        sessions.add(&mut sums, 2, 128);
        let figures = sessions.figures(&sums);
        assert_eq!(figures.largest_saved_tokens, [32, 128]);
        assert_eq!(figures.saved_ppm, [250_000; 5], "the session of one request saves nothing of its own");
    }
}
