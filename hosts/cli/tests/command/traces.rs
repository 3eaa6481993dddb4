//! Traces as files: bad lines, unknown formats, and traces that a user makes.

use std::{fs::File, io::Write};

use crate::shell::Shell;

const GOOD: &str = r#"{"timestamp": 0, "input_length": 1000, "hash_ids": [1, 2]}"#;

#[test]
fn a_bad_line_is_not_passed_over_in_silence() {
    let shell = Shell::new();
    for (line, says) in [
        ("{\"timestamp\": 0, ", "trace.jsonl:2"),
        ("not JSON at all", "bad JSON"),
        ("[1, 2, 3]", "trace.jsonl:2"),
        (r#"{"timestamp": 0, "hash_ids": [1]}"#, "missing field `input_length`"),
        (r#"{"timestamp": 0, "input_length": 9}"#, "missing field `hash_ids`"),
        (r#"{"input_length": 9, "hash_ids": [1]}"#, "missing field `timestamp`"),
        (r#"{"timestamp": 0, "input_length": "9", "hash_ids": [1]}"#, "`input_length` is a string"),
        (r#"{"timestamp": 0, "input_length": -9, "hash_ids": [1]}"#, "`input_length`"),
        (r#"{"timestamp": 0, "input_length": 1.5, "hash_ids": [1]}"#, "`input_length`"),
        (r#"{"timestamp": 0, "input_length": 9, "hash_ids": [1, "x"]}"#, "`hash_ids"),
        (r#"{"timestamp": "now", "input_length": 9, "hash_ids": [1]}"#, "`timestamp`"),
        (r#"{"timestamp": 0, "input_length": 99999999999, "hash_ids": [1]}"#, "`input_length`"),
    ] {
        shell.write("trace.jsonl", format!("{GOOD}\n{line}\n{GOOD}\n"));
        let run = shell.run("replay trace.jsonl --store st --json").exits(2).says("trace.jsonl:2").says(says);
        assert_eq!((run.out.as_str(), run.err.lines().count()), ("", 1), "{run}");
        assert!(!shell.exists("st"), "a store was made for a bad trace: {run}");

        let skipping = shell.run("replay trace.jsonl --json --skip-bad").exits(0).says("1 bad records of trace.jsonl");
        assert_eq!((skipping.number("requests"), skipping.number("skipped_lines")), (2, 1));
        assert_eq!(skipping.number("matched_tokens"), 896, "the good lines are as before");
    }
}

/// A store from an earlier replay is untouched, too.
#[test]
fn a_bad_trace_does_not_touch_a_store_that_is_there() {
    let shell = Shell::new();
    let small = "--json --model v4-flash --history-gib 0.02 --window-gib 0.01 --store st";
    shell.write("trace.jsonl", format!("{GOOD}\n"));
    shell.run(&format!("replay trace.jsonl {small}")).exits(0);
    let before = shell.run("store verify st --json").exits(0).out;
    shell.write("bad.jsonl", format!("{GOOD}\noops\n"));
    shell.run(&format!("replay bad.jsonl {small} --model v4-pro")).exits(2);
    shell.run(&format!("replay bad.jsonl {small}")).exits(2);
    assert_eq!(shell.run("store verify st --json").exits(0).out, before);
    let again = shell.run(&format!("replay trace.jsonl {small}")).exits(0);
    assert_eq!(again.number("matched_tokens"), 896, "{again}");
}

#[test]
fn surplus_fields_and_ids_are_not_bad() {
    let shell = Shell::new();
    let odd = r#"{"timestamp": 1, "input_length": 1000, "hash_ids": [1, 2, 3, 4, 5], "output_length": null, "more": {"a": [1]}}"#;
    let short = r#"{"timestamp": 2, "input_length": 1000, "hash_ids": []}"#;
    shell.write("trace.jsonl", format!("{GOOD}\n\n{odd}\r\n{short}"));
    let run = shell.run("replay trace.jsonl --json").exits(0);
    assert_eq!((run.number("requests"), run.number("skipped_lines"), run.number("matched_tokens")), (3, 0, 896));
}

#[test]
fn a_file_that_is_no_trace_is_not_replayed() {
    let shell = Shell::new();
    shell.write("empty.jsonl", "");
    shell.write("blank.jsonl", "\n\n");
    shell.write("other.jsonl", "{\"a\": 1}\n");
    shell.write("binary.jsonl", [0xff, 0xfe, 0, 1, 2]);
    shell.write("cut.jsonl.gz", [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, 2]);
    std::fs::create_dir(shell.path("nothing")).unwrap();
    for (trace, says) in [
        ("empty.jsonl", "holds no requests"),
        ("blank.jsonl", "holds no requests"),
        ("other.jsonl", "no trace format known (mooncake, sessions, kv-cache-tester, bailian)"),
        ("other.jsonl --format mooncake", "other.jsonl:1: missing field `timestamp`"),
        ("other.jsonl --format mooncake --skip-bad", "holds no requests (1 bad records skipped)"),
        ("other.jsonl --format mooncook", "mooncake, sessions, kv-cache-tester, bailian"),
        ("binary.jsonl", "binary.jsonl"),
        ("cut.jsonl.gz", "is the file complete?"),
        ("nothing", "holds no session files"),
        ("nothing --format mooncake", "is a directory"),
        ("missing.jsonl", "cannot open the trace missing.jsonl: No such file"),
    ] {
        let run = shell.run(&format!("replay {trace} --store st")).exits(2).says(says);
        assert!(run.out.is_empty() && !shell.exists("st"), "{run}");
    }
}

#[test]
fn a_compressed_trace_is_no_other_trace() {
    let shell = Shell::new();
    let plain = std::fs::read(shell.path("repo/tests/data/edges.jsonl")).unwrap();
    let mut gz =
        flate2::write::GzEncoder::new(File::create(shell.path("trace.gz")).unwrap(), flate2::Compression::fast());
    gz.write_all(&plain).unwrap();
    gz.finish().unwrap();
    shell.write("trace.zst", zstd::encode_all(&plain[..], 1).unwrap());
    let expected = shell.run("replay repo/tests/data/edges.jsonl --json").exits(0).integers();
    for trace in ["trace.gz", "trace.zst"] {
        assert_eq!(shell.run(&format!("replay {trace} --json")).exits(0).integers(), expected, "{trace}");
    }
}

/// JSONL of token ids, made into a trace, replayed: hits where tokens are equal from the start on, and nowhere else.
#[test]
fn a_made_trace_does_not_hit_where_tokens_differ() {
    let shell = Shell::new();
    let tokens: Vec<u32> = (0..1300).map(|n| n * 7 + 1).collect();
    let line = |t: f64, tokens: &[u32], session: &str| format!("{{\"t\": {t}, \"tokens\": {tokens:?}{session}}}\n");
    let mut changed = tokens.clone();
    changed[640] += 1;
    shell.write(
        "tokens.jsonl",
        [
            line(0.0, &tokens[..1000], ""),                 // 7 blocks of 128
            line(1.0, &tokens, ""),                         // finds them, adds 3
            line(2.0, &tokens[1..], ""),                    // shifted by one: nothing
            line(3.0, &changed, ""),                        // equal up to the fifth block
            line(4.0, &tokens, ", \"session\": \"other\""), // another session: nothing
            line(5.0, &tokens[..1280], ""),                 // all but the last block, which holds the last token
        ]
        .concat(),
    );
    shell.run("trace make tokens.jsonl -o made.jsonl --block-tokens 128 --salt s").exits(0).says("6 requests");
    let replay = "replay made.jsonl --trace-block 128 --json --model llama-3.1-8b";
    let run = shell.run(replay).exits(0);
    assert_eq!(run.number("prompt_tokens"), 1000 + 1300 + 1299 + 1300 + 1300 + 1280);
    assert_eq!((run.number("requests"), run.number("hits")), (6, 3));
    assert_eq!(run.number("matched_tokens"), 7 * 128 + 5 * 128 + 9 * 128);

    // Another salt names everything otherwise and changes nothing; standard output is as good as a file.
    let other = shell.run("trace make tokens.jsonl --block-tokens 128").exits(0);
    assert_ne!(other.out, std::fs::read_to_string(shell.path("made.jsonl")).unwrap());
    shell.write("made.jsonl", &other.out);
    assert_eq!(shell.run(replay).exits(0).integers(), run.integers());
}

#[test]
fn a_trace_that_cannot_be_made_does_not_replace_an_older_one() {
    let shell = Shell::new();
    shell.write("made.jsonl", "older\n");
    shell.write("bad.jsonl", "{\"t\": 0, \"tokens\": [1, 2]}\n{\"t\": 1, \"tokens\": [1, -2]}\n");
    shell.run("trace make bad.jsonl -o made.jsonl").exits(2).says("bad.jsonl:2");
    assert_eq!(std::fs::read(shell.path("made.jsonl")).unwrap(), b"older\n");
    shell.run("trace make bad.jsonl -o made.jsonl --skip-bad --block-tokens 1").exits(0).says("1 requests");
    shell.run("trace make missing.jsonl -o new.jsonl").exits(2).says("missing.jsonl");
    shell.run("trace make bad.jsonl --skip-bad -o nowhere/new.jsonl").exits(1).says("nowhere/new.jsonl");
    shell.run("trace make bad.jsonl --block-tokens 0 -o new.jsonl").exits(2);
    assert!(!shell.exists("new.jsonl"));
}
