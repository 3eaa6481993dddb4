//! Making a trace: JSONL of token ids in, Mooncake lines with salted ids out, so that a trace can be shared without
//! giving its content away.
//!
//! A line of the input is one request: `{"t": seconds, "tokens": [ids], "session": "optional text", "output": count}`.
//! `timestamp` in milliseconds may stand for `t`. Requests share ids if and only if they have equal tokens from the
//! start on and the same `session`; leave `session` out to let all of them share. Other fields are ignored.
//!
//! A block is named by a keyed BLAKE3 chain over all tokens up to its end, the partial last block too. The digests do
//! not leave the program: each new one takes the next number of a secret permutation. What the made trace tells is when
//! requests came, how long they were, and which prefixes were equal.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::field::{List, Scalar, optional_count, required, required_list};
use super::read::parse;
use super::source::Source;
use super::{MAX_BLOCK_TOKENS, RecordFault, Salt, TraceError};

/// How a trace is to be made.
#[derive(Debug, Clone)]
pub struct MakeOptions {
    /// Tokens that one id stands for; Mooncake's own traces have 512. Whoever reads the trace must be told if it is
    /// another.
    pub block_tokens: u32,
    /// What the ids are salted with.
    pub salt: Salt,
    /// Leave bad lines out and count them.
    pub skip_bad: bool,
}

/// What was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Made {
    /// Lines written.
    pub requests: u64,
    /// Ids in all lines.
    pub blocks: u64,
    /// Distinct ids.
    pub distinct_blocks: u64,
    /// Bad lines left out.
    pub skipped: u64,
}

#[derive(Deserialize)]
struct TokenLine {
    t: Option<Scalar>,
    timestamp: Option<Scalar>,
    tokens: Option<List<u64>>,
    session: Option<Scalar>,
    output: Option<Scalar>,
}

#[derive(Serialize)]
struct MooncakeLine<'a> {
    timestamp: u64,
    input_length: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_length: Option<u32>,
    hash_ids: &'a [u32],
}

/// Reads token lines from `input` (`-` is standard input; gzip and Zstandard are understood) and writes Mooncake lines
/// to `output`, in the order of the input. Memory grows with the distinct blocks only, by about 40 bytes each.
///
/// # Errors
///
/// If the input cannot be read, the output not written, or a line is bad and [`MakeOptions::skip_bad`] is off. What was
/// written by then stays written.
pub fn make(input: &Path, output: &mut dyn Write, options: &MakeOptions) -> Result<Made, TraceError> {
    make_from(Source::open(input)?, output, options)
}

fn make_from(mut source: Source<'_>, output: &mut dyn Write, options: &MakeOptions) -> Result<Made, TraceError> {
    let tokens = options.block_tokens;
    if tokens == 0 || tokens > MAX_BLOCK_TOKENS {
        return Err(TraceError::BlockTokens { tokens });
    }
    source.head()?; // drops a byte order mark
    let mut ids = BlockNames::new(options);
    let mut made = Made::default();
    let mut hash_ids = Vec::new();
    while let Some(line) = source.next_line()? {
        match line.and_then(parse::<TokenLine>).and_then(Request::of) {
            Ok(request) => {
                ids.name_blocks(&request, &mut hash_ids)
                    .ok_or_else(|| TraceError::TooLarge { file: source.name.clone() })?;
                let line = MooncakeLine {
                    timestamp: request.time_ms,
                    input_length: request.tokens.len(),
                    output_length: request.output_tokens,
                    hash_ids: &hash_ids,
                };
                write_line(output, &line)?;
                made.requests += 1;
                made.blocks += hash_ids.len() as u64;
            }
            Err(_) if options.skip_bad => made.skipped += 1,
            Err(fault) => return Err(source.bad_line(fault)),
        }
    }
    output.flush().map_err(|source| TraceError::Write { source })?;
    if made.requests == 0 {
        return Err(TraceError::NoRequests { file: source.name, skipped: made.skipped });
    }
    made.distinct_blocks = ids.ids.len() as u64;
    Ok(made)
}

fn write_line(output: &mut dyn Write, line: &MooncakeLine<'_>) -> Result<(), TraceError> {
    let failed = |source| TraceError::Write { source };
    serde_json::to_writer(&mut *output, line).map_err(|error| failed(error.into()))?;
    output.write_all(b"\n").map_err(failed)
}

/// A good token line.
struct Request {
    time_ms: u64,
    tokens: Vec<u64>,
    session: Option<String>,
    output_tokens: Option<u32>,
}

impl Request {
    fn of(line: TokenLine) -> Result<Self, RecordFault> {
        let time_us = match (&line.t, &line.timestamp) {
            (None, Some(timestamp)) => timestamp.time_us("timestamp", 1e3)?,
            (t, _) => required(t, "t")?.time_us("t", 1e6)?,
        };
        let tokens = required_list(line.tokens, "tokens", "a list of token ids")?;
        if let Some(token) = tokens.iter().find(|&&token| token > u64::from(u32::MAX)) {
            let max = u64::from(u32::MAX);
            return Err(RecordFault::TooLarge { field: "tokens", value: token.to_string(), max });
        }
        if tokens.len() > super::MAX_PROMPT_TOKENS as usize {
            let max = u64::from(super::MAX_PROMPT_TOKENS);
            return Err(RecordFault::TooLarge { field: "tokens", value: format!("{} entries", tokens.len()), max });
        }
        let session = match line.session {
            None => None,
            Some(Scalar::Text(session)) => Some(session),
            Some(other) => return Err(other.mistyped("session", "text")),
        };
        Ok(Self { time_ms: (time_us + 500) / 1_000, tokens, session, output_tokens: optional_count(&line.output) })
    }
}

/// The ids given so far, by the digest of all that a block stands for.
struct BlockNames<'a> {
    salt: &'a Salt,
    block_tokens: usize,
    /// Half a digest tells blocks apart as well: a collision among 2^32 blocks has odds of 2^-65.
    ids: HashMap<[u8; 16], u32>,
}

impl<'a> BlockNames<'a> {
    fn new(options: &'a MakeOptions) -> Self {
        Self { salt: &options.salt, block_tokens: options.block_tokens as usize, ids: HashMap::new() }
    }

    /// Fills `hash_ids` with the ids of a prompt's blocks; none if there are more than 2^32 distinct ones.
    fn name_blocks(&mut self, request: &Request, hash_ids: &mut Vec<u32>) -> Option<()> {
        hash_ids.clear();
        let mut digest = match &request.session {
            None => self.salt.hash(&[b"all"]),
            Some(session) => self.salt.hash(&[b"session", session.as_bytes()]),
        };
        let mut bytes = Vec::with_capacity(4 * self.block_tokens);
        for block in request.tokens.chunks(self.block_tokens) {
            bytes.clear();
            bytes.extend(block.iter().flat_map(|&token| (token as u32).to_le_bytes()));
            digest = self.salt.hash(&[b"block", &digest, &bytes]);
            let mut name = [0; 16];
            name.copy_from_slice(&digest[..16]);
            let next = u32::try_from(self.ids.len()).ok()?;
            let id = *self.ids.entry(name).or_insert_with(|| self.salt.shuffle(next));
            hash_ids.push(id);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{ReadOptions, Trace};

    fn options(phrase: &str, block_tokens: u32) -> MakeOptions {
        MakeOptions { block_tokens, salt: Salt::from_phrase(phrase), skip_bad: false }
    }

    fn make_text(input: &str, options: &MakeOptions) -> Result<String, String> {
        let mut output = Vec::new();
        let source = Source::new("tokens.jsonl".into(), input.as_bytes()).unwrap();
        make_from(source, &mut output, options).map_err(|error| error.to_string())?;
        Ok(String::from_utf8(output).unwrap())
    }

    fn read(text: &str, block_tokens: u32) -> Trace {
        let options = ReadOptions { block_tokens: Some(block_tokens), ..ReadOptions::default() };
        Trace::from_reader("made.jsonl", text.as_bytes(), &options).unwrap()
    }

    const INPUT: &str = r#"{"t": 0, "tokens": [1, 2, 3, 4, 5, 6, 7, 8]}
{"t": 1.2346, "tokens": [1, 2, 3, 4, 5, 6, 7, 9], "output": 12}
{"timestamp": 1500, "tokens": [1, 2, 3, 4, 5, 6], "other": {}}
{"t": 2, "tokens": [9, 2, 3, 4, 5, 6, 7, 8]}
{"t": 3, "tokens": [1, 2, 3, 4, 5, 6, 7, 8], "session": "a"}
{"t": 4, "tokens": [1, 2, 3, 4], "session": "a"}
{"t": 5, "tokens": []}
"#;

    #[test]
    fn ids_are_equal_if_and_only_if_the_prefixes_are() {
        let trace = read(&make_text(INPUT, &options("p", 4)).unwrap(), 4);
        let lines: Vec<serde_json::Value> = INPUT.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let mut named = Vec::new(); // (session, tokens up to the block's end, id)
        for (line, request) in lines.iter().zip(&trace.requests) {
            let tokens = line["tokens"].as_array().unwrap();
            assert_eq!(trace.ids(request).len(), tokens.len().div_ceil(4), "the partial block has an id too");
            for (index, &id) in trace.ids(request).iter().enumerate() {
                named.push((&line["session"], &tokens[..tokens.len().min(4 * index + 4)], id));
            }
        }
        assert_eq!(named.len(), 11);
        for a in &named {
            for b in &named {
                assert_eq!((a.0, a.1) == (b.0, b.1), a.2 == b.2, "{a:?} {b:?}");
            }
        }
        let times: Vec<_> = trace.requests.iter().map(|r| (r.time_us, r.prompt_tokens, r.output_tokens)).collect();
        assert_eq!(times[..3], [(0, 8, None), (1_235_000, 8, Some(12)), (1_500_000, 6, None)]);
    }

    #[test]
    fn the_ids_of_two_salts_have_nothing_in_common() {
        let [a, again, b] = ["p", "p", "q"].map(|phrase| make_text(INPUT, &options(phrase, 4)).unwrap());
        assert_eq!(a, again);
        let ids = |text: &str| -> Vec<u32> {
            let trace = read(text, 4);
            trace.requests.iter().flat_map(|r| trace.ids(r).to_vec()).collect()
        };
        let (a, b) = (ids(&a), ids(&b));
        assert!(a.iter().all(|id| !b.contains(id)));
        assert!(a.iter().any(|&id| id > 1_000), "ids do not tell the order of first appearance: {a:?}");
    }

    #[test]
    fn a_bad_token_line_is_never_made_into_a_request() {
        for (bad, reason) in [
            ("tokens", "bad JSON: expected"),
            (r#"{"tokens": [1]}"#, "missing field `t`"),
            (r#"{"t": 1}"#, "missing field `tokens`"),
            (r#"{"t": -1, "tokens": [1]}"#, "`t` is negative: -1"),
            (r#"{"timestamp": "x", "tokens": [1]}"#, "`timestamp` is a string, not a number"),
            (r#"{"t": 1, "tokens": "text"}"#, "`tokens` is a string, not a list of token ids"),
            (r#"{"t": 1, "tokens": [1, -100]}"#, "`tokens` is negative: -100 (entry 1)"),
            (r#"{"t": 1, "tokens": [4294967296]}"#, "`tokens` is out of range: 4294967296"),
            (r#"{"t": 1, "tokens": [1], "session": 7}"#, "`session` is 7, not text"),
        ] {
            let input = format!("{INPUT}{bad}\n");
            let message = make_text(&input, &options("p", 4)).expect_err(bad);
            assert!(message.starts_with(&format!("tokens.jsonl:8: {reason}")), "{bad}\n gives {message}");
            let skipping = MakeOptions { skip_bad: true, ..options("p", 4) };
            let source = Source::new("tokens.jsonl".into(), input.as_bytes()).unwrap();
            let made = make_from(source, &mut std::io::sink(), &skipping).unwrap();
            assert_eq!(made, Made { requests: 7, blocks: 11, distinct_blocks: 8, skipped: 1 });
        }
        assert_eq!(
            make_text("\n", &options("p", 4)).unwrap_err(),
            "tokens.jsonl holds no requests (0 bad records skipped)"
        );
        assert!(make_text(INPUT, &options("p", 0)).unwrap_err().contains("out of range"));
    }

    #[test]
    fn a_full_disk_is_never_success() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let source = Source::new("tokens.jsonl".into(), INPUT.as_bytes()).unwrap();
        let message = make_from(source, &mut Full, &options("p", 4)).unwrap_err().to_string();
        assert!(message.starts_with("cannot write the made trace: "), "{message}");
    }
}
