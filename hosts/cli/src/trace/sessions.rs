//! The session re-coding of kv-cache-tester traces: a header line, then one line per request that names an earlier
//! request of the session, how many of its ids it shares, and its own ids as runs:
//! `ids = ids(ref)[..lcp] ++ expand(new)`.

use serde::Deserialize;

use super::field::{List, Scalar, optional_count, required, required_list};
use super::ids::Span;
use super::read::{Builder, Row, parse, prompt_tokens};
use super::source::Source;
use super::{RecordFault, TraceError};

/// Ids that a line may have beyond the blocks of its prompt. More is no use to anyone, and a short line could ask for
/// any amount.
const SURPLUS_IDS: u64 = 1 << 10;

/// A header has the first two fields, a request the others.
#[derive(Deserialize)]
struct Line {
    trace: Option<Scalar>,
    block_size: Option<Scalar>,
    t: Option<Scalar>,
    #[serde(rename = "in")]
    prompt: Option<Scalar>,
    out: Option<Scalar>,
    #[serde(rename = "ref")]
    reference: Option<Scalar>,
    lcp: Option<Scalar>,
    new: Option<List<(u64, u64)>>,
}

impl Line {
    fn is_header(&self) -> bool {
        self.trace.is_some() || self.block_size.is_some()
    }
}

/// The session in hand.
struct Session {
    number: u32,
    header_good: bool,
    /// The ids of each request line so far; none for a bad one.
    spans: Vec<Option<Span>>,
}

/// Reads all sessions into `builder`.
pub(super) fn read(source: &mut Source<'_>, builder: &mut Builder) -> Result<(), TraceError> {
    let mut session: Option<Session> = None;
    while let Some(line) = source.next_line()? {
        let line = line.and_then(parse::<Line>);
        let is_header = match &line {
            Ok(line) => line.is_header(),
            // A header that cannot be parsed still ends the session before it.
            Err(_) => source.line_contains("\"trace\"") || source.line_contains("\"block_size\""),
        };
        let fault = if is_header {
            let header = line.and_then(|line| {
                required(&line.trace, "trace")?;
                builder.state_block(&line.block_size)
            });
            session = Some(Session { number: builder.begin_session(), header_good: header.is_ok(), spans: Vec::new() });
            header.err()
        } else {
            let request = line.and_then(|line| request(line, session.as_ref(), builder));
            let (span, fault) = match request {
                Ok(Parsed { row, shared, own_len, runs }) => {
                    let ids = runs.into_iter().flat_map(|(first, count)| (0..count).map(move |offset| first + offset));
                    (Some(builder.push_shared(row, shared, own_len, ids)?), None)
                }
                Err(fault) => (None, Some(fault)),
            };
            if let Some(session) = &mut session {
                session.spans.push(span);
            }
            fault
        };
        if let Some(fault) = fault {
            builder.bad(source.bad_line(fault))?;
        }
    }
    Ok(())
}

/// A good request line.
struct Parsed {
    row: Row,
    shared: Option<(Span, u32)>,
    own_len: usize,
    runs: Vec<(u64, u64)>,
}

fn request(line: Line, session: Option<&Session>, builder: &Builder) -> Result<Parsed, RecordFault> {
    let session = session.ok_or(RecordFault::NoHeader)?;
    if !session.header_good {
        return Err(RecordFault::BadHeader);
    }
    let row = Row {
        time_us: required(&line.t, "t")?.time_us("t", 1e6)?,
        session: session.number,
        scope: session.number + 1,
        prompt_tokens: prompt_tokens(&line.prompt, "in")?,
        output_tokens: optional_count(&line.out),
    };
    let shared = shared(&line, session)?;
    let runs = required_list(line.new, "new", "a list of runs [first id, count]")?;
    let mut ids = 0_u64;
    for &(first, count) in &runs {
        if first.checked_add(count).is_none() {
            return Err(RecordFault::TooLarge { field: "new", value: format!("{first} + {count}"), max: u64::MAX });
        }
        ids = ids.saturating_add(count);
    }
    let blocks = builder.blocks(row.prompt_tokens);
    if ids > u64::from(blocks) + SURPLUS_IDS {
        return Err(RecordFault::RunsTooLong { ids, prompt_tokens: row.prompt_tokens, blocks });
    }
    Ok(Parsed { row, shared, own_len: ids as usize, runs })
}

/// What a line shares with an earlier one; none if `ref` is -1.
fn shared(line: &Line, session: &Session) -> Result<Option<(Span, u32)>, RecordFault> {
    let reference = required(&line.reference, "ref")?;
    let lcp = required(&line.lcp, "lcp")?.count("lcp", u64::from(u32::MAX))?;
    if matches!(reference, Scalar::Negative(-1)) {
        return if lcp == 0 { Ok(None) } else { Err(RecordFault::LcpWithoutRef(lcp)) };
    }
    let reference = reference.count("ref", u64::MAX)?;
    let index = session.spans.len() as u64;
    let span = usize::try_from(reference).ok().and_then(|reference| session.spans.get(reference));
    let span = span.ok_or(RecordFault::RefNotEarlier { reference, index })?;
    let span = span.ok_or(RecordFault::RefSkipped(reference))?;
    if lcp > u64::from(span.len) {
        return Err(RecordFault::LcpTooLong { lcp, reference, len: span.len });
    }
    Ok(Some((span, lcp as u32)))
}

#[cfg(test)]
mod tests {
    use crate::trace::{ReadOptions, Trace};
    use proptest::prelude::*;

    /// Prompts of a session, each grown from a prefix of an earlier one.
    fn session() -> impl Strategy<Value = Vec<Vec<u64>>> {
        let grow = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), prop::collection::vec(1..40_u64, 0..6));
        prop::collection::vec(grow, 1..12).prop_map(|growth| {
            let mut prompts: Vec<Vec<u64>> = vec![vec![]];
            for (from, keep, own) in growth {
                let from = from.get(&prompts);
                prompts.push([&from[..keep.index(from.len() + 1)], &own].concat());
            }
            prompts
        })
    }

    /// The re-coding of `data/README`: the first earlier prompt with the longest common prefix, and the rest as runs.
    fn recode(prompts: &[Vec<u64>]) -> String {
        let mut text = String::from("{\"trace\": \"x\", \"block_size\": 64}\n");
        for (index, prompt) in prompts.iter().enumerate() {
            let lcp = |other: &Vec<u64>| other.iter().zip(prompt).take_while(|(a, b)| a == b).count();
            let (mut reference, mut shared) = (-1, 0);
            for (earlier, other) in prompts[..index].iter().enumerate() {
                if lcp(other) > shared {
                    (reference, shared) = (earlier as i64, lcp(other));
                }
            }
            let mut runs: Vec<[u64; 2]> = Vec::new();
            for &id in &prompt[shared..] {
                match runs.last_mut() {
                    Some([first, count]) if *first + *count == id => *count += 1,
                    _ => runs.push([id, 1]),
                }
            }
            let tokens = prompt.len() * 64;
            text += &format!(r#"{{"t":{index}.5,"in":{tokens},"ref":{reference},"lcp":{shared},"new":{runs:?}}}"#);
            text += "\n";
        }
        text
    }

    fn read(text: &str) -> Trace {
        Trace::from_reader("t.jsonl", text.as_bytes(), &ReadOptions::default()).unwrap()
    }

    proptest! {
        #[test]
        fn no_id_is_lost_in_the_re_coding(sessions in prop::collection::vec(session(), 1..4)) {
            let recoded = read(&sessions.iter().map(|prompts| recode(prompts)).collect::<String>());
            let written_out: String = sessions
                .iter()
                .map(|prompts| {
                    let requests: Vec<String> = prompts
                        .iter()
                        .enumerate()
                        .map(|(i, ids)| format!(r#"{{"t":{i}.5,"in":{},"hash_ids":{ids:?}}}"#, ids.len() * 64))
                        .collect();
                    format!("{{\"block_size\":64,\"requests\":[{}]}}\n", requests.join(","))
                })
                .collect();
            let original = read(&written_out);
            let prompts: Vec<&Vec<u64>> = sessions.iter().flatten().collect();
            prop_assert_eq!(recoded.requests.len(), prompts.len());
            for ((a, b), prompt) in recoded.requests.iter().zip(&original.requests).zip(prompts) {
                let ids: Vec<u64> = recoded.ids(a).iter().map(|&id| u64::from(id)).collect();
                prop_assert_eq!(&ids, prompt);
                prop_assert_eq!(recoded.ids(a), original.ids(b));
                prop_assert_eq!((a.time_us, a.session, a.scope, a.prompt_tokens), (b.time_us, b.session, b.scope, b.prompt_tokens));
            }
        }
    }

    #[test]
    fn surplus_ids_are_kept_for_the_lines_that_share_them() {
        let trace = read(
            r#"{"trace": "x", "block_size": 64}
{"t":0,"in":64,"ref":-1,"lcp":0,"new":[[1,9]]}
{"t":1,"in":640,"ref":0,"lcp":9,"new":[[20,1]]}
"#,
        );
        assert_eq!(trace.ids(&trace.requests[1]), [1, 2, 3, 4, 5, 6, 7, 8, 9, 20]);
    }
}
