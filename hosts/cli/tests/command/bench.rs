//! Benchmarks: what they say, and that nothing is left behind.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::Value;

use crate::shell::{Run, Shell};

const SMALL: &str = "--record-bytes 8192 --records 64 --rounds 1 --seconds 0.05";

fn is_empty(shell: &Shell, name: &str) -> bool {
    fs::read_dir(shell.path(name)).unwrap().next().is_none()
}

/// Asserts that both sides were measured in both directions, and that every byte was right.
#[track_caller]
fn is_complete(run: &Run, contenders: &[&str]) {
    let json = run.json();
    for direction in ["put", "get"] {
        for contender in contenders {
            let rate = json[direction][contender]["gib_per_second"].as_f64();
            assert!(rate.is_some_and(|rate| rate > 0.0), "{direction}, {contender}: {run}");
        }
        assert!(json[direction]["store_over_raw"].as_f64().is_some_and(|ratio| ratio > 0.0), "{run}");
        let latency: Vec<f64> =
            ["p50", "p99", "max"].iter().filter_map(|name| json[direction]["latency_us"][name].as_f64()).collect();
        assert!(latency.len() == 3 && latency[0] > 0.0 && latency.is_sorted(), "{run}");
    }
    // Where records go to a device, all of them do; in memory, nothing is written.
    let written = json["write_amplification"].as_f64();
    assert!(written.is_none_or(|written| written >= 1.0 && json["direct"] == true), "{run}");
    let bytes = run.number("records") * run.number("record_bytes");
    assert_eq!((run.number("wrong_bytes"), run.number("compared_bytes")), (0, 2 * bytes), "{run}");
    assert!(json["mode"].is_string() && json["engine"].is_string() && json["measures"].is_string(), "{run}");
}

#[test]
fn a_benchmark_leaves_nothing_behind_and_finds_no_wrong_byte() {
    let shell = Shell::new();
    fs::create_dir(shell.path("disk")).unwrap();
    // Records that are no multiple of anything, and fewer than fill a batch.
    for options in [
        SMALL,
        "--record-bytes 70001 --records 5 --depth 5 --rounds 2 --seconds 0.02",
        "--record-bytes 1 --records 1 --depth 1 --rounds 1 --seconds 0.02",
    ] {
        let run = shell.run(&format!("bench disk --dir disk {options} --json")).exits(0).says("reprise-bench-");
        is_complete(&run, &["store", "raw"]);
        assert_eq!(run.json()["put"]["fio"], Value::Null, "{run}");
        assert!(is_empty(&shell, "disk"), "{run}");
    }
    let table = shell.run(&format!("bench disk --dir disk {SMALL} --quiet")).exits(0);
    assert!(table.out.contains("64 records of 8,192 bytes") && table.out.contains("wrong bytes: 0 of"), "{table}");
    assert!(table.out.lines().all(|line| line.chars().count() <= 100), "{table}");
    assert!(is_empty(&shell, "disk"), "{table}");
}

#[test]
fn in_memory_no_device_is_said_to_be_measured() {
    let shell = Shell::new();
    let Ok(memory) = tempfile::tempdir_in("/dev/shm") else {
        eprintln!("skipped: no /dev/shm");
        return;
    };
    let line = format!("bench disk --dir {} {SMALL}", memory.path().display());
    let run = shell.run(&format!("{line} --json")).exits(0);
    is_complete(&run, &["store", "raw"]);
    assert_eq!((&run.json()["measures"], &run.json()["direct"]), (&"software".into(), &false.into()), "{run}");
    shell.run(&line).exits(0).out.find("the software's own cost").expect("it is said what is measured");
    assert!(memory.path().read_dir().unwrap().next().is_none());
}

#[test]
fn a_benchmark_that_cannot_run_touches_nothing() {
    let shell = Shell::new();
    fs::create_dir(shell.path("disk")).unwrap();
    shell.write("file", "");
    for (options, says) in [
        ("", "--dir"),
        ("--dir missing", "looking at missing; --dir takes a directory that exists: No such file"),
        ("--dir file", "file is a file"),
        ("--dir disk --record-bytes 0", "0 is not in 1..=1073741824"),
        ("--dir disk --depth 0", "0 is not in 1..=1024"),
        ("--dir disk --rounds 0", "0 is not in 1..=1000"),
        ("--dir disk --seconds 0", "a turn is 0.001 to 3600 seconds"),
        ("--dir disk --seconds -1", "a turn is 0.001"),
        ("--dir disk --seconds NaN", "a turn is 0.001"),
        ("--dir disk --records 31", "31 records are fewer than the 32"),
        ("--dir disk --record-bytes 1000000000", "would be 29.8 GiB in memory, and 1.0 GiB"),
    ] {
        let run = shell.run(&format!("bench disk {options}")).exits(2).says(says);
        assert!(run.out.is_empty() && is_empty(&shell, "disk"), "{run}");
    }
}

#[test]
fn a_directory_that_may_not_be_written_is_not_a_panic() {
    let shell = Shell::new();
    fs::create_dir(shell.path("disk")).unwrap();
    fs::set_permissions(shell.path("disk"), fs::Permissions::from_mode(0o500)).unwrap();
    if fs::write(shell.path("disk/probe"), "").is_ok() {
        eprintln!("skipped: this user may write everywhere");
        return;
    }
    let run =
        shell.run(&format!("bench disk --dir disk {SMALL}")).exits(1).says("making a temporary directory in disk");
    assert!(run.err.contains("Permission denied") && is_empty(&shell, "disk"), "{run}");
}
