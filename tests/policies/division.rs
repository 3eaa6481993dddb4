//! One budget for blocks and windows: never exceeded, divided as well as the best fixed share, and anew when the work changes.

use std::path::Path;

use reprise::{Budget, Cache, Config, Group, OpenError, Role};
use reprise_cli::{
    replay::{Options, replay},
    trace::{ReadOptions, Trace},
};
use reprise_tests::repository;

const BUDGET: u64 = 4 << 30;

fn config(bytes: u64, policies: (&str, &str)) -> Config {
    Config {
        budget: Some(Budget { bytes }),
        eviction: policies.0.parse().unwrap(),
        checkpoints: policies.1.parse().unwrap(),
        native_policies: true,
        deterministic: true,
        ..Config::new("v4-flash").unwrap()
    }
}

fn conversation() -> Trace {
    Trace::read(&repository("tests/data/conversation-part.jsonl.gz"), &ReadOptions::default()).unwrap()
}

/// Replays; at each request the budget must hold.
fn replayed(cache: &Cache, trace: &Trace, budget: u64) -> u64 {
    let mut check = |number: u64, _: u64, cache: &Cache| {
        let stats = cache.stats();
        let used: u64 = stats.resident_bytes.iter().sum();
        assert!(used <= budget, "request {number}: {used} of {budget} bytes");
        assert!(stats.capacity_bytes.iter().sum::<u64>() <= budget, "request {number}: {:?}", stats.capacity_bytes);
    };
    replay(cache, trace, &Options::default(), &mut check).unwrap().integers.saved_tokens
}

#[test]
fn a_share_that_was_learned_does_not_save_much_less_than_the_best_from_the_start() {
    let trace = conversation();
    for policies in [("auto", "adaptive"), ("lru", "events"), ("lru", "zero"), ("lru", "full")] {
        let cache = Cache::open(config(BUDGET, policies)).unwrap();
        let saved = replayed(&cache, &trace, BUDGET);
        let report = cache.policies().division().unwrap();
        let best = report.scouts.iter().map(|scout| scout.saved_tokens).max().unwrap();
        let worst = report.scouts.iter().map(|scout| scout.saved_tokens).min().unwrap();
        assert!(worst < best, "{policies:?}: here, the share matters");
        // It has the sample's 1,500 requests to find out, and to fill the cache.
        assert!(saved * 100 >= best * 90, "{policies:?}: {saved} of {best}: {report:?}");
        assert_eq!(report.missed_requests, 0);
    }
}

#[test]
fn windows_that_nobody_asks_for_do_not_keep_their_share() {
    let cache = Cache::open(config(BUDGET, ("lru", "zero"))).unwrap();
    replayed(&cache, &conversation(), BUDGET);
    let report = cache.policies().division().unwrap();
    assert_eq!((report.window_permille, report.moves), (0, 1), "{report:?}");
    assert_eq!(cache.stats().capacity_bytes[Group::Window as usize], 0);
}

#[test]
fn a_run_is_not_divided_otherwise_when_it_is_repeated() {
    let trace = conversation();
    let run = || {
        let cache = Cache::open(config(BUDGET, ("auto", "adaptive"))).unwrap();
        (replayed(&cache, &trace, BUDGET), cache.policies().division())
    };
    assert_eq!(run(), run());
}

#[test]
fn another_policy_is_not_judged_by_what_was_found_of_the_one_before() {
    let trace = conversation();
    let cache = Cache::open(config(BUDGET, ("lru", "zero"))).unwrap();
    replayed(&cache, &trace, BUDGET);
    cache.policies().swap(Role::Checkpoints, &"full".parse().unwrap()).unwrap();
    let report = cache.policies().division().unwrap();
    assert!(report.scouts.iter().all(|scout| scout.saved_tokens == 0), "{report:?}");
    assert_eq!(report.window_permille, 0);
    replayed(&cache, &trace, BUDGET);
    assert_ne!(cache.policies().division().unwrap().window_permille, 0);
}

#[test]
fn a_budget_without_room_for_anything_is_not_an_error_and_keeps_nothing() {
    let trace = conversation();
    for bytes in [0, 1, 700_000, 6 << 20] {
        let cache = Cache::open(config(bytes, ("auto", "adaptive"))).unwrap();
        replayed(&cache, &trace, bytes);
    }
}

#[test]
fn a_store_is_not_opened_with_a_budget_that_it_cannot_divide() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let refused = Cache::open(Config { store: Some(store.clone()), ..config(BUDGET, ("lru", "events")) });
    let Err(error @ OpenError::BudgetOfStore { .. }) = refused else { panic!("{refused:?}") };
    assert!(error.to_string().contains("reprise compare"), "{error}");
    assert!(!Path::new(&store).exists(), "nothing was touched");
}

/// Beside the requests: scouts that are told through a queue.
#[test]
fn scouts_on_threads_of_their_own_do_not_hold_a_request_up_or_lose_count() {
    let trace = conversation();
    let cache = Cache::open(Config { deterministic: false, ..config(BUDGET, ("lru", "zero")) }).unwrap();
    replayed(&cache, &trace, BUDGET);
    let report = cache.policies().division().unwrap();
    assert_eq!(report.scouts.len(), 7);
}
