//! Policies that fail while a cache serves by the clock: they are made anew beside the requests.

use std::thread;

use reprise::{Cache, Config, PolicyStatus, Role};
use reprise_tests::engine::{BLOCK_TOKENS, prompt, small};

use crate::{hostile, namespace, serve};

/// Serves requests, each of which needs room, until the policy in the eviction seat is as wanted.
fn serve_until(cache: &Cache, wanted: impl Fn(&PolicyStatus) -> bool) -> PolicyStatus {
    let namespace = namespace(cache);
    for now in 1..2_000_000_u32 {
        serve(&namespace, &prompt(now, 4 * BLOCK_TOKENS), now.into());
        let [status, _] = cache.policies().status();
        if wanted(&status) {
            return status;
        }
        thread::yield_now();
    }
    panic!("it never was: {:?}", cache.policies().status());
}

#[test]
fn a_policy_that_failed_is_not_gone_for_good() {
    let config = Config { eviction: hostile("mode=1,after=3").parse().unwrap(), strikes: 1000, ..small(16, 0) };
    let cache = Cache::open(config).unwrap();
    let failed = serve_until(&cache, |status| status.strikes > 0);
    assert!(failed.last_strike.unwrap().contains("unreachable"));
    let decided = failed.decisions;
    let again = serve_until(&cache, |status| !status.restarting && status.decisions > decided);
    assert!(!again.retired);
    let notices = cache.policies().take_notices();
    assert_eq!(notices.len(), 1, "said once: {notices:?}");
    assert!(cache.stats().counters.native_evictions > 0, "meanwhile the fallback answers");
}

#[test]
fn a_policy_that_keeps_failing_is_not_kept() {
    let config = Config { eviction: hostile("mode=1,after=3").parse().unwrap(), strikes: 3, ..small(16, 0) };
    let status = serve_until(&Cache::open(config).unwrap(), |status| status.retired);
    assert_eq!((status.strikes, status.restarting), (3, false));
}

#[test]
fn a_successor_that_keeps_failing_does_not_cost_the_predecessor_its_seat() {
    let cache = Cache::open(Config { eviction: "fifo".parse().unwrap(), strikes: 2, ..small(16, 0) }).unwrap();
    serve_until(&cache, |status| status.decisions > 0);
    cache.policies().swap(Role::Eviction, &hostile("mode=1,after=5").parse().unwrap()).unwrap();
    let back = serve_until(&cache, |status| status.name == "fifo" && !status.restarting && status.decisions > 0);
    assert_eq!(back.rolled_back_from.as_deref(), Some("hostile"));
    assert_eq!(back.strikes, 0);
    let texts: Vec<String> = cache.policies().take_notices().iter().map(ToString::to_string).collect();
    assert!(texts.last().unwrap().contains("`fifo`: is back"), "{texts:?}");
}

#[test]
fn a_cache_does_not_wait_long_to_close_for_a_policy_that_is_made_anew() {
    let directory = tempfile::tempdir().unwrap();
    for strikes in [1, 2, 1000] {
        let eviction = hostile("mode=1,after=1").parse().unwrap();
        let store = Some(directory.path().join("store"));
        // The lock on the store is free at once: nothing of the cache before is left.
        let cache = Cache::open(Config { eviction, strikes, store, ..small(16, 4) }).unwrap();
        serve_until(&cache, |status| status.strikes > 0);
    }
}

#[test]
fn a_checkpoint_policy_that_failed_is_made_anew_or_retired() {
    let fixture = reprise_tests::repository("tests/fixtures/hostile-checkpoints.wasm");
    let checkpoints = format!("{}:mode=1", fixture.display()).parse().unwrap();
    let cache = Cache::open(Config { checkpoints, strikes: 3, ..small(64, 16) }).unwrap();
    let namespace = namespace(&cache);
    for now in 1..1_000_000_u32 {
        let tokens = prompt(now, 2 * BLOCK_TOKENS);
        let plan = namespace.sequence(&tokens).plan(now.into()).unwrap();
        assert_eq!(plan.captures, [2 * BLOCK_TOKENS], "`events` answers in its place");
        if cache.policies().status()[1].retired {
            return;
        }
        thread::yield_now();
    }
    panic!("{:?}", cache.policies().status()[1]);
}
