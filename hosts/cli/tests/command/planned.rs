//! `reprise plan`: what the cache would do for one prompt.

use std::{collections::BTreeMap, fs};

use reprise::{BlockSource, Cache, Config, Namespace, Record};

use crate::shell::{Run, Shell};

const TOKENS: [&str; 4] = ["matched_tokens", "adopted_tokens", "replayed_tokens", "computed_tokens"];

/// The one taken of the alternatives.
fn taken(run: &Run) -> serde_json::Value {
    let json = run.json();
    let mut taken = json["alternatives"].as_array().unwrap().iter().filter(|alternative| alternative["taken"] == true);
    let (first, second) = (taken.next(), taken.next());
    assert!(second.is_none(), "{run}");
    first.unwrap_or_else(|| panic!("none is taken: {run}")).clone()
}

/// What a request adds to the totals of a replay is what is planned for it.
#[test]
fn a_request_is_not_planned_otherwise_than_a_replay_serves_it() {
    let shell = Shell::new();
    let mut adopted = Vec::new();
    for options in [
        "--planner min-compute",
        "--planner min-compute --history-gib 0.05 --window-gib 0.02 --swap 9:checkpoints=periodic:1024",
        "--planner min-time --load-gib-per-second 0.15 --checkpoints zero",
        "--planner min-time --model llama-3.1-8b --block-tokens 64 --prefill-rate 500 --no-replay",
    ] {
        for request in [1, 9, 20, 33] {
            let planned = shell.run(&format!("plan --json --native --request {request} {options}")).exits(0);
            let replay = |limit| {
                let line = format!("replay --json --dry-run --native --limit {limit} {options}");
                shell.run(&line).exits(0)
            };
            let (before, after) = (replay(request - 1), replay(request));
            for name in TOKENS {
                let added = after.number(name) - before.number(name);
                assert_eq!(planned.number(name), added, "{name} of request {request} with {options}: {planned}");
            }
            assert_eq!(taken(&planned)["computed_tokens"], planned.number("computed_tokens"), "{planned}");
            let captures = planned.json()["captures"].as_array().unwrap().len() as u64;
            assert_eq!(captures, after.number("captures_planned") - before.number("captures_planned"), "{planned}");
            adopted.push(planned.number("adopted_tokens"));
        }
    }
    assert!(adopted.iter().filter(|&&tokens| tokens > 0).count() >= 4, "{adopted:?}");
}

#[test]
fn a_load_that_is_slower_than_a_prefill_is_not_planned() {
    let shell = Shell::new();
    let plan = |options: &str| shell.run(&format!("plan --json --native --request 20 {options}")).exits(0);
    let (fast, slow) = (plan(""), plan("--load-gib-per-second 0.02"));
    assert!(fast.number("adopted_tokens") > 0, "{fast}");
    assert_eq!((slow.number("adopted_tokens"), &slow.json()["reason"]), (0, &"gate".into()), "{slow}");
    for run in [&fast, &slow] {
        let totals = run.json()["alternatives"].as_array().unwrap().iter().map(|each| each["total_ns"].as_u64()).min();
        assert_eq!(taken(run)["total_ns"].as_u64(), totals.unwrap(), "{run}");
    }
    let compute = plan("--load-gib-per-second 0.02 --planner min-compute");
    assert_eq!(compute.number("adopted_tokens"), fast.number("adopted_tokens"), "{compute}");

    // Each price counts: of a record, of a token, of a context.
    for option in ["--load-record-us 1e5", "--prefill-rate 4000000000 --prefill-context 0"] {
        assert_eq!(plan(option).number("adopted_tokens"), 0, "{option}");
    }
    let token_ns = |options: &str| taken(&plan(&format!("{options} --at-most 0")))["prefill_ns"].as_u64().unwrap();
    assert_eq!(token_ns("--prefill-rate 1000 --prefill-context 0"), fast.number("prompt_tokens") * 1_000_000);
    assert!(token_ns("--prefill-context 1000") > token_ns("--prefill-context 100"));

    let replay = |rate| {
        let line = format!("replay --json --dry-run --native --planner min-time --load-gib-per-second {rate}");
        shell.run(&line).exits(0)
    };
    assert!(replay("0.02").number("computed_tokens") > replay("2").number("computed_tokens"));

    let table = shell.run("plan --request 20 --load-gib-per-second 0.02").exits(0);
    assert!(table.out.contains("\n* plain prefill") && table.out.contains("a longer plan would cost more"), "{table}");
    assert!(table.out.lines().all(|line| line.chars().count() <= 100), "{table}");
}

struct Zeros;

impl BlockSource for Zeros {
    fn fill(&mut self, _record: &Record, bytes: &mut [u8]) {
        bytes.fill(0);
    }
}

/// All files of a store, with what is in them.
fn contents(shell: &Shell) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(shell.path("st")).unwrap().map(Result::unwrap);
    files.map(|file| (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap())).collect()
}

/// While the cache that wrote the store has it open.
#[test]
fn a_store_is_not_looked_at_otherwise_than_by_the_cache_that_wrote_it() {
    let shell = Shell::new();
    let config = Config {
        history_bytes: 64 << 20,
        window_bytes: 64 << 20,
        store: Some(shell.path("st")),
        ..Config::new("v4-flash").unwrap()
    };
    let cache = Cache::open(config).unwrap();
    let namespace = Namespace::new("served", "r1").tenant(*b"salt\n\xff").adapter("sql@3").extension("rope", "x2");
    let namespace = cache.namespace(&namespace).unwrap();
    let prompt: Vec<u32> = (0..3000).map(|token| token * 7919).collect();
    let mut written = namespace.sequence(&prompt[..2000]);
    written.plan(1).unwrap();
    written.save(&mut Zeros).unwrap();
    written.capture(&mut Zeros).unwrap();
    cache.drain();

    let text = prompt.iter().map(u32::to_string).collect::<Vec<_>>();
    shell.write("prompt.json", format!("[{}]", text.join(", ")));
    shell.write("prompt.txt", text.join("\n"));
    shell.write("prompt.bin", prompt.iter().flat_map(|token| token.to_le_bytes()).collect::<Vec<_>>());
    shell.write("salt", b"salt\n\xff");
    let before = contents(&shell);
    let line = |file: &str, rest: &str| {
        format!(
            "plan --json --tokens {file} --store st --model v4-flash --name served --revision r1 --tenant-file salt --adapter sql@3 \
             --extension rope=x2 {rest}"
        )
    };
    for (at_most, adopted) in [(u32::MAX, 1920), (1919, 0), (0, 0)] {
        let expected = namespace.sequence(&prompt).plan_at_most(2, at_most).unwrap();
        assert_eq!(expected.adopted_tokens, adopted, "{}", expected.explain());
        for (file, format) in [("prompt.json", ""), ("prompt.txt", ""), ("prompt.bin", "--u32le")] {
            let run = shell.run(&line(file, &format!("{format} --at-most {at_most}"))).exits(0);
            assert_eq!(run.json()["explanation"], expected.explain().to_string(), "{run}");
            assert_eq!(run.json()["captures"], serde_json::json!(expected.captures), "{run}");
            assert_eq!(run.number("matched_tokens"), u64::from(expected.matched_tokens), "{run}");
        }
    }

    for (options, says) in [
        (
            "--revision r2",
            "knows served at r1 (blocks of 128, rank 0/1, a tenant's, adapter sql@3, rope=x2), and nothing",
        ),
        ("--revision r1", "nothing of served at r1"),
        (
            "--revision r1 --tenant-file salt --adapter sql@3 --extension rope=x2 --model v4-flash:indexer=fp8",
            "history records of",
        ),
        ("--revision r1 --tenant-file salt --adapter sql@3 --extension rope=x2 --model llama-3.1-8b", "449824 bytes"),
    ] {
        let model = if options.contains("--model") { "" } else { "--model v4-flash" };
        let line = format!("plan --tokens prompt.json --store st --name served {model} {options}");
        assert_eq!(shell.run(&line).exits(2).says(says).out, "");
    }
    assert!(contents(&shell) == before, "a look changed the store");
}

#[test]
fn a_prompt_that_is_none_is_not_planned() {
    let shell = Shell::new();
    shell.run("replay --json --limit 1 --history-gib 0.02 --window-gib 0 --store st").exits(0);
    fs::create_dir(shell.path("empty")).unwrap();
    for (name, bytes) in [
        ("good", &b"1 2 3"[..]),
        ("nothing", b" \n"),
        ("array", b"[]"),
        ("word", b"1 2\n3 four 5"),
        ("large", b"4294967296"),
        ("json", b"[1, 2,\n -3]"),
        ("bytes", b"\xff\xfe\x00"),
    ] {
        shell.write(name, bytes);
    }
    let against =
        |file: &str, store: &str| format!("--tokens {file} --store {store} --revision replayed --model v4-flash");
    shell.run(&format!("plan {}", against("good", "st"))).exits(0);
    for (words, says) in [
        ("--request 0".to_owned(), "0 is not in 1.."),
        ("--request 37".to_owned(), "coding-agent-sample.jsonl has 36 requests: --request cannot be 37"),
        ("--request 5 --at-most x".to_owned(), "--at-most"),
        (
            "--request 5 --load-gib-per-second -1".to_owned(),
            "--load-gib-per-second takes a number of GiB from 0 up, not -1",
        ),
        ("--request 5 --load-record-us inf".to_owned(), "--load-record-us takes microseconds from 0 up, not inf"),
        ("--request 5 --prefill-context nan".to_owned(), "--prefill-context takes nanoseconds from 0 up, not NaN"),
        ("--request 5 --eviction optimal".to_owned(), "it runs with --untyped only"),
        ("--request 5 --tokens good --store st --revision r".to_owned(), "cannot be used with"),
        (String::new(), "--request <N>"),
        ("--tokens good".to_owned(), "--store <DIR>"),
        (against("good", "st") + " --rank 2", "RANK/RANKS"),
        (against("good", "st") + " --rank 2/2", "rank 2 of 2"),
        (against("good", "st") + " --extension x", "KEY=VALUE"),
        (against("good", "st") + " --tenant-file missing", "reading the tenant's salt in missing: No such file"),
        (against("missing", "st"), "reading the tokens of missing: No such file"),
        (against("nothing", "st"), "nothing holds no tokens"),
        (against("array", "st"), "array holds no tokens"),
        (against("word", "st"), "word, line 2: token 4 is `four`"),
        (against("large", "st"), "line 1: token 1 is `4294967296`"),
        (against("json", "st"), "line 2 column"),
        (against("bytes", "st"), "--u32le"),
        (against("bytes", "st") + " --u32le", "3 bytes"),
        (against("good", "none"), "none does not exist"),
        (against("good", "empty"), "the directory is empty"),
    ] {
        let run = shell.run(&format!("plan {words}")).exits(2).says(says);
        assert_eq!(run.out, "");
    }
    assert!(!shell.exists("none") && fs::read_dir(shell.path("empty")).unwrap().next().is_none());
}
