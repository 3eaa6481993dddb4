//! A replay that is killed, and the same replay on what it left.

use std::{fs, thread, time::Duration};

use crate::shell::{Run, Running, Shell};

/// Room for all that it saves, so that whatever survives is a hit.
const REPLAY: &str = "replay --json --limit 6 --history-gib 0.35 --window-gib 0.05";

/// Waits until a process has written so many bytes, by the kernel's count.
fn wait_for_written(running: &mut Running, bytes: u64) {
    let io = format!("/proc/{}/io", running.id());
    loop {
        assert!(!running.has_ended(), "it was to be killed before it had written {bytes} bytes");
        let counts = fs::read_to_string(&io).unwrap_or_default();
        // The first counts system calls, the second what reaches a device, by io_uring as well.
        let count = |name| counts.lines().find_map(|line| line.strip_prefix(name)?.parse().ok()).unwrap_or(0_u64);
        if count("wchar: ").max(count("write_bytes: ")) >= bytes {
            return;
        }
        thread::sleep(Duration::from_micros(200));
    }
}

/// A shell in which policies were compiled once: what is kept of that is written, too, and is not what is waited for.
fn shell_with_compiled_policies() -> Shell {
    let shell = Shell::new();
    shell.run("replay --json --dry-run --limit 0").exits(0);
    shell
}

/// `store verify` of what a kill left: it opens, and finds good records, or damaged ones, which are misses.
#[track_caller]
fn verify(shell: &Shell, store: &str) -> Run {
    let run = shell.run(&format!("store verify {store} --json"));
    let json = run.json();
    let count = |field: &str| -> u64 {
        json["classes"].as_array().unwrap().iter().map(|class| class[field].as_u64().unwrap()).sum()
    };
    let damaged = count("corrupt") + count("damaged_entries");
    assert_eq!(run.code, Some(i32::from(damaged > 0)), "{run}");
    assert_eq!(count("unreadable"), 0, "{run}");
    assert_eq!(count("good") + count("corrupt"), count("records"), "{run}");
    run
}

#[test]
fn a_killed_replay_does_not_lose_what_it_wrote() {
    let shell = shell_with_compiled_policies();
    let fresh = shell.run(&format!("{REPLAY} --store fresh")).exits(0);
    assert_eq!(fresh.number("recovery/blocks"), 0);
    let mut found = 0;
    for more_bytes in [24 << 20, 40 << 20, 75 << 20, 50 << 20] {
        let mut running = shell.start(&format!("{REPLAY} --store st"));
        wait_for_written(&mut running, more_bytes);
        running.kill();
        let good = verify(&shell, "st").json()["classes"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|class| class["name"].as_str().unwrap().starts_with("history"))
            .map(|class| class["good"].as_u64().unwrap())
            .sum::<u64>();
        assert!(good > found, "each round kept what was there and added to it: {good} after {found}");
        found = good;
    }
    let again = shell.run(&format!("{REPLAY} --store st")).exits(0);
    // A block is resident if the path to it is. Sixteen are written side by side, so that of the last some may lack one before them.
    let blocks = again.number("recovery/blocks");
    assert!(blocks <= found && blocks + 16 > found, "{found} good records: {again}");
    assert!(again.number("matched_tokens") > fresh.number("matched_tokens"), "{again}");
    assert!(again.number("written_history") + blocks * 449_824 >= fresh.number("written_history"), "{again}");
    let loaded = again.number("loaded_history") + again.number("loaded_window");
    assert!(again.number("verified_bytes") == loaded && loaded > 0, "every byte was compared: {again}");
    verify(&shell, "st");
}

/// With quotas that make it evict all the time, a kill falls between the end of an old record and the start of a new one.
#[test]
fn a_kill_amid_evictions_does_not_bring_wrong_bytes() {
    let shell = shell_with_compiled_policies();
    let replay = "replay --json --history-gib 0.05 --window-gib 0.02 --store st";
    let mut found = Vec::new();
    for bytes in [60, 90, 130, 61] {
        let mut running = shell.start(replay);
        wait_for_written(&mut running, bytes << 20);
        running.kill();
        verify(&shell, "st");
        let again = shell.run(&format!("{replay} --limit 5")).exits(0);
        found.push(again.number("recovery/blocks"));
        let loaded = again.number("loaded_history") + again.number("loaded_window");
        assert_eq!(again.number("verified_bytes"), loaded, "{again}");
    }
    // A kill while the start of a new path is written over the start of the only old one leaves records that no path leads to; not at
    // each of these moments.
    assert!(found.iter().any(|&blocks| blocks > 0), "{found:?}");
}

#[test]
fn a_store_in_use_is_not_opened_twice() {
    let shell = shell_with_compiled_policies();
    let mut owner = shell.start("replay --json --store st");
    wait_for_written(&mut owner, 1 << 20);
    let second = shell.run("replay --json --store st --limit 1").exits(2);
    assert!(second.err.contains(&format!("in use by process {} on ", owner.id())), "{second}");
    // Looking is allowed.
    assert!(matches!(shell.run("store verify st").code, Some(0 | 1)));
    assert!(!owner.has_ended());
    owner.kill();
    shell.run("replay --json --store st --limit 1").exits(0);
}
