//! Request traces: reading the public formats into one compact form, and making traces of one's own.
//!
//! [`Trace::read`] takes any of the formats of [`Format`], plain or compressed. What it gives is small and quick to walk:
//! requests in file order, each with a slice of block ids ([`Trace::ids`]); [`Trace::order_of_arrival`] says in which
//! order they are to be replayed. [`make`] writes Mooncake lines whose ids give no content away.

#[cfg(test)]
mod bad_records;
mod error;
mod field;
mod flat;
mod format;
mod ids;
mod kv_cache_tester;
pub mod make;
mod read;
mod salt;
mod sessions;
mod source;

pub use error::{Place, RecordFault, TraceError};
pub use format::{Format, UnknownFormat};
pub use read::ReadOptions;
pub use salt::Salt;

use ids::{BlockIds, Span};

/// Most tokens a prompt may have. Several times the longest context in use; it bounds what one short line can ask for.
pub const MAX_PROMPT_TOKENS: u32 = 1 << 26;

/// Most tokens a block of a trace may span.
pub const MAX_BLOCK_TOKENS: u32 = 1 << 20;

/// A decoded trace: its requests in file order and the ids of their blocks.
#[derive(Debug)]
pub struct Trace {
    /// What the trace is called in messages and tables: its file name.
    pub name: String,
    /// The format it was read from.
    pub format: Format,
    /// Tokens that one id stands for (S in the rules of a replay).
    pub block_tokens: u32,
    /// How many sessions it has; 0 if the format has none and every time counts from the start of the trace.
    pub sessions: u32,
    /// The requests, in file order.
    pub requests: Vec<Request>,
    /// Bad records left out ([`ReadOptions::skip_bad`]).
    pub skipped: u64,
    ids: BlockIds,
}

/// One request of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Microseconds since the start of its session, or of the trace if that has no sessions; rounded.
    pub time_us: u64,
    /// The session it belongs to, from 0 in file order; 0 if the trace has no sessions.
    pub session: u32,
    /// The scope of its ids: equal ids mean equal content only within one scope. 0 for ids that the whole trace shares,
    /// else the session + 1.
    pub scope: u32,
    /// Tokens of the prompt (N). May be 0; at most [`MAX_PROMPT_TOKENS`].
    pub prompt_tokens: u32,
    /// Tokens of the answer, where the trace says so.
    pub output_tokens: Option<u32>,
    span: Span,
}

impl Trace {
    /// The block ids of a request of this trace, first block first. There may be fewer or more than the prompt has
    /// blocks; the last may stand for a partial block.
    ///
    /// # Panics
    ///
    /// May panic, or give ids of something else, if `request` is of another trace.
    pub fn ids(&self, request: &Request) -> &[u32] {
        self.ids.get(request.span)
    }

    /// When a request arrives, in microseconds, if sessions start `session_gap_us` apart in file order. Saturates.
    pub fn arrival_us(&self, request: &Request, session_gap_us: u64) -> u64 {
        u64::from(request.session).saturating_mul(session_gap_us).saturating_add(request.time_us)
    }

    /// Indices into [`Trace::requests`] in order of arrival; ties stay in file order.
    pub fn order_of_arrival(&self, session_gap_us: u64) -> Vec<u32> {
        let count = u32::try_from(self.requests.len()).expect("the reader admits fewer than 2^32 requests");
        let mut order: Vec<u32> = (0..count).collect();
        order.sort_by_key(|&index| self.arrival_us(&self.requests[index as usize], session_gap_us));
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Trace {
        Trace::from_reader("t.jsonl", text.as_bytes(), &ReadOptions::default()).expect("a good trace")
    }

    #[test]
    fn requests_that_arrive_together_do_not_swap() {
        let line = |t, n| format!("{{\"timestamp\":{t},\"input_length\":{n},\"hash_ids\":[]}}\n");
        let trace = read(&[line("30", 0), line("10", 1), line("30", 2), line("10", 3), line("20.5", 4)].concat());
        assert_eq!(trace.order_of_arrival(120_000_000), [1, 3, 4, 0, 2]);
        assert_eq!(trace.requests[4].time_us, 20_500);
    }

    #[test]
    fn sessions_do_not_all_start_at_once() {
        let text = r#"{"trace":"a","block_size":64}
{"t":0,"in":1,"ref":-1,"lcp":0,"new":[]}
{"t":7.25,"in":2,"ref":-1,"lcp":0,"new":[]}
{"trace":"b","block_size":64}
{"t":0,"in":3,"ref":-1,"lcp":0,"new":[]}
{"t":2,"in":4,"ref":-1,"lcp":0,"new":[]}
"#;
        let trace = read(text);
        for (gap_us, order) in [(0, [0, 2, 3, 1]), (5_000_000, [0, 2, 3, 1]), (6_000_000, [0, 2, 1, 3])] {
            assert_eq!(trace.order_of_arrival(gap_us), order, "gap {gap_us} us");
        }
        assert_eq!(trace.arrival_us(&trace.requests[3], 120_000_000), 122_000_000);
        assert_eq!(trace.arrival_us(&trace.requests[3], u64::MAX), u64::MAX);
    }

    #[test]
    fn the_bundled_sample_is_never_unreadable() {
        let trace = Trace::sample().expect("the sample is part of the program");
        assert_eq!((trace.requests.len(), trace.sessions, trace.block_tokens), (36, 5, 64));
        assert_eq!(trace.requests.iter().map(|r| u64::from(r.prompt_tokens)).sum::<u64>(), 1_196_295);
    }
}
