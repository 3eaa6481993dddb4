//! Components that do what no policy should: the replay goes on without them, and says so once.

use crate::shell::{Run, Shell};

/// Quotas so small that who goes matters: `lru`, `fifo` and `two-hit` all give other integers.
const REPLAY: &str = "replay repo/tests/data/edges.jsonl --dry-run --json --history-gib 0.1 --window-gib 0.05";
const HOSTILE: &str = "repo/tests/fixtures/hostile.wasm";
const HOSTILE_CHECKPOINTS: &str = "repo/tests/fixtures/hostile-checkpoints.wasm";

/// What the fixture does: trap, loop, allocate without end, name ids that do not exist, pinned ones, inner ones, one twice, too many.
const MODES: std::ops::RangeInclusive<u32> = 1..=8;
/// These misbehave even when nothing is asked of them, and so never take their seat.
const AT_ONCE: [u32; 4] = [1, 2, 3, 8];
/// Names one good victim before it repeats it: what follows is not what LRU alone would have done.
const ONE_GOOD_VICTIM: u32 = 7;

const CHECKPOINT_MODES: std::ops::RangeInclusive<u32> = 1..=6;

/// Runs a replay with and without `--strict-policy`: it ends, gives a result, warns once; strictly, it exits with 3.
#[track_caller]
fn goes_on(shell: &Shell, options: &str) -> Run {
    let run = goes_on_with_warnings(shell, options);
    assert_eq!(run.warnings().len(), 1, "{run}");
    run
}

/// The same with as many warnings as it takes.
#[track_caller]
fn goes_on_with_warnings(shell: &Shell, options: &str) -> Run {
    let run = shell.run(&format!("{REPLAY} {options}")).exits(0);
    assert!(!run.warnings().is_empty(), "{run}");
    let strict = shell.run(&format!("{REPLAY} {options} --strict-policy")).exits(3).says("--strict-policy");
    assert_eq!(strict.integers(), run.integers());
    assert_eq!(strict.warnings(), run.warnings());
    run
}

#[track_caller]
fn is_struck(run: &Run, role: &str) {
    assert!(run.policy(role)["strikes"].as_u64() > Some(0), "{run}");
}

#[track_caller]
fn is_retired(run: &Run, role: &str) {
    is_struck(run, role);
    assert_eq!(run.policy(role)["retired"], true, "{run}");
}

/// `name` has the seat that `failed` was to take.
#[track_caller]
fn is_back(run: &Run, role: &str, name: &str, failed: &str) {
    let policy = run.policy(role);
    assert!(policy["name"] == name && policy["rolled-back-from"] == failed && policy["retired"] == false, "{run}");
}

#[test]
fn eviction_policies_are_told_apart_here() {
    let shell = Shell::new();
    let runs = ["lru", "fifo", "two-hit"].map(|policy| {
        let run = shell.run(&format!("{REPLAY} --eviction {policy} --strict-policy")).exits(0);
        assert!(run.warnings().is_empty(), "{run}");
        run.integers()
    });
    assert!(runs[0] != runs[1] && runs[0] != runs[2] && runs[1] != runs[2]);
}

#[test]
fn an_honest_component_is_not_accused() {
    let shell = Shell::new();
    let honest = shell.run(&format!("{REPLAY} --eviction {HOSTILE}:mode=0 --strict-policy")).exits(0);
    assert!(honest.warnings().is_empty(), "{honest}");
    let policy = honest.policy("eviction");
    assert!(policy["component"] == true && policy["strikes"] == 0 && policy["retired"] == false, "{honest}");
    assert!(policy["decisions"].as_u64() > Some(0), "{honest}");
    shell.run(&format!("{REPLAY} --checkpoints {HOSTILE_CHECKPOINTS}:mode=0 --strict-policy")).exits(0);
}

#[test]
fn a_hostile_eviction_policy_does_not_stop_a_replay() {
    let shell = Shell::new();
    let lru = shell.run(&format!("{REPLAY} --native")).exits(0).integers();
    for mode in MODES {
        let run = goes_on(&shell, &format!("--eviction {HOSTILE}:mode={mode}"));
        is_retired(&run, "eviction");
        if mode != ONE_GOOD_VICTIM {
            assert_eq!(run.integers(), lru, "mode {mode}: no answer of it was taken, so the native LRU decided alone");
        }
        // Each new start is honest for a while, so that this one may last.
        is_struck(&goes_on(&shell, &format!("--eviction {HOSTILE}:mode={mode},after=3")), "eviction");
    }
}

#[test]
fn a_hostile_checkpoint_policy_does_not_stop_a_replay() {
    let shell = Shell::new();
    let events = shell.run(&format!("{REPLAY} --native")).exits(0).integers();
    for mode in CHECKPOINT_MODES {
        let run = goes_on(&shell, &format!("--checkpoints {HOSTILE_CHECKPOINTS}:mode={mode}"));
        is_retired(&run, "checkpoints");
        assert_eq!(run.integers(), events, "mode {mode}");
    }
}

#[test]
fn two_hostile_policies_do_not_hide_each_other() {
    let shell = Shell::new();
    let line = format!("{REPLAY} --eviction {HOSTILE}:mode=4 --checkpoints {HOSTILE_CHECKPOINTS}:mode=1");
    let run = shell.run(&line).exits(0).says("eviction policy").says("checkpoint policy");
    assert_eq!(run.warnings().len(), 2, "{run}");
    shell.run(&format!("{line} --strict-policy")).exits(3).says("2 of the policies failed");
}

#[test]
fn a_hostile_swap_does_not_take_the_running_policy_down() {
    let shell = Shell::new();
    let fifo = shell.run(&format!("{REPLAY} --native --eviction fifo")).exits(0).integers();
    // The native LRU decides the one request in which it fails, and `fifo` is back.
    let once = "--swap 15:eviction=lru --swap 16:eviction=fifo";
    let back = shell.run(&format!("{REPLAY} --native --eviction fifo {once}")).exits(0).integers();
    for mode in MODES {
        // One that answers well at first says so twice: at its first failure, and when it goes.
        let run = goes_on_with_warnings(&shell, &format!("--eviction fifo --swap 15:eviction={HOSTILE}:mode={mode}"));
        let failed = run.json()["failed_swaps"].as_array().unwrap().clone();
        if AT_ONCE.contains(&mode) {
            assert_eq!(run.integers(), fifo, "mode {mode}: `fifo` stays");
            assert_eq!(run.policy("eviction")["name"], "fifo");
            assert!(failed.len() == 1 && failed[0]["before"] == 15 && failed[0]["role"] == "eviction", "{run}");
        } else {
            is_back(&run, "eviction", "fifo", "hostile");
            assert!(failed.is_empty(), "{run}");
            if mode != ONE_GOOD_VICTIM {
                assert_eq!(run.integers(), back, "mode {mode}");
            }
        }
    }
}

#[test]
fn a_hostile_swap_of_checkpoints_does_not_stop_a_replay() {
    let shell = Shell::new();
    let once = "--swap 16:checkpoints=events --swap 17:checkpoints=zero";
    let back = shell.run(&format!("{REPLAY} --native --checkpoints zero {once}")).exits(0);
    for mode in CHECKPOINT_MODES {
        let run =
            goes_on(&shell, &format!("--checkpoints zero --swap 16:checkpoints={HOSTILE_CHECKPOINTS}:mode={mode}"));
        is_back(&run, "checkpoints", "zero", "hostile-checkpoints");
        assert_eq!(run.integers(), back.integers(), "mode {mode}");
    }
}

/// One that behaves at first is made anew after a failure; when it has failed too often, its predecessor has the seat again.
#[test]
fn a_swap_that_turns_bad_later_does_not_leave_the_seat_empty() {
    let shell = Shell::new();
    let run = shell.run(&format!("{REPLAY} --eviction fifo --swap 5:eviction={HOSTILE}:mode=1,after=2")).exits(0);
    assert_eq!(run.warnings().len(), 2, "one for the first failure, one for the end: {run}");
    is_back(&run, "eviction", "fifo", "hostile");
}

/// Another policy in its seat does not make a failure unseen.
#[test]
fn a_failure_before_a_swap_is_not_forgotten() {
    let shell = Shell::new();
    for (mode, before) in [(1, 1), (1, 30), (4, 30)] {
        let run = goes_on(&shell, &format!("--eviction {HOSTILE}:mode={mode} --swap {before}:eviction=lru"));
        assert_eq!(run.policy("eviction")["name"], "lru");
    }
    let none = format!("{REPLAY} --limit 0 --eviction {HOSTILE}:mode=1");
    assert_eq!(shell.run(&none).exits(0).warnings().len(), 1);
    shell.run(&format!("{none} --strict-policy")).exits(3);
}

/// On a real store, records are evicted by the fallback as well; every byte is compared.
#[test]
fn a_hostile_policy_does_not_spoil_a_store() {
    let shell = Shell::new();
    for mode in [2, 4, 7] {
        let options = format!("--limit 5 --history-gib 0.03 --window-gib 0.02 --eviction {HOSTILE}:mode={mode}");
        let stored = shell.run(&format!("replay --json --store st{mode} {options}")).exits(0);
        is_struck(&stored, "eviction");
        assert!(stored.number("evicted_history") > 0, "{stored}");
        assert_eq!(stored.integers(), shell.run(&format!("replay --json --dry-run {options}")).exits(0).integers());
        shell.run(&format!("store verify st{mode}")).exits(0);
    }
}
