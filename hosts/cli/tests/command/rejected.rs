//! Policies that cannot run at all: the command says what is missing, exits with 2, and touches nothing.

use std::fs;

use crate::shell::Shell;

const CACHE: &str = "reprise:policy/cache@0.1.0";
const CHECKPOINTS: &str = "reprise:policy/checkpoints@0.1.0";

/// Asserts that `policy` is refused in a seat, as the first policy and as one that comes in later, native or not; the store
/// is never made.
#[track_caller]
fn refused(shell: &Shell, seat: &str, policy: &str, says: &[&str]) {
    for options in [
        format!("--{seat} {policy}"),
        format!("--{seat} {policy} --native"),
        format!("--swap 2:{seat}={policy}"),
        format!("--limit 1 --swap 2:{seat}={policy}"),
    ] {
        let run = shell.run(&format!("replay --store st {options}")).exits(2);
        for text in says {
            assert!(run.err.contains(text), "expected `{text}`: {run}");
        }
        assert_eq!((run.out.as_str(), run.err.lines().count()), ("", 1), "{run}");
        assert!(!shell.exists("st"), "{run}");
    }
}

#[test]
fn a_file_that_is_no_policy_does_not_run() {
    let shell = Shell::new();
    let lru = fs::read(shell.path("repo/policies/dist/lru.wasm")).unwrap();
    shell.write("text.wasm", "(component)\n");
    shell.write("empty.wasm", "");
    shell.write("cut.wasm", &lru[..lru.len() / 2]);
    shell.write("module.wasm", b"\0asm\x01\0\0\0");
    shell.write("nothing.wasm", b"\0asm\x0d\0\x01\0");
    fs::create_dir(shell.path("directory.wasm")).unwrap();
    for (seat, export) in [("eviction", CACHE), ("checkpoints", CHECKPOINTS)] {
        for (file, says) in [
            ("text.wasm", &["no WebAssembly component", export][..]),
            ("empty.wasm", &["no WebAssembly component", "empty", export]),
            ("cut.wasm", &["not valid", export]),
            ("module.wasm", &["core WebAssembly module", export]),
            ("nothing.wasm", &["does not export", export, "nothing"]),
            ("directory.wasm", &["Is a directory"]),
            ("missing.wasm", &["No such file"]),
        ] {
            refused(&shell, seat, file, &[&[file][..], says].concat());
        }
    }
}

#[test]
fn a_component_of_another_world_does_not_take_the_seat() {
    let shell = Shell::new();
    refused(&shell, "eviction", "repo/policies/dist/events.wasm", &["does not export", CACHE, CHECKPOINTS]);
    refused(&shell, "checkpoints", "repo/policies/dist/lru.wasm", &["does not export", CHECKPOINTS, CACHE]);
    refused(&shell, "eviction", "repo/policies/dist/core.wasm", &["does not export", CACHE]);
}

#[test]
fn a_component_of_another_version_does_not_take_the_seat() {
    let shell = Shell::new();
    for (seat, policy, export) in [("eviction", "lru", CACHE), ("checkpoints", "events", CHECKPOINTS)] {
        let mut bytes = fs::read(shell.path(&format!("repo/policies/dist/{policy}.wasm"))).unwrap();
        let (old, new) = (b"@0.1.0", b"@0.2.0");
        let places: Vec<usize> = (0..bytes.len() - old.len()).filter(|&at| bytes[at..].starts_with(old)).collect();
        assert!(!places.is_empty());
        for at in places {
            bytes[at..at + new.len()].copy_from_slice(new);
        }
        shell.write("next.wasm", bytes);
        refused(&shell, seat, "next.wasm", &["does not export", export, &export.replace("0.1.0", "0.2.0")]);
    }
}

#[test]
fn a_policy_nobody_knows_is_not_taken_for_another() {
    let shell = Shell::new();
    refused(&shell, "eviction", "nope", &["no eviction policy is named `nope`", "lru, fifo, two-hit"]);
    refused(&shell, "checkpoints", "nope", &["no checkpoint policy is named `nope`", "full, periodic, events, zero"]);
    refused(&shell, "eviction", "events", &["no eviction policy is named `events`"]);
    refused(&shell, "checkpoints", "lru", &["no checkpoint policy is named `lru`"]);
}

#[test]
fn a_setting_that_makes_no_sense_is_not_passed_over() {
    let shell = Shell::new();
    let hostile = "repo/tests/fixtures/hostile.wasm";
    for (seat, policy, says) in [
        ("eviction", "lru:x=1", &["`lru`", "no setting `x`; there is none"][..]),
        ("eviction", "two-hit:x=1", &["`two-hit`", "no setting `x`"]),
        ("checkpoints", "events:front=1", &["`events`", "no setting `front`; there is back"]),
        ("checkpoints", "events:back=1025", &["`events`", "`back` takes 0 to 1024, not 1025"]),
        ("checkpoints", "periodic:0", &["`periodic`", "`period` takes 1 to 4294967295, not 0"]),
        ("checkpoints", "periodic:soon", &["`period` takes a whole number, not `soon`"]),
        ("checkpoints", "periodic:-1", &["`period` takes a whole number, not `-1`"]),
        ("checkpoints", "periodic:99999999999999999999", &["`period` takes a whole number"]),
        ("eviction", &format!("{hostile}:mood=1"), &["`hostile`", "no setting `mood`; there is mode, after"]),
        ("eviction", &format!("{hostile}:mode=9"), &["`hostile`", "`mode` takes 0 to 8, not 9"]),
        ("eviction", &format!("{hostile}:after=1,mode=x"), &["`mode` takes a whole number, not `x`"]),
    ] {
        refused(&shell, seat, policy, says);
    }
    for policy in ["lru:8", "lru:=1", "two-hit:a,b"] {
        shell.run(&format!("replay --store st --eviction {policy}")).exits(2).says("key=value");
        assert!(!shell.exists("st"));
    }
}
