//! Candidates beside the policies that serve.

use std::thread;

use reprise::{Cache, Config, PolicyError, Promotion, Role, ShadowFigures, Shadowing};
use reprise_cli::{
    replay::{Integers, Options, replay},
    trace::{ReadOptions, Trace},
};
use reprise_tests::{
    engine::{BLOCK_TOKENS, Kv, prompt, small},
    repository,
};

use crate::{hostile, namespace, serve};

/// Quotas so small that policies differ.
fn config(checkpoints: &str, eviction: &str) -> Config {
    Config {
        history_bytes: 100 << 20,
        window_bytes: 50 << 20,
        checkpoints: checkpoints.parse().unwrap(),
        eviction: eviction.parse().unwrap(),
        deterministic: true,
        ..Config::new("v4-pro").unwrap()
    }
}

fn trace() -> Trace {
    Trace::read(&repository("tests/data/edges.jsonl"), &ReadOptions::default()).unwrap()
}

fn shadowing(checkpoints: Option<&str>, eviction: Option<&str>) -> Shadowing {
    let choice = |text: Option<&str>| text.map(|text| text.parse().unwrap());
    Shadowing { checkpoints: choice(checkpoints), eviction: choice(eviction), promotion: None }
}

fn figures(integers: &Integers) -> ShadowFigures {
    ShadowFigures {
        prompt_tokens: integers.prompt_tokens,
        matched_tokens: integers.matched_tokens,
        adopted_tokens: integers.adopted_tokens,
        replayed_tokens: integers.replayed_tokens,
        written_bytes: [integers.written_history, integers.written_window, 0],
        loaded_bytes: [integers.loaded_history, integers.loaded_window, 0],
    }
}

/// What a shadow says of a candidate is what a replay with the candidate in the seat gives, to the last integer; and what it says of the
/// live policies is what the live cache counts.
#[test]
fn a_shadow_does_not_say_anything_else_than_a_replay_of_the_candidate() {
    let trace = trace();
    let alone = |checkpoints, eviction| {
        let cache = Cache::open(config(checkpoints, eviction)).unwrap();
        replay(&cache, &trace, &Options::default(), &mut |_, _, _| {}).unwrap().integers
    };
    for (checkpoints, eviction) in
        [(None, Some("fifo")), (None, Some("two-hit")), (Some("periodic:2048"), None), (Some("zero"), Some("fifo"))]
    {
        let cache = Cache::open(config("events", "lru")).unwrap();
        let options = Options { shadow: Some(shadowing(checkpoints, eviction)), ..Options::default() };
        let outcome = replay(&cache, &trace, &options, &mut |_, _, _| {}).unwrap();
        assert_eq!(outcome.integers, alone("events", "lru"), "the live cache does as without a shadow");
        let report = outcome.shadow.unwrap();
        assert_eq!((report.requests, report.missed_requests), (outcome.integers.requests, 0));
        assert_eq!(report.active, figures(&outcome.integers));
        let candidate = alone(checkpoints.unwrap_or("events"), eviction.unwrap_or("lru"));
        assert_ne!(candidate, outcome.integers);
        assert_eq!(report.shadow, figures(&candidate), "{checkpoints:?} {eviction:?}");
    }
}

#[test]
fn a_candidate_that_fails_does_not_reach_the_live_cache() {
    let trace = trace();
    let run = |shadow| {
        let cache = Cache::open(config("events", "lru")).unwrap();
        let outcome = replay(&cache, &trace, &Options { shadow, ..Options::default() }, &mut |_, _, _| {}).unwrap();
        assert!(cache.policies().take_notices().is_empty());
        assert!(outcome.stats.policies.iter().all(|policy| policy.strikes == 0));
        outcome
    };
    let without = run(None).integers;
    for mode in 4..=7 {
        let outcome = run(Some(shadowing(None, Some(&hostile(&format!("mode={mode},after=2"))))));
        assert_eq!(outcome.integers, without);
        assert!(outcome.shadow.unwrap().policies[0].strikes > 0, "mode {mode}");
    }
}

#[test]
fn a_shadow_does_not_touch_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(Config { store: Some(directory.path().join("store")), ..small(32, 8) }).unwrap();
    cache.policies().shadow(&shadowing(Some("periodic:32"), Some("fifo"))).unwrap();
    let namespace = namespace(&cache);
    for now in 1..=50 {
        serve(&namespace, &prompt(now as u32 % 7, (now as u32 % 11 + 1) * BLOCK_TOKENS), now);
        cache.drain();
    }
    let report = cache.policies().end_shadow().unwrap();
    assert_eq!((report.requests, report.missed_requests), (50, 0));
    let counters = cache.stats().counters;
    let of = |group: reprise::Group| counters.group(group).written_bytes;
    assert_eq!(report.active.written_bytes[..2], [of(reprise::Group::History), of(reprise::Group::Window)]);
    assert_ne!(report.shadow.written_bytes[1], report.active.written_bytes[1]);
    assert_eq!(report.active.adopted_tokens, counters.adopted_tokens);
    assert!(cache.policies().shadow_report().is_none());
}

/// A shadow that begins late begins with what is resident: it does not have to win back what the live cache hits at once.
#[test]
fn a_shadow_that_begins_late_does_not_begin_empty() {
    let cache = Cache::open(small(64, 16)).unwrap();
    let namespace = namespace(&cache);
    let tokens = prompt(1, 20 * BLOCK_TOKENS + 1);
    serve(&namespace, &tokens, 1);
    cache.policies().shadow(&shadowing(None, Some("fifo"))).unwrap();
    serve(&namespace, &tokens, 2);
    let report = cache.policies().shadow_report().unwrap();
    assert_eq!(report.active.adopted_tokens, u64::from(20 * BLOCK_TOKENS));
    assert_eq!(report.shadow, report.active);
    assert_eq!(report.lead_ppm(), 0);
}

#[test]
fn a_candidate_that_leads_does_not_wait_for_an_operator() {
    let lead = |live: &str, candidate: &str, deterministic| {
        let checkpoints = live.parse().unwrap();
        let cache = Cache::open(Config { checkpoints, deterministic, replay: false, ..small(256, 64) }).unwrap();
        let promotion = Some(Promotion { margin_ppm: 10_000, requests: 5 });
        cache.policies().shadow(&Shadowing { promotion, ..shadowing(Some(candidate), None) }).unwrap();
        let namespace = namespace(&cache);
        for now in 1..=40 {
            serve(&namespace, &prompt(now as u32 % 2, 10 * BLOCK_TOKENS + 1), now);
        }
        let report = cache.policies().shadow_report().unwrap();
        (report, cache.policies().status()[1].name.clone(), cache.policies().take_notices())
    };
    for deterministic in [true, false] {
        // Without checkpoints and without replays nothing is ever hit.
        let (report, seated, notices) = lead("zero", "events", deterministic);
        assert!(report.promoted && report.lead_ppm() > 10_000, "{report:?}");
        assert_eq!(seated, "events");
        assert!(notices.len() == 1 && !notices[0].failure && notices[0].text.contains("in the shadow"), "{notices:?}");

        let (report, seated, notices) = lead("events", "zero", deterministic);
        assert!(!report.promoted && report.lead_ppm() < 0, "{report:?}");
        assert_eq!((seated.as_str(), notices.len()), ("events", 0));
    }
}

/// A candidate that is promoted by hand takes with it what it learned in the shadow.
#[test]
fn a_promotion_does_not_forget_what_the_candidate_has_seen() {
    let cache = Cache::open(small(8, 0)).unwrap();
    let namespace = namespace(&cache);
    let full = prompt(100, 8 * BLOCK_TOKENS);
    serve(&namespace, &full, 1);
    cache.policies().shadow(&shadowing(None, Some("two-hit"))).unwrap();
    // Two prompts that `two-hit` has seen once then.
    serve(&namespace, &prompt(1, 4 * BLOCK_TOKENS), 2);
    serve(&namespace, &prompt(2, 4 * BLOCK_TOKENS), 3);
    cache.policies().promote().unwrap();
    assert!(cache.policies().shadow_report().unwrap().promoted);
    assert_eq!(cache.policies().status()[0].name, "two-hit");
    let refused = |seed: u32, now| {
        let before = cache.stats().counters.refused_blocks;
        serve(&namespace, &prompt(seed, 4 * BLOCK_TOKENS), now);
        cache.stats().counters.refused_blocks - before
    };
    assert_eq!(refused(3, 4), 4, "seen for the first time");
    assert_eq!(refused(100, 5), 4, "resident before the shadow began, gone since, never asked about");
    // Once more does not put it in again as it was then.
    cache.policies().promote().unwrap();
    assert_eq!(refused(3, 6), 0, "seen for the second time");
    cache.policies().end_shadow();
    assert!(cache.policies().promote().is_err());
}

/// Whether an engine saves and captures together or, of a path that is resident, captures alone.
#[test]
fn the_same_policies_do_not_lead_themselves() {
    let cache = Cache::open(Config { deterministic: true, replay: false, ..small(64, 16) }).unwrap();
    let namespace = namespace(&cache);
    let tokens = prompt(1, 10 * BLOCK_TOKENS + 1);
    let mut sequence = namespace.sequence(&tokens);
    drop(sequence.plan(1).unwrap());
    sequence.save(&mut Kv::new(&tokens)).unwrap();
    drop(sequence);
    cache.policies().shadow(&shadowing(None, None)).unwrap();
    for now in 2..=4 {
        let mut sequence = namespace.sequence(&tokens);
        drop(sequence.plan(now).unwrap());
        sequence.capture(&mut Kv::new(&tokens)).unwrap();
    }
    serve(&namespace, &prompt(2, 10 * BLOCK_TOKENS + 1), 5);
    let report = cache.policies().end_shadow().unwrap();
    assert_eq!(report.active, report.shadow);
    assert!(report.active.adopted_tokens > 0);
}

#[test]
fn a_retired_policy_is_not_shadowed() {
    let config = Config { eviction: hostile("mode=1,after=3").parse().unwrap(), strikes: 1, ..small(16, 0) };
    let cache = Cache::open(config).unwrap();
    let namespace = namespace(&cache);
    for now in 1..20_u32 {
        serve(&namespace, &prompt(now, 8 * BLOCK_TOKENS), now.into());
    }
    assert!(cache.policies().status()[0].retired);
    let begun = cache.policies().shadow(&shadowing(Some("zero"), None));
    assert!(matches!(begun, Err(PolicyError::NoPolicy { .. })), "{begun:?}");
}

#[test]
fn requests_at_once_do_not_confuse_a_shadow() {
    let cache = Cache::open(small(200, 20)).unwrap();
    cache.policies().shadow(&shadowing(Some("periodic:64"), Some("two-hit"))).unwrap();
    thread::scope(|scope| {
        for worker in 0..4_u32 {
            let cache = &cache;
            scope.spawn(move || {
                let namespace = namespace(cache);
                for round in 0..200_u32 {
                    let tokens = prompt((round * 7 + worker * 3) % 30, (round % 9 + 2) * BLOCK_TOKENS + worker);
                    serve(&namespace, &tokens, u64::from(round * 4 + worker) + 1);
                    if worker == 0 && round % 50 == 49 {
                        cache.policies().swap(Role::Eviction, &"fifo".parse().unwrap()).unwrap();
                    }
                }
            });
        }
    });
    let report = cache.policies().end_shadow().unwrap();
    let counters = cache.stats().counters;
    assert_eq!(report.missed_requests, 0);
    assert_eq!((report.requests, report.active.adopted_tokens), (800, counters.adopted_tokens));
    assert!(report.policies.iter().all(|policy| policy.strikes == 0), "{report:?}");
}
