//! Swaps under load.

use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use reprise::{Cache, Config, Group, Role};
use reprise_tests::engine::{BLOCK_TOKENS, prompt, small};

use crate::{hostile, namespace, serve};

const SWAPS: usize = 1000;
/// Instances of policies take a megabyte and more each: a thousand that were not let go of are far above this.
const RSS_SLACK_BYTES: u64 = 96 << 20;

fn resident_set_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[test]
fn a_thousand_swaps_under_load_lose_neither_a_block_nor_memory() {
    let cache = Cache::open(small(300, 20)).unwrap();
    let done = AtomicBool::new(false);
    let mut memory = [0; 2];
    thread::scope(|scope| {
        for worker in 0..3_u32 {
            let (cache, done) = (&cache, &done);
            scope.spawn(move || {
                let namespace = namespace(cache);
                for round in 0.. {
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                    let tokens = prompt((round * 7 + worker * 3) % 40, (round % 23 + 2) * BLOCK_TOKENS + worker);
                    serve(&namespace, &tokens, u64::from(round * 4 + worker) + 1);
                }
            });
        }
        let policies = [
            (Role::Eviction, "fifo"),
            (Role::Checkpoints, "periodic:32"),
            (Role::Eviction, "two-hit"),
            (Role::Eviction, "two-hit"),
            (Role::Checkpoints, "zero"),
            (Role::Eviction, "lru"),
            (Role::Checkpoints, "events"),
        ];
        for (swap, (role, policy)) in policies.into_iter().cycle().take(SWAPS).enumerate() {
            cache.policies().swap(role, &policy.parse().unwrap()).unwrap();
            match swap {
                200 => memory[0] = resident_set_bytes(),
                last if last == SWAPS - 1 => memory[1] = resident_set_bytes(),
                _ => {}
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    let [early, late] = memory;
    assert!(late < early + RSS_SLACK_BYTES, "{early} bytes after 200 swaps, {late} after {SWAPS}");

    let stats = cache.stats();
    assert_eq!(stats.leases, 0);
    for group in [Group::History, Group::Window] {
        let counters = stats.counters.group(group);
        let went = counters.evicted_records + counters.orphaned_records;
        assert_eq!(counters.written_records - went, stats.resident_records[group as usize], "{}", group.name());
    }
    for policy in cache.policies().status() {
        assert_eq!(policy.strikes, 0, "a race is no policy's fault: {policy:?}");
        assert_eq!(policy.rolled_back_from, None, "{policy:?}");
    }
    let notices = cache.policies().take_notices();
    assert!(notices.is_empty(), "{notices:?}");
}

/// What the last of many policies was told is what is resident: it names every block there is, and no other.
#[test]
fn a_policy_that_came_in_late_does_not_lack_a_block() {
    let cache = Cache::open(Config { strikes: 1, ..small(64, 0) }).unwrap();
    let namespace = namespace(&cache);
    let mut now = 0;
    for policy in ["fifo", "lru", "two-hit", "lru", "fifo"].into_iter().cycle().take(40) {
        now += 1;
        serve(&namespace, &prompt(now as u32, (now as u32 % 30 + 1) * BLOCK_TOKENS), now);
        cache.policies().swap(Role::Eviction, &policy.parse().unwrap()).unwrap();
    }
    cache.policies().swap(Role::Eviction, &"lru".parse().unwrap()).unwrap();
    let before = cache.stats().counters.native_evictions;
    // Everything goes for it, by the word of the policy.
    serve(&namespace, &prompt(1_000_000, 64 * BLOCK_TOKENS), now + 1);
    let stats = cache.stats();
    assert_eq!(stats.resident_records[0], 64);
    assert_eq!(stats.counters.native_evictions, before, "{:?}", cache.policies().status());
}

#[test]
fn a_swap_to_the_same_policy_with_other_settings_is_not_ignored() {
    let cache = Cache::open(Config { checkpoints: "periodic:32".parse().unwrap(), ..small(64, 64) }).unwrap();
    let namespace = namespace(&cache);
    let captures =
        |seed| namespace.sequence(&prompt(seed, 8 * BLOCK_TOKENS)).plan(seed.into()).unwrap().captures.clone();
    assert_eq!(captures(1), [32, 64, 96, 128]);
    cache.policies().swap(Role::Checkpoints, &"periodic:64".parse().unwrap()).unwrap();
    assert_eq!(captures(2), [64, 128]);
    let refused = cache.policies().swap(Role::Checkpoints, &"periodic:0".parse().unwrap()).unwrap_err();
    assert!(refused.to_string().contains("period"), "{refused}");
    assert_eq!(captures(3), [64, 128]);
}

/// The old one is kept until the new one has answered; then it is gone.
#[test]
fn a_policy_that_fails_its_first_answer_does_not_keep_the_seat() {
    let cache = Cache::open(Config { eviction: "fifo".parse().unwrap(), ..small(16, 0) }).unwrap();
    let namespace = namespace(&cache);
    serve(&namespace, &prompt(1, 16 * BLOCK_TOKENS), 1);
    // Mode 4 names what is not there, which is seen when it is asked.
    cache.policies().swap(Role::Eviction, &hostile("mode=4").parse().unwrap()).unwrap();
    assert_eq!(cache.policies().status()[0].name, "hostile");
    serve(&namespace, &prompt(2, 4 * BLOCK_TOKENS), 2);
    let status = &cache.policies().status()[0];
    assert_eq!((status.name.as_str(), status.rolled_back_from.as_deref()), ("fifo", Some("hostile")));
    assert!(!status.restarting && !status.retired, "{status:?}");
    let notices = cache.policies().take_notices();
    assert!(notices.len() == 1 && notices[0].failure && notices[0].text.contains("no such record"), "{notices:?}");
    // And it knows what happened meanwhile.
    let natively = cache.stats().counters.native_evictions;
    serve(&namespace, &prompt(3, 16 * BLOCK_TOKENS), 3);
    assert_eq!(cache.stats().counters.native_evictions, natively);
    assert_eq!(cache.policies().status()[0].strikes, 0);
}

#[test]
fn a_predecessor_does_not_miss_what_its_successor_evicted() {
    let cache = Cache::open(Config { eviction: "fifo".parse().unwrap(), ..small(16, 0) }).unwrap();
    let namespace = namespace(&cache);
    serve(&namespace, &prompt(1, 8 * BLOCK_TOKENS), 1);
    serve(&namespace, &prompt(2, 8 * BLOCK_TOKENS), 2);
    serve(&namespace, &prompt(1, 8 * BLOCK_TOKENS), 3);
    // Mode 7 names the end of the first path, which goes, and names it again.
    cache.policies().swap(Role::Eviction, &hostile("mode=7").parse().unwrap()).unwrap();
    serve(&namespace, &prompt(3, 2 * BLOCK_TOKENS), 4);
    assert_eq!(cache.policies().status()[0].name, "fifo");
    let natively = cache.stats().counters.native_evictions;
    serve(&namespace, &prompt(4, 16 * BLOCK_TOKENS), 5);
    assert_eq!(cache.stats().counters.native_evictions, natively, "{:?}", cache.policies().status()[0]);
}

/// A load that only plans, as of an engine that is full: the policy is told all the same, and nothing piles up.
#[test]
fn plans_without_saves_do_not_cost_memory() {
    let cache = Cache::open(small(64, 16)).unwrap();
    let namespace = namespace(&cache);
    let tokens = prompt(1, 10 * BLOCK_TOKENS + 1);
    serve(&namespace, &tokens, 1);
    let calls = cache.policies().status()[0].calls;
    for now in 2..20_000 {
        drop(namespace.sequence(&tokens).plan(now).unwrap());
    }
    assert!(cache.policies().status()[0].calls > calls + 10);
}
