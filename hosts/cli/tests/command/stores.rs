//! Directories given as a store: what is not one is left alone, what is one is used again.

use std::fs;

use crate::shell::Shell;

const SMALL: &str = "--limit 5 --history-gib 0.04 --window-gib 0.02";

#[test]
fn a_directory_of_something_else_is_not_taken_over() {
    let shell = Shell::new();
    fs::create_dir(shell.path("mine")).unwrap();
    shell.write("mine/notes.txt", "keep me");
    let run = shell.run("replay --store mine").exits(2).says("notes.txt").says("left untouched");
    assert_eq!(run.out, "");
    shell.run("store verify mine").exits(2).says("notes.txt");
    let names: Vec<_> = fs::read_dir(shell.path("mine")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["notes.txt"]);
    assert_eq!(fs::read(shell.path("mine/notes.txt")).unwrap(), b"keep me");
}

#[test]
fn a_file_is_not_taken_for_a_directory() {
    let shell = Shell::new();
    shell.write("file", "keep me");
    for store in ["file", "file/st", "file/st/deeper"] {
        shell.run(&format!("replay --store {store}")).exits(2).says("file is a file");
    }
    shell.run("store verify file").exits(2).says("Not a directory");
    assert_eq!(fs::read(shell.path("file")).unwrap(), b"keep me");
    shell.run("store verify missing").exits(2).says("does not exist");
    assert!(!shell.exists("missing"));
}

#[test]
fn an_empty_directory_is_not_refused() {
    let shell = Shell::new();
    fs::create_dir(shell.path("empty")).unwrap();
    shell.run(&format!("replay --json --store empty {SMALL}")).exits(0);
    shell.run(&format!("replay --json --store new/deep/down {SMALL}")).exits(0);
    for store in ["empty", "new/deep/down"] {
        assert!(shell.run(&format!("store verify {store} --json")).exits(0).json()["clean"] == true);
    }
}

/// Two replays at once, each on a store of its own, and a look at both meanwhile.
#[test]
fn two_stores_do_not_disturb_each_other() {
    let shell = Shell::new();
    let alone = shell.run(&format!("replay --json --dry-run {SMALL}")).exits(0).integers();
    let both = ["a", "b"].map(|store| shell.start(&format!("replay --json --store {store} {SMALL}")));
    for run in both.map(|running| running.wait().exits(0)) {
        assert_eq!(run.integers(), alone);
    }
}

/// The quota is a cap, and what the files take beside it is bounded.
#[test]
fn a_store_does_not_outgrow_its_quota() {
    let shell = Shell::new();
    let quota_bytes = ((0.04 + 0.02) * f64::from(1 << 30)) as u64;
    let mut before = 0;
    for _ in 0..2 {
        let run = shell.run(&format!("replay --json --store st {SMALL}")).exits(0);
        let kept = run.number("final_history_bytes") + run.number("final_window_bytes");
        assert!(run.number("evicted_history") > 0 && kept <= quota_bytes, "{run}");
        let allocated = shell.allocated_bytes("st");
        assert!(allocated <= quota_bytes + (1 << 20), "{allocated} bytes on disk for a quota of {quota_bytes}");
        assert!(before == 0 || allocated <= before + (64 << 10), "{allocated} after {before}");
        before = allocated;
    }
}

/// What a store holds is a hit in the next process; another quota, model or block size takes what it can and drops the rest.
#[test]
fn a_store_opened_another_way_does_not_fail() {
    let shell = Shell::new();
    let replay = |options: &str| {
        let run = shell.run(&format!("replay --json --store st {options}")).exits(0);
        let loaded: u64 = run.number("loaded_history") + run.number("loaded_window");
        let drafts = run.json()["groups"]["draft"]["counters"]["loaded-bytes"].as_u64().unwrap_or(0);
        assert_eq!(run.number("verified_bytes"), loaded + drafts, "{run}");
        shell.run("store verify st").exits(0);
        run
    };
    let first = replay("--limit 2 --history-gib 0.4 --window-gib 0.05");
    let again = replay("--limit 2 --history-gib 0.4 --window-gib 0.05");
    assert!(again.number("matched_tokens") > first.number("matched_tokens"));
    assert_eq!((again.number("written_history"), again.number("hits")), (0, 2), "{again}");

    let smaller = replay("--limit 2 --history-gib 0.1 --window-gib 0.01");
    let slots = smaller.number("groups/history/slots");
    assert!((1..=slots).contains(&smaller.number("recovery/blocks")), "{smaller}");
    assert!(smaller.number("recovery/dropped") > 0, "{smaller}");
    let larger = replay("--limit 2 --history-gib 0.4 --window-gib 0.05");
    assert_eq!(larger.number("recovery/blocks"), slots, "{larger}");

    // A draft layer changes nothing in the blocks, but belongs to another model, whose blocks are others.
    let draft = replay("--limit 2 --history-gib 0.4 --window-gib 0.05 --model v4-flash:draft=on");
    assert!(draft.number("recovery/blocks") > 0 && draft.number("groups/draft/counters/written-bytes") > 0, "{draft}");
    for (options, record_bytes) in [("--block-tokens 256", 899_648), ("--model gpt-oss-20b", 3_145_728)] {
        let other = replay(&format!("--limit 1 --history-gib 0.05 --window-gib 0.02 {options}"));
        assert_eq!(other.number("recovery/blocks"), 0, "{other}");
        assert_eq!(other.number("groups/history/record_bytes"), record_bytes);
        assert!(other.number("recovery/dropped") > 0, "{other}");
    }
    let none = replay("--limit 1 --history-gib 0 --window-gib 0");
    assert_eq!((none.number("recovery/blocks"), none.number("written_history")), (0, 0));
}
