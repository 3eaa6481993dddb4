//! The shipped policies on the small host: whatever happens, no answer breaks the contract.

use reprise_core::policy::{CachePolicy, CheckpointPolicy, Policy};
use reprise_policies::{Adaptive, Events, FlopAware, Lru, Segmented, TtlPriority};
use reprise_policy_testing::{CAPACITY, CacheHarness, CheckpointHarness};

/// Random requests with admission and hand-overs in between. Returns all victims.
fn long_day<P: Policy + CachePolicy + 'static>(settings: &[(&str, &str)], seed: u64) -> Vec<u32> {
    let mut host = CacheHarness::native_with::<P>(settings);
    let mut gone = Vec::new();
    for part in 0..6 {
        gone.extend(host.random_requests(seed * 100 + part, 200));
        let keys: Vec<u64> = (0..20).map(|key| key * (seed + part % 3 + 1)).collect();
        host.admit(&keys, (part * 3) as u32);
        if part % 2 == 1 {
            host.hand_over();
        }
    }
    assert!(gone.len() > 1_000, "too tame to tell anything: {}", gone.len());
    gone
}

#[test]
fn segmented_does_not_name_what_may_not_go() {
    for seed in 0..12 {
        long_day::<Segmented>(&[], seed);
        long_day::<Segmented>(&[("probation", "60"), ("ghosts", "0")], seed);
    }
}

#[test]
fn flop_aware_does_not_name_what_may_not_go() {
    for seed in 0..12 {
        long_day::<FlopAware>(&[], seed);
        long_day::<FlopAware>(&[("tune", "0"), ("alpha", "32")], seed);
    }
}

#[test]
fn ttl_priority_does_not_name_what_may_not_go() {
    let rules =
        [("ttl", "200"), ("head-blocks", "2"), ("head-ttl", "900"), ("namespaces", "1"), ("namespace-ttl", "60")];
    for seed in 0..12 {
        long_day::<TtlPriority>(&rules, seed);
    }
}

#[test]
fn without_rules_ttl_priority_is_not_unlike_lru() {
    for seed in 0..4 {
        assert_eq!(long_day::<TtlPriority>(&[], seed), long_day::<Lru>(&[], seed));
    }
}

#[test]
fn a_block_used_once_does_not_push_out_one_used_again() {
    let mut host = CacheHarness::native::<Segmented>();
    let often = host.insert_path(None, 3);
    host.touch(often[2]);
    let once: Vec<u32> = (3..CAPACITY).map(|_| host.insert(None)).collect();
    let share = CAPACITY / 10;
    let over = CAPACITY - 3 - share;
    assert_eq!(host.victims(over), once[..over as usize], "they go as long as they hold more than their share");
    assert_eq!(host.victims(3), [often[2], often[1], often[0]], "and no longer");
}

#[test]
fn an_expired_block_does_not_outlive_one_that_is_alive() {
    let rules = [("head-blocks", "1"), ("head-ttl", "4"), ("priority", "1")];
    let mut host = CacheHarness::native_with::<TtlPriority>(&rules);
    let (head, other) = (host.insert(None), host.insert_path(None, 2));
    assert_eq!(host.victims(1), [other[1]], "dear first blocks stay while they live");
    for _ in 0..4 {
        host.touch(other[0]);
    }
    assert_eq!(host.victims(1), [head], "until their time is over");
}

#[test]
fn a_use_does_not_leave_the_lifetime_as_it_was() {
    let mut host = CacheHarness::native_with::<TtlPriority>(&[("ttl", "5")]);
    let (first, second) = (host.insert(None), host.insert(None));
    for _ in 0..6 {
        host.touch(first);
    }
    assert_eq!(host.victims(1), [second]);
}

fn asked<P: Policy + CheckpointPolicy + 'static>(settings: &[(&str, &str)], seed: u64) -> Vec<Vec<u32>> {
    CheckpointHarness::native_with::<P>(settings).random_spans(seed, 2_000)
}

#[test]
fn adaptive_does_not_ask_for_a_window_outside_the_span() {
    for seed in 0..8 {
        asked::<Adaptive>(&[], seed);
        asked::<Adaptive>(&[("prompts", "3"), ("write-price", "100000")], seed);
    }
}

#[test]
fn without_memory_adaptive_does_not_differ_from_events() {
    for seed in 0..8 {
        assert_eq!(asked::<Adaptive>(&[("prompts", "0")], seed), asked::<Events>(&[], seed));
    }
}
