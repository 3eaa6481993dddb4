//! Ways of running that must not change a single integer.

use crate::shell::Shell;

const EDGES: &str = "replay repo/tests/data/edges.jsonl --json --dry-run --history-gib 0.1 --window-gib 0.05";
const CHECKPOINTS: [&str; 4] = ["full", "periodic:2048", "events", "zero"];

#[test]
fn components_do_not_decide_otherwise_than_native_policies() {
    let shell = Shell::new();
    let mut results = Vec::new();
    for checkpoints in CHECKPOINTS {
        for eviction in ["lru", "fifo", "two-hit"] {
            let line = format!("{EDGES} --checkpoints {checkpoints} --eviction {eviction} --strict-policy");
            let component = shell.run(&line).exits(0);
            let native = shell.run(&format!("{line} --native")).exits(0);
            for role in ["eviction", "checkpoints"] {
                assert_eq!(component.policy(role)["component"], true);
                assert_eq!(native.policy(role)["component"], false);
            }
            assert_eq!(component.integers(), native.integers(), "{checkpoints}, {eviction}");
            results.push(component.integers());
        }
    }
    results.sort();
    results.dedup();
    assert_eq!(results.len(), 12, "here, all twelve differ from each other");
}

/// What they learn, too, is a function of the trace.
#[test]
fn components_do_not_learn_otherwise_than_native_policies() {
    let shell = Shell::new();
    let room = "replay repo/tests/data/conversation-part.jsonl.gz --json --dry-run --history-gib 0.2 --window-gib 0.05";
    let mut results = Vec::new();
    for eviction in ["auto", "auto:memory=0", "write-saver:write-price=900", "segmented", "flop-aware"] {
        let line = format!("{room} --model v4-flash --checkpoints adaptive --eviction {eviction} --strict-policy");
        let component = shell.run(&line).exits(0);
        let native = shell.run(&format!("{line} --native")).exits(0);
        assert_eq!(component.policy("eviction")["component"], true);
        assert_eq!(component.integers(), native.integers(), "{eviction}");
        results.push(component.integers());
    }
    results.dedup();
    assert!(results.len() > 2, "here, they differ from each other");
}

/// A shipped policy and the same component from a file.
#[test]
fn a_policy_from_a_file_is_no_other_policy() {
    let shell = Shell::new();
    let shipped = shell.run(&format!("{EDGES} --eviction fifo --checkpoints periodic:4096")).exits(0).integers();
    let file = "--eviction repo/policies/dist/fifo.wasm --checkpoints repo/policies/dist/periodic.wasm:period=4096";
    assert_eq!(shell.run(&format!("{EDGES} {file}")).exits(0).integers(), shipped);
}

#[test]
fn a_swap_of_a_policy_for_itself_changes_nothing() {
    let shell = Shell::new();
    for policy in ["lru", "fifo", "two-hit"] {
        let line = format!("{EDGES} --eviction {policy}");
        let swaps = [3, 17, 30].map(|before| format!(" --swap {before}:eviction={policy}")).concat();
        let (plain, swapped) = (shell.run(&line).exits(0), shell.run(&format!("{line}{swaps}")).exits(0));
        assert_eq!(plain.integers(), swapped.integers(), "{policy}");
    }
    for policy in CHECKPOINTS {
        let line = format!("{EDGES} --checkpoints {policy}");
        let swapped = shell.run(&format!("{line} --swap 12:checkpoints={policy}")).exits(0);
        assert_eq!(shell.run(&line).exits(0).integers(), swapped.integers(), "{policy}");
    }
}

#[test]
fn a_swap_is_not_without_effect() {
    let shell = Shell::new();
    let lru = shell.run(EDGES).exits(0).integers();
    for swap in ["10:eviction=two-hit", "10:checkpoints=full", "1:checkpoints=zero"] {
        let run = shell.run(&format!("{EDGES} --swap {swap}")).exits(0);
        assert_ne!(run.integers(), lru, "{swap}");
    }
    let zero = shell.run(&format!("{EDGES} --checkpoints zero")).exits(0).integers();
    assert_eq!(shell.run(&format!("{EDGES} --swap 1:checkpoints=zero")).exits(0).integers(), zero);
}

/// A real store, with eviction, dropped checkpoints and replayed windows, gives what the books alone give.
#[test]
fn a_real_store_does_not_find_other_hits_than_a_dry_run() {
    let shell = Shell::new();
    for (name, options) in [
        ("events", "--history-gib 0.1 --window-gib 0.02"),
        ("full", "--history-gib 0.06 --window-gib 0.03 --checkpoints full --eviction two-hit"),
        ("zero", "--history-gib 0.1 --window-gib 0 --checkpoints zero --eviction fifo --native"),
        ("none", "--history-gib 0 --window-gib 0.02"),
        ("one", "--history-gib 0.00042 --window-gib 0.0035"),
        ("no-replay", "--history-gib 0.1 --window-gib 0.05 --no-replay"),
    ] {
        let stored = shell.run(&format!("replay --json --limit 6 --store {name} {options}")).exits(0);
        let dry = shell.run(&format!("replay --json --limit 6 --dry-run {options}")).exits(0);
        assert_eq!(stored.integers(), dry.integers(), "{name}");
        let loaded = stored.number("loaded_history") + stored.number("loaded_window");
        assert_eq!((stored.number("verified_bytes"), dry.number("verified_bytes")), (loaded, 0), "{name}");
    }
}

#[test]
fn verify_turned_off_does_not_change_the_result() {
    let shell = Shell::new();
    let line = "replay --json --limit 5 --history-gib 0.05 --window-gib 0.02 --store";
    let checked = shell.run(&format!("{line} a")).exits(0);
    let unchecked = shell.run(&format!("{line} b --verify=false")).exits(0);
    assert_eq!(checked.integers(), unchecked.integers());
    assert!(checked.number("verified_bytes") > 0 && unchecked.number("verified_bytes") == 0);
}
