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
    for text in [
        "in the shadow",
        "serving",
        "candidate",
        "hostile.wasm:mode=4",
        "saved tokens",
        "hostile failed",
        "lead of the candidate",
    ] {
        assert!(run.to_string().contains(text), "expected `{text}`: {run}");
    }
    let seats: Vec<Vec<&str>> = run.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(seats.contains(&vec!["eviction", "lru", &format!("{HOSTILE}:mode=4")]), "{run}");
    assert!(seats.contains(&vec!["checkpoint", "events", "events"]), "{run}");
    assert!(run.out.lines().all(|line| line.trim_end() == line), "{run}");
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

#[test]
fn a_component_that_a_pin_refuses_does_not_wait_for_its_turn() {
    let shell = Shell::new();
    let zeros = "0".repeat(64);
    let store = REPLAY.replace("--dry-run", "--store kept");
    for options in [
        format!("--swap 3:eviction={HOSTILE}:mode=0 --pin hostile={zeros}"),
        format!("--shadow {HOSTILE}:mode=0 --pin hostile={zeros}"),
        format!("--swap 3:eviction=fifo --pin fifo={zeros}"),
        format!("--eviction {HOSTILE}:mode=0 --pin hostile={zeros}"),
    ] {
        let run = shell.run(&format!("{store} {options}")).exits(2).says("pinned").says(&zeros);
        assert!(!shell.exists("kept"), "{run}");
    }
}

#[test]
fn a_pin_that_guards_nothing_is_not_passed_over() {
    let shell = Shell::new();
    let zeros = "0".repeat(64);
    let run = shell.run(&format!("{REPLAY} --pin hostle={zeros}")).exits(0);
    run.says("no policy of this run calls itself `hostle`");
    let digest = blake3::hash(&std::fs::read(shell.path("repo/policies/dist/fifo.wasm")).unwrap()).to_hex();
    let run = shell.run(&format!("{REPLAY} --swap 3:eviction=fifo --pin fifo={digest}")).exits(0);
    assert!(!run.err.contains("--pin"), "{run}");
}

#[test]
fn whoever_brings_an_interpreter_is_not_left_without_its_profile() {
    let shell = Shell::new();
    // What interpreters need and no narrower profile takes.
    let adds = "(component (core module (global i32 (i32.add (i32.const 1) (i32.const 2)))))";
    shell.write("adds.wasm", wat::parse_str(adds).unwrap());
    for option in ["--eviction adds.wasm", "--swap 3:eviction=adds.wasm", "--shadow adds.wasm"] {
        let run = shell.run(&format!("{REPLAY} {option}")).exits(2);
        run.says(
            "it needs the profile `interpreted`: --policy-profile interpreted, or policy-profile = \"interpreted\"",
        );
        let run = shell.run(&format!("{REPLAY} {option} --policy-profile interpreted")).exits(2);
        assert!(!run.err.contains("needs the profile"), "{run}");
    }
}

#[test]
fn a_policy_of_the_other_kind_is_not_left_to_guess_its_option() {
    let shell = Shell::new();
    let fifo = "repo/policies/dist/fifo.wasm";
    shell
        .run(&format!("{REPLAY} --checkpoints {fifo}"))
        .exits(2)
        .says("fifo.wasm is an eviction policy: use --eviction");
    let events = "repo/policies/dist/events.wasm";
    shell.run(&format!("{REPLAY} --eviction {events}")).exits(2).says("is a checkpoint policy: use --checkpoints");
}
