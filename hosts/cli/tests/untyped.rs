//! Replays without types against the figures of the public simulator they follow, and the command line of that mode.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use reprise::PolicyChoice;
use reprise_cli::{
    trace::{ReadOptions, Trace},
    untyped::{Mode, Options, Outcome, Paths, Rule, replay_paths},
};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct File {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Case {
    Bundled { trace: String, results: Vec<Expected> },
    MadeUp { block_tokens: u32, requests: Vec<(u32, Vec<u32>)>, results: Vec<Expected> },
}

#[derive(Deserialize)]
struct Expected {
    eviction: String,
    capacity_blocks: u32,
    mode: String,
    hit_tokens: u64,
    measured_tokens: u64,
    unfilled_hit_tokens: Option<u64>,
}

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// What kvcache-simulator 0.1.3 gave; see `tests/data/README.md`.
fn cases() -> Vec<Case> {
    let text = fs::read_to_string(repository("tests/data/untyped.json")).expect("part of the repository");
    serde_json::from_str::<File>(&text).expect("as its README says").cases
}

/// A made-up trace as one session, a form that keeps surplus ids.
fn made_up(block_tokens: u32, requests: &[(u32, Vec<u32>)]) -> Trace {
    let mut text = format!("{{\"trace\":\"made up\",\"block_size\":{block_tokens}}}\n");
    for (tokens, ids) in requests {
        let runs: Vec<[u32; 2]> = ids.iter().map(|&id| [id, 1]).collect();
        text += &format!("{{\"t\":0,\"in\":{tokens},\"ref\":-1,\"lcp\":0,\"new\":{runs:?}}}\n");
    }
    Trace::from_reader("made up", text.as_bytes(), &ReadOptions::default()).expect("a good trace")
}

/// What a rule gives.
fn replay(trace: &Trace, rule: Rule, capacity_blocks: u32, limit: Option<usize>) -> Outcome {
    let paths = Paths::of(trace, limit).expect("requests");
    replay_paths(&paths, &Options { capacity_blocks, eviction: rule.into() }).expect("a rule does not fail")
}

fn rule(name: &str) -> Rule {
    Rule::named(&PolicyChoice::shipped(name)).expect("a rule")
}

#[test]
fn no_figure_differs_from_the_public_simulators() {
    let mut underfilled = 0;
    for case in cases() {
        let (trace, what, results) = match case {
            Case::Bundled { trace, results } => {
                let decoded = Trace::read(&repository(&trace), &ReadOptions::default()).expect("a good trace");
                (decoded, trace, results)
            }
            Case::MadeUp { block_tokens, requests, results } => {
                (made_up(block_tokens, &requests), format!("blocks of {block_tokens}, {requests:?}"), results)
            }
        };
        for expected in results {
            let Expected { capacity_blocks, .. } = expected;
            let outcome = replay(&trace, rule(&expected.eviction), capacity_blocks, None);
            let mode = serde_json::to_value(outcome.mode).unwrap();
            assert_eq!(
                (mode.as_str(), outcome.hit_tokens(), outcome.measured_tokens, outcome.found_tokens),
                (
                    Some(&*expected.mode),
                    expected.hit_tokens,
                    expected.measured_tokens,
                    expected.unfilled_hit_tokens.unwrap_or(expected.hit_tokens)
                ),
                "{} with {capacity_blocks} blocks on {what}",
                expected.eviction
            );
            underfilled += usize::from(outcome.mode == Mode::Underfilled);
        }
    }
    assert!(underfilled > 20, "pools that are filled too late are among the cases");
}

#[test]
fn a_limit_never_counts_requests_that_are_left_out() {
    let requests = [(8, vec![1]), (8, vec![]), (8, vec![1]), (8, vec![2]), (8, vec![2])];
    let trace = made_up(8, &requests);
    let replayed = |limit| {
        let outcome = replay(&trace, Rule::Lru, 1, limit);
        (outcome.requests, outcome.measured_requests, outcome.found_tokens, outcome.measured_tokens)
    };
    assert_eq!(replayed(None), (4, 2, 8, 16));
    assert_eq!(replayed(Some(2)), (2, 1, 8, 8));
    assert_eq!(replayed(Some(3)), (3, 2, 8, 16));
    assert_eq!(replayed(Some(9)), replayed(None));
}

fn reprise(arguments: &[&str]) -> Output {
    let edges = repository("tests/data/edges.jsonl");
    Command::new(env!("CARGO_BIN_EXE_reprise")).arg("replay").arg(edges).args(arguments).output().expect("it runs")
}

#[test]
fn options_without_a_meaning_are_never_silently_ignored() {
    let untyped = ["--untyped", "--capacity-blocks", "13"];
    for option in [
        &["--session-gap", "1"][..],
        &["--model", "v4-pro"],
        &["--block-tokens", "128"],
        &["--history-gib", "1"],
        &["--window-gib", "1"],
        &["--store", "somewhere"],
        &["--dry-run"],
        &["--verify"],
        &["--checkpoints", "events"],
        &["--planner", "min-compute"],
        &["--no-replay"],
        &["--swap", "5:eviction=lru"],
        &["--prefill-rate", "10000"],
        &["--load-gib-per-second", "2"],
        &["--load-record-us", "20"],
        &["--prefill-context", "60"],
    ] {
        let output = reprise(&[&untyped, option].concat());
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{option:?}");
        let conflict = format!("the argument '--untyped' cannot be used with '{}", option[0]);
        assert!(message.contains(&conflict), "{option:?}: {message}");
    }
}

#[test]
fn a_wrong_command_line_never_replays_something_else() {
    for (arguments, part) in [
        (&["--untyped"][..], "--capacity-blocks <N>"),
        (&["--capacity-blocks", "13"], "--untyped"),
        (&["--untyped", "--capacity-blocks", "many"], "invalid value"),
        (&["--as-policy"], "--untyped"),
        (
            &["--untyped", "--capacity-blocks", "13", "--eviction", "two-hits"],
            "`two-hits` is none of the rules of a replay without types (fifo, lru, optimal, flat-lru, flat-s3-fifo)",
        ),
        (
            &["--untyped", "--capacity-blocks", "13", "--as-policy", "--eviction", "optimal"],
            "no eviction policy is named `optimal`",
        ),
        (&["--untyped", "--capacity-blocks", "13", "--eviction", "no-such.wasm"], "no-such.wasm"),
        (&["--untyped", "--capacity-blocks", "13", "--eviction", "lru:a=1"], "no setting `a`"),
        (&["--untyped", "--capacity-blocks", "13", "--native", "--eviction", "lru:a=1"], "no setting `a`"),
        (&["--untyped", "--capacity-blocks", "13", "--limit", "0"], "--limit 0 leaves no request"),
        (&["--eviction", "optimal"], "`optimal` looks at requests to come"),
    ] {
        let output = reprise(arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(part), "{arguments:?}: {message}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn the_object_never_passes_a_cold_start_off_as_a_result() {
    let json = |blocks, eviction| -> Value {
        let output = reprise(&["--untyped", "--capacity-blocks", blocks, "--eviction", eviction, "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("one object")
    };
    // Figures of tests/data/untyped.json.
    let filled = json("13", "optimal");
    assert_eq!((&filled["hit_tokens"], &filled["mode"]), (&47_618.into(), &"fixed_window".into()));
    assert_eq!(filled.get("unfilled_hit_tokens"), None);
    assert_eq!(filled["options"]["eviction"], "optimal");
    assert_eq!(filled["options"]["capacity_blocks"], 13);
    let cold = json("1000", "lru");
    assert_eq!((&cold["hit_tokens"], &cold["mode"]), (&0.into(), &"underfilled_at_window".into()));
    assert_eq!((&cold["unfilled_hit_tokens"], &cold["measured_tokens"]), (&80_419.into(), &112_867.into()));
}

#[test]
fn the_table_never_hides_that_the_pool_was_not_full() {
    let table = |blocks| {
        let output = reprise(&["--untyped", "--capacity-blocks", blocks]);
        String::from_utf8(output.stdout).expect("text")
    };
    let filled = table("13");
    assert!(filled.contains("22,528     19.96 %"), "{filled}");
    assert!(!filled.contains("not full"), "{filled}");
    let cold = table("1000");
    assert!(cold.contains("80,419     71.25 %") && cold.contains("not full"), "{cold}");
}
