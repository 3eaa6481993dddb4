//! Candidates beside the policies that serve, and names that are pinned.

use crate::shell::Shell;

const REPLAY: &str = "replay repo/tests/data/edges.jsonl --dry-run --json --history-gib 0.1 --window-gib 0.05";
const HOSTILE: &str = "repo/tests/fixtures/hostile.wasm";

#[test]
fn a_shadow_does_not_change_the_replay_it_watches() {
    let shell = Shell::new();
    let alone = shell.run(REPLAY).exits(0);
    let candidate = shell.run(&format!("{REPLAY} --eviction fifo --checkpoints periodic:2048")).exits(0);
    let run = shell.run(&format!("{REPLAY} --shadow fifo --shadow checkpoints=periodic:2048")).exits(0);
    assert_eq!(run.integers(), alone.integers());
    let json = run.json();
    let shadow = &json["shadow"];
    assert_eq!(shadow["shadow_saved_tokens"].as_u64(), Some(candidate.number("saved_tokens")), "{run}");
    assert_eq!(shadow["active_saved_tokens"].as_u64(), Some(alone.number("saved_tokens")), "{run}");
    assert!(alone.json()["shadow"].is_null());
}

#[test]
fn a_reader_of_the_table_does_not_miss_the_candidate() {
    let shell = Shell::new();
    let line = format!("{} --shadow {HOSTILE}:mode=4", REPLAY.replace(" --json", " --quiet"));
    let run = shell.run(&line).exits(0);
    for text in
        ["in the shadow", "lru, events", "hostile, events", "saved tokens", "hostile failed", "lead of the candidate"]
    {
        assert!(run.to_string().contains(text), "expected `{text}`: {run}");
    }
}

#[test]
fn candidates_that_make_no_sense_do_not_start_a_replay() {
    let shell = Shell::new();
    for (options, said) in [
        ("--shadow nobody", "nobody"),
        ("--shadow missing.wasm", "missing.wasm"),
        ("--shadow fifo --shadow two-hit", "takes one candidate for a seat"),
        ("--shadow checkpoints=fifo", "no checkpoint policy is named `fifo`"),
        ("--shadow eviction=", "a policy is a shipped name or a .wasm file"),
    ] {
        shell.run(&format!("{REPLAY} {options}")).exits(2).says(said);
    }
}

#[test]
fn another_component_under_a_pinned_name_does_not_replay() {
    let shell = Shell::new();
    let zeros = "0".repeat(64);
    let pinned = format!("{REPLAY} --eviction {HOSTILE}:mode=0 --pin hostile={zeros}");
    let run = shell.run(&pinned).exits(2).says("pinned").says(&zeros);
    // The digest that it says this one has is the one to pin.
    let said = run.to_string();
    let digest = said.split("this one has ").nth(1).and_then(|rest| rest.get(..64)).expect("its digest").to_owned();
    shell.run(&format!("{REPLAY} --eviction {HOSTILE}:mode=0 --pin hostile={digest}")).exits(0);
    shell.run(&format!("{REPLAY} --pin hostile=12")).exits(2).says("64 hexadecimal digits");
}
