//! What happens to traces that are not what they should be: every message names file, line and reason; nothing panics.

use std::fmt::Write;

use proptest::prelude::*;

use super::source::gzip;
use super::{Format, ReadOptions, Trace};

const SKIP: ReadOptions = ReadOptions { format: None, block_tokens: None, skip_bad: true };

fn read(text: &[u8], options: &ReadOptions) -> Result<Trace, String> {
    Trace::from_reader("t.jsonl", text, options).map_err(|error| error.to_string())
}

/// Reads `good`, then `bad`, then `good`: the message must name line 2, and skipping must leave the good ones.
fn check(format: Format, good: &str, bad: &str, reason: &str) {
    let text = [good, "\n", bad, "\n", good, "\n"].concat();
    let options = ReadOptions { format: Some(format), ..ReadOptions::default() };
    let message = read(text.as_bytes(), &options).expect_err(bad);
    let expected = format!("t.jsonl:2: {reason}");
    assert!(message.starts_with(&expected), "{bad}\n  gives {message}\n  not   {expected}");
    let trace = read(text.as_bytes(), &ReadOptions { skip_bad: true, ..options }).expect(bad);
    assert_eq!((trace.requests.len(), trace.skipped), (2, 1), "{bad}");
}

#[test]
fn a_bad_line_of_a_flat_trace_is_never_taken_for_a_request() {
    let good = r#"{"timestamp": 5, "input_length": 600, "hash_ids": [1, 2]}"#;
    let line = |timestamp: &str, length: &str, ids: &str| {
        format!(r#"{{"timestamp": {timestamp}, "input_length": {length}, "hash_ids": {ids}}}"#)
    };
    for (bad, reason) in [
        ("not json".into(), "bad JSON: expected ident at column 2"),
        (r#"{"timestamp": 5, "input_length": 6"#.into(), "bad JSON: EOF while parsing an object at column"),
        ("[1, 2, 3]".into(), "bad JSON: invalid type: sequence, expected an object"),
        (format!("{good} {good}"), "bad JSON: trailing characters at column"),
        (r#"{"input_length": 6, "hash_ids": []}"#.into(), "missing field `timestamp`"),
        (r#"{"timestamp": 6, "hash_ids": []}"#.into(), "missing field `input_length`"),
        (r#"{"timestamp": 6, "input_length": 6}"#.into(), "missing field `hash_ids`"),
        (line("null", "6", "[]"), "missing field `timestamp`"),
        (line("\"5\"", "6", "[]"), "`timestamp` is a string, not a number"),
        (line("-1", "6", "[]"), "`timestamp` is negative: -1"),
        (line("-0.5", "6", "[]"), "`timestamp` is negative: -0.5"),
        (line("NaN", "6", "[]"), "bad JSON: expected value"),
        (line("1e999", "6", "[]"), "bad JSON: number out of range"),
        (line("1e300", "6", "[]"), "`timestamp` is out of range: 1"),
        (line("5", "-600", "[]"), "`input_length` is negative: -600"),
        (line("5", "6.5", "[]"), "`input_length` is 6.5, not a whole number"),
        (line("5", "true", "[]"), "`input_length` is true, not a whole number"),
        (line("5", "{\"a\": [1]}", "[]"), "`input_length` is an object, not a whole number"),
        (line("5", "4000000000", "[]"), "`input_length` is out of range: 4000000000 (at most 67108864)"),
        (line("5", "600", "7"), "`hash_ids` is 7, not a list of whole numbers"),
        (line("5", "600", "null"), "missing field `hash_ids`"),
        (line("5", "600", "[1, -2]"), "`hash_ids` is negative: -2 (entry 1)"),
        (line("5", "600", "[1, \"a\"]"), "`hash_ids` is a list with a string (entry 1), not a list of whole numbers"),
        (line("5", "600", "[[1]]"), "`hash_ids` is a list with a list (entry 0), not a list of whole numbers"),
        (r#"{"timestamp": 5, "timestamp": 6}"#.into(), "bad JSON: duplicate field `timestamp`"),
    ] {
        check(Format::Mooncake, good, &bad, reason);
        check(Format::Bailian, good, &bad, reason);
    }
}

#[test]
fn what_no_replay_needs_is_never_an_error() {
    for line in [
        r#"{"timestamp": 5, "input_length": 600.0, "output_length": null, "hash_ids": []}"#,
        r#"{"timestamp": 5, "input_length": 600, "output_length": "many", "hash_ids": [1, 2, 3, 4, 5]}"#,
        r#"{"unknown": {"a": [1, {"b": null}]}, "timestamp": 5.0, "input_length": 600, "hash_ids": [1, 2, 3]}"#,
        r#"{"timestamp": 5, "input_length": 0, "output_length": -3, "hash_ids": []}"#,
    ] {
        let trace = read(line.as_bytes(), &ReadOptions::default()).expect(line);
        assert_eq!(trace.requests[0].output_tokens, None);
        assert!(trace.ids(&trace.requests[0]).len() <= 2, "ids beyond the prompt are dropped");
    }
}

#[test]
fn a_bailian_second_is_not_taken_for_a_millisecond() {
    let text = r#"{"chat_id": 159, "parent_chat_id": -1, "timestamp": 61.114, "input_length": 33, "output_length": 132,
"type": "text", "turn": 1, "hash_ids": [1089, 1090, 6326]}"#;
    let trace = read(text.replace('\n', " ").as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!((trace.format, trace.block_tokens, trace.sessions), (Format::Bailian, 16, 0));
    assert_eq!(trace.requests[0].time_us, 61_114_000);
    assert_eq!(trace.ids(&trace.requests[0]), [1089, 1090, 6326]);
}

const HEADER: &str = r#"{"trace": "a", "block_size": 64, "tool_tokens": null}"#;

#[test]
fn a_bad_line_of_a_session_is_never_taken_for_a_request() {
    let good = r#"{"t": 1, "in": 200, "ref": -1, "lcp": 0, "new": [[1, 3]]}"#;
    let line = |reference: &str, lcp: &str, new: &str| {
        format!(r#"{{"t": 2, "in": 200, "out": 1, "ref": {reference}, "lcp": {lcp}, "new": {new}}}"#)
    };
    for (bad, reason) in [
        ("{".into(), "bad JSON: EOF while parsing an object"),
        (r#"{"in": 200, "ref": -1, "lcp": 0, "new": []}"#.into(), "missing field `t`"),
        (r#"{"t": 2, "ref": -1, "lcp": 0, "new": []}"#.into(), "missing field `in`"),
        (r#"{"t": 2, "in": 200, "lcp": 0, "new": []}"#.into(), "missing field `ref`"),
        (r#"{"t": 2, "in": 200, "ref": -1, "new": []}"#.into(), "missing field `lcp`"),
        (r#"{"t": 2, "in": 200, "ref": -1, "lcp": 0}"#.into(), "missing field `new`"),
        (line("1", "0", "[]"), "`ref` is 1, not an earlier request of the session: this is request 1"),
        (line("99", "0", "[]"), "`ref` is 99, not an earlier request"),
        (line("18446744073709551615", "0", "[]"), "`ref` is 18446744073709551615, not an earlier request"),
        (line("-2", "0", "[]"), "`ref` is negative: -2"),
        (line("0.5", "0", "[]"), "`ref` is 0.5, not a whole number"),
        (line("0", "4", "[]"), "`lcp` is 4, but request 0 has 3 ids"),
        (line("0", "-1", "[]"), "`lcp` is negative: -1"),
        (line("-1", "2", "[]"), "`lcp` is 2, but `ref` is -1: there is nothing to share"),
        (line("0", "3", "[[1]]"), "`new` is a list with a list (entry 0), not a list of runs [first id, count]"),
        (line("0", "3", "[[1, 2], 7]"), "`new` is a list with 7 (entry 1), not a list of runs"),
        (line("0", "3", "[[1, -2]]"), "`new` is negative: -2 (entry 0)"),
        (line("0", "3", "{}"), "`new` is an object, not a list of runs"),
        (line("0", "3", "[[1, 4000000000]]"), "`new` gives 4000000000 ids, but a prompt of 200 tokens has 4 blocks"),
        (line("0", "3", "[[1, 18446744073709551615]]"), "`new` is out of range: 1 + 18446744073709551615"),
        (line("0", "3", "[[0, 18446744073709551615], [0, 9]]"), "`new` gives 18446744073709551615 ids"),
    ] {
        let text = format!("{HEADER}\n{good}\n{bad}\n{good}\n");
        let message = read(text.as_bytes(), &ReadOptions::default()).expect_err(&bad);
        let expected = format!("t.jsonl:3: {reason}");
        assert!(message.starts_with(&expected), "{bad}\n  gives {message}\n  not   {expected}");
        let trace = read(text.as_bytes(), &SKIP).unwrap();
        assert_eq!((trace.requests.len(), trace.skipped), (2, 1), "{bad}");
    }
}

#[test]
fn nothing_is_built_on_what_was_skipped() {
    let text = format!(
        r#"{{"t": 1, "in": 64, "ref": -1, "lcp": 0, "new": [[1, 1]]}}
{HEADER}
{{"t": 1, "in": 64, "ref": -1, "lcp": 0, "new": [[1, 1]]}}
broken
{{"t": 2, "in": 64, "ref": 1, "lcp": 0, "new": []}}
{{"t": 3, "in": 64, "ref": 0, "lcp": 1, "new": []}}
{{"trace": "b", "block_size": 0}}
{{"t": 4, "in": 64, "ref": -1, "lcp": 0, "new": [[1, 1]]}}
{{"trace": "c", "block_size": 64}}
{{"t": 5, "in": 64, "ref": 0, "lcp": 0, "new": []}}
{{"t": 5, "in": 64, "ref": -1, "lcp": 0, "new": [[1, 1]]}}
{{"trace": "d", "block_size": 32}}
{{"trace": "e", "block_si
{{"t": 6, "in": 64, "ref": -1, "lcp": 0, "new": [[1, 1]]}}
"#
    );
    let trace = read(text.as_bytes(), &SKIP).unwrap();
    let kept: Vec<_> = trace.requests.iter().map(|r| (r.time_us / 1_000_000, r.session)).collect();
    assert_eq!(kept, [(1, 0), (3, 0), (5, 2)]);
    assert_eq!((trace.skipped, trace.sessions), (9, 5));

    let lines: Vec<&str> = text.lines().collect();
    for (kept, reason) in [
        (&[0][..], "t.jsonl:1: a request before the first session header"),
        (&[1, 6], "t.jsonl:2: `block_size` is 0"),
        (&[1, 11], "t.jsonl:2: `block_size` is 32, but 64 before: a trace has one block size"),
        (&[1, 9], "t.jsonl:2: `ref` is 0, not an earlier request of the session: this is request 0"),
    ] {
        let text: String = kept.iter().map(|&index| format!("{}\n", lines[index])).collect();
        assert_eq!(read(text.as_bytes(), &ReadOptions::default()).unwrap_err(), reason);
    }
    for (header, reason) in [
        (r#"{"trace": "a"}"#, "t.jsonl:1: missing field `block_size`"),
        (r#"{"block_size": 64}"#, "t.jsonl:1: missing field `trace`"),
        (r#"{"trace": "a", "block_size": "64"}"#, "t.jsonl:1: `block_size` is a string, not a whole number"),
        (r#"{"trace": "a", "block_size": 99999999}"#, "t.jsonl:1: `block_size` is out of range: 99999999 (at most"),
    ] {
        let message = read(header.as_bytes(), &ReadOptions::default()).unwrap_err();
        assert!(message.starts_with(reason), "{message}");
    }
}

#[test]
fn a_bad_request_of_a_session_file_is_named_by_its_place() {
    let text = r#"{"block_size": 64, "requests": [{"t": 0, "in": 64, "hash_ids": [1]},
        {"t": 1, "type": "subagent", "requests": [{"t": 0, "in": -4, "hash_ids": []}, {"t": 0.5, "in": 64, "hash_ids": [2]}]},
        {"type": "subagent", "requests": []}, {"t": 9, "in": 5}]}"#;
    let reason = read(text.as_bytes(), &ReadOptions::default()).unwrap_err();
    assert_eq!(reason, "t.jsonl, request 2.1: `in` is negative: -4");
    let trace = read(text.as_bytes(), &SKIP).unwrap();
    assert_eq!((trace.requests.len(), trace.skipped), (2, 3));
    let listed = text.replace(r#"{"t": 9, "in": 5}"#, r#"[9, 64, 1, [1], null, "s"]"#);
    let reason = read(listed.as_bytes(), &ReadOptions::default()).unwrap_err();
    assert_eq!(reason, "t.jsonl:3: bad JSON: invalid type: sequence, expected an object at column 46");
    let cut = &text[..text.len() - 4];
    let reason = read(cut.as_bytes(), &ReadOptions::default()).unwrap_err();
    assert_eq!(reason, "t.jsonl:3: bad JSON: EOF while parsing a value at column 61");
}

#[test]
fn what_is_no_trace_is_never_an_empty_one() {
    let header_only = format!("{HEADER}\n");
    let two = |a: &[u8], b: &[u8]| [a, b].concat();
    let line = br#"{"timestamp": 5, "input_length": 600, "hash_ids": [1]}"#;
    for (text, reason) in [
        (b"".to_vec(), "t.jsonl holds no requests (0 bad records skipped)"),
        (b" \n\n\t\n".to_vec(), "t.jsonl holds no requests (0 bad records skipped)"),
        (gzip(b""), "t.jsonl holds no requests (0 bad records skipped)"),
        (header_only.into_bytes(), "t.jsonl holds no requests (0 bad records skipped)"),
        (b"hello\n".to_vec(), "t.jsonl is in no trace format known (mooncake, sessions, kv-cache-tester, bailian);"),
        (two(b"\xff\xfe\n", b"x"), "t.jsonl is in no trace format known"),
        (two(line, b"\n{\"timestamp\": 5, \"\xff\": 1}\n"), "t.jsonl:2: not UTF-8 from byte 18 on"),
        (gzip(line)[..30].to_vec(), "cannot read t.jsonl beyond line 0: "),
        (two(&[0x1f, 0x8b], line), "cannot read t.jsonl beyond line 0: "),
        (two(&[0x28, 0xb5, 0x2f, 0xfd], line), "cannot read t.jsonl beyond line 0: "),
    ] {
        let message = read(&text, &ReadOptions::default()).unwrap_err();
        assert!(message.starts_with(reason), "{message}");
    }
    let message = read(b"{\"timestamp\": 5}", &SKIP).unwrap_err();
    assert_eq!(message, "t.jsonl holds no requests (1 bad records skipped)");
    let message = Trace::read("no/such/file".as_ref(), &SKIP).unwrap_err().to_string();
    assert!(message.starts_with("cannot open the trace no/such/file: "), "{message}");
}

#[test]
fn a_block_size_is_never_silently_ignored() {
    let line = br#"{"timestamp": 5, "input_length": 600, "hash_ids": [1, 2, 3, 4, 5]}"#;
    let with = |tokens| ReadOptions { block_tokens: Some(tokens), ..ReadOptions::default() };
    let trace = read(line, &with(128)).unwrap();
    assert_eq!((trace.block_tokens, trace.ids(&trace.requests[0]).len()), (128, 5));
    let reason = read(line, &with(0)).unwrap_err();
    assert_eq!(reason, "a trace block of 0 tokens is out of range (1 to 1048576)");
    let reason = read(HEADER.as_bytes(), &with(128)).unwrap_err();
    assert_eq!(reason, "t.jsonl states its own block size (sessions); leave the block size of the trace out");
}

#[test]
fn compression_changes_no_request() {
    let mut text = String::new();
    for i in 0..500 {
        writeln!(text, r#"{{"timestamp": {i}, "input_length": 1500, "hash_ids": [{i}, 7, {}]}}"#, 1_u64 << 40).unwrap();
    }
    let plain = read(text.as_bytes(), &ReadOptions::default()).unwrap();
    for bytes in [gzip(text.as_bytes()), zstd::encode_all(text.as_bytes(), 3).unwrap()] {
        let packed = read(&bytes, &ReadOptions::default()).unwrap();
        assert_eq!(plain.requests, packed.requests);
        assert!(plain.requests.iter().all(|request| plain.ids(request) == packed.ids(request)));
    }
}

const GOOD: [&str; 4] = [
    "{\"timestamp\":5,\"input_length\":600,\"hash_ids\":[1,2]}\n{\"timestamp\":6,\"input_length\":9,\"hash_ids\":[]}\n",
    "{\"trace\":\"a\",\"block_size\":64}\n{\"t\":1.5,\"in\":200,\"ref\":-1,\"lcp\":0,\"new\":[[1,3]]}\n{\"t\":2,\"in\":200,\"ref\":0,\"lcp\":3,\"new\":[[9,1]]}\n",
    "{\"block_size\":64,\"requests\":[{\"t\":0,\"in\":64,\"hash_ids\":[1]},{\"t\":1,\"requests\":[{\"t\":0,\"in\":4,\"hash_ids\":[]}]}]}\n",
    "{\"chat_id\":1,\"timestamp\":0.5,\"input_length\":33,\"hash_ids\":[1,2,99999999999]}\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// A good trace with some bytes replaced by others that mean something in JSON.
    #[test]
    fn no_bytes_make_the_reader_panic(
        which in 0..GOOD.len(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(b"{}[]\",:-0195.eE\\\n \xff\0t".to_vec())), 0..6),
        cut in any::<prop::sample::Index>(),
        noise in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let mut bytes = GOOD[which].as_bytes().to_vec();
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let whole = bytes.clone();
        bytes.truncate(cut.index(bytes.len() + 1));
        bytes.extend(&noise);
        for bytes in [whole, noise, gzip(&bytes), bytes] {
            let strict = read(&bytes, &ReadOptions::default());
            let lax = read(&bytes, &SKIP);
            if let Ok(trace) = &lax {
                let most = trace.requests.iter().map(|request| trace.ids(request).len()).max();
                prop_assert!(most.unwrap_or(0) <= 1000, "a short line makes {most:?} ids");
            }
            if let Ok(strict) = strict {
                let lax = lax.expect("what has no bad record reads alike");
                prop_assert_eq!((strict.requests, lax.skipped), (lax.requests, 0));
            }
        }
    }
}
