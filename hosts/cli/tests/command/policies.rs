//! Policies looked at, checked and measured: what is said of them, and of what is none.

use std::fs;

use serde_json::Value;

use crate::shell::{Run, Shell};

const HOSTILE: &str = "repo/tests/fixtures/hostile.wasm";

/// Keys of the object on standard output, or of one in it.
fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

/// Asserts that it can be read on a terminal.
#[track_caller]
fn is_plain(run: &Run) {
    for text in [&run.out, &run.err] {
        assert!(text.chars().all(|found| found == '\n' || !found.is_control()), "{run}");
    }
}

#[test]
fn nothing_that_can_be_told_of_a_policy_is_left_out() {
    let shell = Shell::new();
    let lru = shell.run("policy inspect lru").exits(0);
    let digest = blake3::hash(&fs::read(shell.path("repo/policies/dist/lru.wasm")).unwrap()).to_hex();
    for says in [
        "lru 0.1.0: eviction\nno settings\n",
        "reprise:policy/cache-policy@0.1.0",
        "reprise:policy/setup@0.1.0",
        "imports     nothing",
        "profile     integer",
        &format!("digest      {digest}\n"),
        &format!("pins = {{ lru = \"{digest}\" }}"),
        &format!("--pin lru={digest}"),
    ] {
        assert!(lru.out.contains(says), "expected `{says}`: {lru}");
    }
    is_plain(&lru);
    let two_hit = shell.run("policy inspect two-hit").exits(0);
    assert!(two_hit.out.starts_with("two-hit 0.1.0: eviction, with admission\nno settings\n"), "{two_hit}");
    let periodic = shell.run("policy inspect repo/policies/dist/periodic.wasm").exits(0);
    assert!(periodic.out.starts_with("periodic 0.1.0: checkpoints\n  period="), "{periodic}");
    assert!(periodic.out.contains("(1 to 4294967295): "), "{periodic}");
}

#[test]
fn a_program_that_reads_a_report_does_not_miss_a_key() {
    let shell = Shell::new();
    let inspected = shell.run("policy inspect events --json").exits(0);
    assert_eq!((inspected.out.lines().count(), inspected.err.as_str()), (1, ""), "{inspected}");
    let json = inspected.json();
    assert_eq!(
        keys(&json),
        [
            "bytes",
            "contract",
            "digest",
            "exports",
            "form",
            "imports",
            "memory_bytes",
            "metadata",
            "modules",
            "origin",
            "pin",
            "policy",
            "profile",
            "refused",
            "world"
        ]
    );
    assert_eq!(
        keys(&json["metadata"]),
        [
            "authors",
            "description",
            "homepage",
            "languages",
            "licenses",
            "name",
            "processed_by",
            "revision",
            "sdks",
            "source",
            "version"
        ]
    );
    assert_eq!(keys(&json["policy"]), ["admission", "kind", "name", "settings", "state_schema", "version"]);
    assert_eq!(keys(&json["policy"]["settings"][0]), ["default", "help", "key", "max", "min"]);
    assert_eq!((&json["refused"], &json["policy"]["kind"]), (&Value::Null, &"checkpoint".into()));

    let checked = shell.run("policy check fifo --events 2048 --json").exits(0);
    assert_eq!((checked.out.lines().count(), checked.err.as_str()), (1, ""), "{checked}");
    let json = checked.json();
    assert_eq!(
        keys(&json),
        ["calls", "checks", "events", "memory_bytes", "origin", "passed", "policy", "profile", "refused"]
    );
    assert_eq!(keys(&json["calls"]), ["calls", "fuel_per_item", "items", "median_us", "p99_us"]);
    assert!(json["checks"].as_array().unwrap().iter().all(|check| check["failure"].is_null()), "{checked}");

    let measured = shell.run("policy bench fifo --records 2048 --seconds 0.05 --json").exits(0);
    assert_eq!((measured.out.lines().count(), measured.err.as_str()), (1, ""), "{measured}");
    let json = measured.json();
    assert_eq!(keys(&json), ["batch_events", "policies", "records", "seconds", "turns", "want"]);
    let [native, fifo] = json["policies"].as_array().unwrap().as_slice() else { panic!("{measured}") };
    assert_eq!(
        keys(fifo),
        [
            "calls_over_deadline",
            "decision_us",
            "events_per_second",
            "failure",
            "memory_bytes",
            "name",
            "native",
            "origin",
            "ratio_to_native_lru",
            "version",
            "victims_not_named"
        ]
    );
    assert_eq!((&native["native"], &native["ratio_to_native_lru"]), (&true.into(), &1.0.into()), "{measured}");
    for policy in [native, fifo] {
        assert!(policy["events_per_second"].as_f64().is_some_and(|rate| rate > 0.0), "{measured}");
        let times: Vec<f64> =
            ["p50", "p99", "max"].iter().filter_map(|name| policy["decision_us"][name].as_f64()).collect();
        assert!(times.len() == 3 && times[0] > 0.0 && times.is_sorted(), "{measured}");
        assert_eq!((&policy["victims_not_named"], &policy["failure"]), (&0.into(), &Value::Null), "{measured}");
    }
}

#[test]
fn what_would_be_refused_is_told_of_all_the_same() {
    let shell = Shell::new();
    let lru = fs::read(shell.path("repo/policies/dist/lru.wasm")).unwrap();
    let mut next = lru.clone();
    let (old, new) = (b"@0.1.0", b"@0.2.0");
    for at in 0..next.len() - old.len() {
        if next[at..].starts_with(old) {
            next[at..at + new.len()].copy_from_slice(new);
        }
    }
    shell.write("next.wasm", next);
    shell.write("cut.wasm", &lru[..lru.len() / 2]);
    shell.write("module.wasm", b"\0asm\x01\0\0\0");
    shell.write("nothing.wasm", b"\0asm\x0d\0\x01\0");
    for (file, says) in [
        ("next.wasm", &["does not export `reprise:policy/cache@0.1.0`", "reprise:policy/cache@0.2.0"][..]),
        ("cut.wasm", &["not valid"]),
        ("module.wasm", &["core WebAssembly module"]),
        ("nothing.wasm", &["is no policy: it exports nothing"]),
        ("repo/policies/dist/core.wasm", &["is no policy: it exports `reprise:policy/prefix@0.1.0`"]),
    ] {
        let run = shell.run(&format!("policy inspect {file}")).exits(1);
        let digest = blake3::hash(&fs::read(shell.path(file)).unwrap()).to_hex();
        for text in says {
            assert!(run.err.contains(text) && run.out.contains(text), "expected `{text}`: {run}");
        }
        assert!(run.err.contains(file) && run.out.contains(digest.as_str()), "{run}");
        assert_eq!(run.err.lines().count(), 1, "{run}");
        is_plain(&run);
        let json = shell.run(&format!("policy inspect {file} --json")).exits(1).json();
        assert!(json["refused"].as_str().is_some_and(|reason| reason.contains(says[0])), "{json}");
        assert_eq!((&json["digest"], &json["policy"]), (&digest.as_str().into(), &Value::Null), "{json}");
        // It is checked and measured no further.
        let checked = shell.run(&format!("policy check {file}")).exits(1).says("does not load");
        assert!(says.iter().all(|text| checked.out.contains(text)) && checked.out.starts_with("FAIL"), "{checked}");
        let bench = shell.run(&format!("policy bench {file}")).exits(2);
        assert!(says.iter().all(|text| bench.err.contains(text)) && bench.out.is_empty(), "{bench}");
    }
}

#[test]
fn a_policy_nobody_knows_is_not_taken_for_another() {
    let shell = Shell::new();
    shell.write("text.wasm", "(component)\n");
    shell.write("empty.wasm", "");
    fs::create_dir(shell.path("directory.wasm")).unwrap();
    for (policy, says) in [
        ("nope", "no policy is named `nope`; there is full, periodic"),
        ("core", "no policy is named `core`"),
        ("mine", "or a component by its .wasm file"),
        ("missing.wasm", "reading the policy missing.wasm: No such file"),
        ("directory.wasm", "reading the policy directory.wasm: Is a directory"),
        ("text.wasm", "text.wasm is no WebAssembly component or module"),
        ("empty.wasm", "it is empty"),
    ] {
        for command in ["inspect", "check", "bench"] {
            let run = shell.run(&format!("policy {command} {policy}")).exits(2).says(says);
            assert_eq!((run.out.as_str(), run.err.lines().count()), ("", 1), "{run}");
        }
    }
}

#[test]
fn a_question_that_makes_no_sense_is_not_answered() {
    let shell = Shell::new();
    for (line, says) in [
        ("inspect two-hit:x=1", "policy inspect takes no settings"),
        ("check two-hit:x=1", "policy check takes no settings"),
        ("check lru --profile fast", "there is no profile `fast`"),
        ("check lru --events 0", "1024.."),
        ("bench", "FILE"),
        ("bench events", "is a checkpoint policy, and only eviction policies are measured"),
        ("bench lru:x=1", "no setting `x`; there is none"),
        ("bench lru --records 10", "1024.."),
        ("bench lru --seconds 0", "0.01 to 3600 seconds"),
        ("bench lru --seconds NaN", "0.01 to 3600 seconds"),
        ("describe lru", "describe"),
    ] {
        let run = shell.run(&format!("policy {line}")).exits(2).says(says);
        assert_eq!(run.out, "", "{run}");
    }
}

/// A checkpoint policy that names no position and takes every setting, as a compiler without bindings leaves it.
const CARELESS: &str = r#"(module
    (memory (export "memory") 2)
    (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
    (data (i32.const 0) "\20\00\00\00\08\00\00\00\28\00\00\00\05\00\00\00\00\00\00\00\00\00\00\00")
    (data (i32.const 32) "careless0.3.0")
    (func (export "reprise:policy/setup@0.1.0#describe") (result i32) (i32.const 0))
    (func (export "reprise:policy/setup@0.1.0#configure") (param i32 i32) (result i32) (i32.const 64))
    (func (export "reprise:policy/checkpoints@0.1.0#choose")
        (param i64 i32 i32 i32 i32 i32 i32) (result i32) (i32.const 64)))"#;

#[test]
fn a_check_that_fails_does_not_exit_like_one_that_passes() {
    let shell = Shell::new();
    let passed = shell.run("policy check lru --events 4096").exits(0);
    assert!(
        !passed.out.contains("FAIL") && passed.out.lines().filter(|line| line.starts_with("ok ")).count() > 5,
        "{passed}"
    );
    for says in ["lru 0.1.0: eviction, under the profile compiled", "a call ", "99th percentile", "fuel ", "memory "] {
        assert!(passed.out.contains(says), "expected `{says}`: {passed}");
    }

    shell.write("module.wasm", wat::parse_str(CARELESS).unwrap());
    let module = shell.run("policy inspect module.wasm").exits(1);
    assert!(module.out.contains("contract is reprise:policy@0.1.0\n") && !module.out.contains("pin"), "{module}");
    shell.run("policy build module.wasm").exits(2).says("module.wasm is a lone file: say with -o FILE");
    let built = shell.run("policy build module.wasm -o careless.wasm --json").exits(0).json();
    assert_eq!(built["policy"]["name"], "careless", "{built}");
    let failed = shell.run("policy check careless.wasm --events 4096").exits(1).says("careless.wasm: 1 check failed");
    let failures: Vec<&str> = failed.out.lines().filter(|line| line.starts_with("FAIL")).collect();
    assert!(matches!(failures[..], [only] if only.contains("settings")), "{failed}");
    let json = shell.run("policy check careless.wasm --events 4096 --json").exits(1).json();
    assert_eq!((&json["passed"], &json["refused"]), (&false.into(), &Value::Null), "{json}");
    // A host loads it all the same, and what it is was embedded.
    let seen = shell.run("policy inspect careless.wasm --json").exits(0).json();
    assert_eq!(
        (&seen["metadata"]["name"], &seen["metadata"]["version"]),
        (&"careless".into(), &"0.3.0".into()),
        "{seen}"
    );
    assert_eq!((&seen["digest"], &seen["bytes"]), (&built["digest"], &built["bytes"]), "{seen}");
}

/// What a policy fails at while it is measured ends its turns, not those of the others.
#[test]
fn a_policy_that_fails_does_not_end_the_measurement_of_another() {
    let shell = Shell::new();
    let run =
        shell.run(&format!("policy bench {HOSTILE}:mode=1,after=20 lru --records 1024 --seconds 0.05 --json")).exits(1);
    let json = run.json();
    let [native, hostile, lru] = json["policies"].as_array().unwrap().as_slice() else { panic!("{run}") };
    assert!(hostile["failure"].is_string() && hostile["events_per_second"].is_null(), "{run}");
    for policy in [native, lru] {
        assert!(policy["failure"].is_null() && policy["events_per_second"].as_f64().is_some(), "{run}");
    }
    run.says(HOSTILE);
}
