//! The report on a policy: honest ones pass all of it, and each check finds what it is there for.

use reprise_core::policy::Kind;
use reprise_wasm::{CheckOptions, LoadError, Report, check};

mod kit;

/// Enough for state that grows by a few bytes an event to be seen.
const EVENTS: u64 = 1 << 18;

fn checked(bytes: &[u8], kind: Kind) -> Report {
    let options = CheckOptions { events: EVENTS, ..CheckOptions::default() };
    check(bytes, "policy.wasm", kind, &options).unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn fails(policy: kit::CachePolicy<'_>, name: &str, says: &str) {
    let report = checked(&policy.component(), Kind::Cache);
    let failed: Vec<_> = report.checks.iter().filter(|check| check.failure.is_some()).collect();
    assert!(!report.passed());
    let found = failed.iter().find(|check| check.name.contains(name));
    let failure = found.and_then(|check| check.failure.as_deref()).unwrap_or_else(|| panic!("{failed:#?}"));
    assert!(failure.contains(says), "{failure}");
}

#[test]
fn shipped_policies_do_not_fail_a_check() {
    for name in reprise_policies_dist::NAMES.iter().filter(|&&name| name != "core") {
        let bytes = reprise_policies_dist::component(name).unwrap();
        let kind = reprise_wasm::inspect(bytes).unwrap().kind.unwrap();
        let report = checked(bytes, kind);
        assert!(report.passed(), "{name}: {report:#?}");
        assert_eq!(report.description.name, *name);
        let calls = report.calls.unwrap();
        assert!(calls.calls > 1000 && calls.median <= calls.p99, "{name}: {calls:?}");
        assert!(calls.fuel_per_item > Some(10), "{name}: {calls:?}");
        assert!(report.memory_bytes > 64 << 10, "{name}");
        // What no state is kept of is not asked for it.
        let saves = report.checks.iter().any(|check| check.name.contains("saved"));
        assert_eq!(saves, report.description.state_schema != 0, "{name}");
    }
}

/// Whether no event is told.
const NO_EVENT: &str = "(i32.eqz (local.get $words))";

#[test]
fn a_trap_in_an_empty_batch_does_not_pass() {
    let step = format!("(if {NO_EVENT} (then unreachable)) i32.const 64");
    fails(kit::CachePolicy { step: &step, ..Default::default() }, "an empty batch", "trapped");
}

#[test]
fn a_trap_at_an_unknown_kind_does_not_pass() {
    let step = format!(
        "(if (i32.eqz {NO_EVENT}) (then (if (i32.eq (i32.load8_u (local.get $events)) (i32.const 7)) (then unreachable)))) i32.const 64"
    );
    fails(kit::CachePolicy { step: &step, ..Default::default() }, "unknown kinds", "trapped");
}

#[test]
fn a_victim_where_none_is_does_not_pass() {
    let step = "(i32.store (i32.const 512) (i32.const 64)) (i32.store (i32.const 516) (local.get $want)) i32.const 512";
    fails(kit::CachePolicy { step, ..Default::default() }, "an empty batch", "victim 0 is not there");
}

#[test]
fn an_answer_that_is_longer_than_what_there_is_does_not_pass() {
    // Asked for 64, it names record 0 as often.
    let step = "(i32.store (i32.const 512) (i32.const 1024))
        (i32.store (i32.const 516) (select (i32.const 64) (i32.const 0) (i32.eq (local.get $want) (i32.const 64))))
        i32.const 512";
    fails(kit::CachePolicy { step, ..Default::default() }, "more than there is", "named twice");
}

#[test]
fn state_that_grows_with_every_event_does_not_pass() {
    // A page every second batch of 256: 128 bytes an event, far from every limit.
    let step = "(global.set $calls (i32.add (global.get $calls) (i32.const 1)))
        (if (i32.and (global.get $calls) (i32.const 1)) (then (drop (memory.grow (i32.const 1)))))
        i32.const 64";
    let fields = "(global $calls (mut i32) (i32.const 0))";
    fails(kit::CachePolicy { step, fields, ..Default::default() }, "memory does not grow", "about the same records");
}

#[test]
fn settings_that_nobody_declared_do_not_pass() {
    // The template's `configure` takes anything.
    fails(kit::CachePolicy::default(), "settings", "an operator's slip");
}

#[test]
fn what_does_not_load_has_no_report() {
    let lru = reprise_policies_dist::component("lru").unwrap();
    let options = CheckOptions { events: EVENTS, ..CheckOptions::default() };
    assert!(matches!(check(lru, "lru.wasm", Kind::Checkpoint, &options), Err(LoadError::Missing { .. })));
    assert!(matches!(check(b"x", "x", Kind::Cache, &options), Err(LoadError::NotWasm { .. })));
    // One that fails its first run has one: that is what it is for.
    let trapping = kit::CachePolicy { step: "unreachable", ..Default::default() }.component();
    let report = check(&trapping, "trapping", Kind::Cache, &options).unwrap();
    assert!(!report.passed() && report.calls.is_none());
}
