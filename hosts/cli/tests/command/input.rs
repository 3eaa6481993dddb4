//! Arguments that make no sense, and those at the edge of sense.

use crate::shell::Shell;

#[test]
fn an_argument_that_makes_no_sense_does_not_start_a_replay() {
    let shell = Shell::new();
    for (options, says) in [
        ("--block-tokens 100", "multiple of 128"),
        ("--block-tokens 0", "multiple of 128"),
        ("--block-tokens 192", "256 would do"),
        ("--block-tokens 4294967295", "at most 65536"),
        ("--block-tokens many", "--block-tokens"),
        ("--model gpt-oss-20b --block-tokens 96", "one must divide the other"),
        ("--history-gib -1", "--history-gib takes a number of GiB from 0 up"),
        ("--history-gib NaN", "--history-gib"),
        ("--history-gib 1e30", "--history-gib"),
        ("--history-gib 1000000", "too large"),
        ("--window-gib 10000000", "too large"),
        ("--window-gib inf", "--window-gib"),
        ("--window-gib -0.5", "--window-gib"),
        ("--window-gib x", "--window-gib"),
        ("--limit -1", "-1"),
        ("--limit 1.5", "--limit"),
        ("--session-gap -1", "--session-gap takes seconds from 0 up, not -1"),
        ("--session-gap NaN", "--session-gap"),
        ("--session-gap 1e300", "--session-gap"),
        ("--swap nonsense", "N:checkpoints=POLICY or N:eviction=POLICY"),
        ("--swap 0:eviction=lru", "with a request number N from 1"),
        ("--swap 3:eviction", "N:checkpoints=POLICY"),
        ("--swap 3:placement=lru", "N:checkpoints=POLICY"),
        ("--planner psychic", "min-compute"),
        ("--prefill-rate 0", "--prefill-rate"),
        ("--verify=perhaps", "--verify"),
        ("--dry-run", "cannot be used with"),
        ("--nonsense", "--nonsense"),
    ] {
        let run = shell.run(&format!("replay --store st {options}")).exits(2).says(says);
        assert!(run.out.is_empty() && !shell.exists("st"), "{run}");
    }
    // Of a trace that says nothing of its block size.
    for (options, says) in [("--trace-block 0", "trace"), ("--trace-block 100", "one must divide the other")] {
        shell.run(&format!("replay repo/tests/data/edges.jsonl --store st {options}")).exits(2).says(says);
        assert!(!shell.exists("st"));
    }
}

#[test]
fn an_edge_is_not_an_error() {
    let shell = Shell::new();
    let none = shell.run("replay --json --limit 0 --dry-run").exits(0);
    assert!(none.integers().iter().all(|&(_, value)| value == 0), "{none}");
    shell.run("replay --limit 0 --dry-run").exits(0);

    let all = shell.run("replay --json --dry-run").exits(0);
    assert_eq!(shell.run("replay --json --dry-run --limit 99999").exits(0).integers(), all.integers());
    assert_eq!(all.number("requests"), 36);

    let beyond = shell.run("replay --json --dry-run --swap 37:eviction=fifo --swap 99:checkpoints=zero").exits(0);
    assert_eq!(beyond.warnings().len(), 2, "{beyond}");
    assert!(
        beyond.err.contains("before request 37 was not made") && beyond.err.contains("before request 99"),
        "{beyond}"
    );
    assert_eq!(beyond.integers(), all.integers());

    // All sessions start at once, or in file order with hours between them: the same requests in another order.
    for gap in ["0", "0.5", "1e6"] {
        let run = shell.run(&format!("replay --json --dry-run --session-gap {gap}")).exits(0);
        assert_eq!(run.number("prompt_tokens"), all.number("prompt_tokens"), "{run}");
    }
}

#[test]
fn a_result_for_a_program_is_not_mixed_with_words_for_people() {
    let shell = Shell::new();
    for options in ["--dry-run", "--limit 5 --history-gib 0.05 --window-gib 0.02 --store st"] {
        let json = shell.run(&format!("replay --json {options}")).exits(0);
        assert_eq!((json.out.lines().count(), json.err.as_str()), (1, ""), "{json}");
        assert_eq!(json.json()["options"]["eviction"], "lru");
        // No terminal: no bar, no escapes.
        let table = shell.run(&format!("replay {options}")).exits(0);
        assert_eq!(table.err, "");
        assert!(table.out.contains("prompt tokens") && !table.out.contains('\u{1b}'), "{table}");
    }
    let verified = shell.run("store verify st --json").exits(0);
    assert!(verified.json()["clean"] == true && verified.err.is_empty(), "{verified}");
}
