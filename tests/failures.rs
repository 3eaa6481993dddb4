//! How such caches fail in the field, row by row: each test is named after a failure that was reported against a system that does this
//! job, and would fail without what prevents it here.

#[path = "failures/typed.rs"]
mod typed;

use std::{
    fs,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use proptest::prelude::*;
use reprise::{Cache, Config, Durability, Group, Namespace, NamespaceHandle, Restored, Role};
use reprise_tests::engine::{BLOCK_BYTES, BLOCK_TOKENS, Kv, prompt, small, small_with_draft};

fn namespace(cache: &Cache) -> NamespaceHandle {
    cache.namespace(&Namespace::new("small", "1").block_tokens(BLOCK_TOKENS)).unwrap()
}

fn on_disk(config: Config, directory: &Path) -> Config {
    Config { store: Some(directory.join("store")), ..config }
}

/// One request as an engine serves it; every byte that comes back is checked.
fn serve(cache: &Cache, namespace: &NamespaceHandle, tokens: &[u32], now: u64) -> Restored {
    let mut sequence = namespace.sequence(tokens);
    let plan = sequence.plan(now).unwrap();
    let (restored, kv) = plan.restore(Kv::new(tokens)).unwrap().wait();
    let records = kv.accepted();
    let window = records.iter().any(|record| {
        record.group == Group::Window && record.position_tokens == restored.adopted_tokens && restored.checkpoint
    });
    assert_eq!(
        window,
        restored.checkpoint && cache.config().store.is_some(),
        "a window counts only at the position that was adopted"
    );
    drop(plan);
    sequence.save(&mut Kv::new(tokens)).unwrap();
    sequence.capture(&mut Kv::new(tokens)).unwrap();
    cache.drain();
    restored
}

/// A group's file whose name ends in `end`: its first chunk or its table.
fn file_of(directory: &Path, group: &str, end: &str) -> PathBuf {
    let files = fs::read_dir(directory.join("store")).unwrap().map(|entry| entry.unwrap().path());
    let is_it = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with(group) && name.ends_with(end)
    };
    files.into_iter().find(is_it).expect("the group has files")
}

/// Flips a bit of a byte in a group's first chunk.
fn damage(directory: &Path, group: &str, offset_bytes: u64) {
    let chunk = file_of(directory, group, "-0000.chunk");
    let file = fs::File::options().read(true).write(true).open(chunk).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset_bytes).unwrap();
    file.write_all_at(&[byte[0] ^ 0x10], offset_bytes).unwrap();
    file.sync_all().unwrap();
}

/// What a slot of the small model takes: the payload fills its pages, so the trailer adds one.
const SLOT_BYTES: u64 = BLOCK_BYTES + 4096;

/// vllm#45474, LMCache#3006, dynamo#15079: one block is damaged. The plan is cut there, for all groups alike; no byte of it counts;
/// and the next save of the path mends it.
#[test]
fn a_damaged_block_shortens_the_hit_and_is_written_again() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config { checkpoints: "periodic:32".parse().unwrap(), ..small(64, 16) };
    let cache = Cache::open(on_disk(config, directory.path())).unwrap();
    let namespace = namespace(&cache);
    let tokens = prompt(1, 10 * BLOCK_TOKENS + 1);
    serve(&cache, &namespace, &tokens, 1);
    assert_eq!(serve(&cache, &namespace, &tokens, 2).adopted_tokens, 160);

    damage(directory.path(), "history", 6 * SLOT_BYTES + 5000);
    let cut = serve(&cache, &namespace, &tokens, 3);
    assert!(cut.shortened);
    assert_eq!(
        (cut.adopted_tokens, cut.replayed_tokens, cut.checkpoint),
        (96, 0, true),
        "six blocks, and their window"
    );
    assert_eq!(cut.computed_tokens, 161 - 96);
    let counters = cache.stats().counters;
    assert_eq!(counters.group(Group::History).failed_reads, 1);
    assert_eq!(counters.prompt_tokens - counters.computed_tokens, counters.adopted_tokens - counters.replayed_tokens);

    let mended = serve(&cache, &namespace, &tokens, 4);
    assert_eq!((mended.adopted_tokens, mended.shortened), (160, false));
}

/// sglang#28058: one lost window does not make a long hit worthless: the next older checkpoint serves, or a replay.
#[test]
fn a_damaged_window_falls_back_to_an_older_one() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config { checkpoints: "periodic:64".parse().unwrap(), ..small(64, 16) };
    let cache = Cache::open(on_disk(config, directory.path())).unwrap();
    let namespace = namespace(&cache);
    let tokens = prompt(1, 8 * BLOCK_TOKENS + 1);
    serve(&cache, &namespace, &tokens, 1);
    damage(directory.path(), "window", SLOT_BYTES + 5000);
    let mut sequence = namespace.sequence(&tokens);
    let plan = sequence.plan(2).unwrap();
    assert_eq!(plan.adopted_tokens, 128);
    let (restored, _) = plan.restore(Kv::new(&tokens)).unwrap().wait();
    // A replay of Z = 32 tokens behind all eight blocks computes 33, going on from the older checkpoint 65.
    assert_eq!((restored.adopted_tokens, restored.replayed_tokens, restored.shortened), (128, 32, true));
    drop((plan, sequence));

    let no_replay = cache.config().clone();
    drop((namespace, cache));
    let cache = Cache::open(Config { replay: false, ..no_replay }).unwrap();
    let namespace = self::namespace(&cache);
    let restored = serve(&cache, &namespace, &tokens, 3);
    assert_eq!((restored.adopted_tokens, restored.checkpoint), (64, true));
}

/// vllm#42948, Anemll#57, sglang#29662: windows are under pressure; not one block goes for it.
#[test]
fn pressure_on_windows_does_not_evict_blocks() {
    let config = Config { checkpoints: "full".parse().unwrap(), ..small(1000, 2) };
    let cache = Cache::open(config).unwrap();
    let namespace = namespace(&cache);
    for now in 1..=20 {
        serve(&cache, &namespace, &prompt(now, 8 * BLOCK_TOKENS), u64::from(now));
    }
    let stats = cache.stats();
    assert_eq!(stats.counters.group(Group::History).evicted_records, 0);
    assert_eq!(stats.resident_records[..2], [160, 2]);
    assert_eq!(stats.counters.group(Group::Window).evicted_records, 158);
}

/// vllm#53569, LMCache#562: kill, reopen, the same prompt: the same hit, for every type.
#[test]
fn a_restart_does_not_change_what_a_prompt_hits() {
    for config in [small(64, 16), small_with_draft(64, 16)] {
        let directory = tempfile::tempdir().unwrap();
        let config = on_disk(config, directory.path());
        let tokens: Vec<Vec<u32>> = (1..=3).map(|seed| prompt(seed, seed * 5 * BLOCK_TOKENS + 3)).collect();
        let first = Cache::open(config.clone()).unwrap();
        for (now, tokens) in (1..).zip(&tokens) {
            serve(&first, &namespace(&first), tokens, now);
        }
        let before: Vec<Restored> =
            (4..).zip(&tokens).map(|(now, tokens)| serve(&first, &namespace(&first), tokens, now)).collect();
        assert!(before.iter().all(|restored| restored.adopted_tokens > 0 && restored.checkpoint));
        drop(first);
        let second = Cache::open(config).unwrap();
        let recovery = second.recovery();
        assert_eq!((recovery.blocks, recovery.checkpoints, recovery.unreachable, recovery.dropped), (30, 3, 0, 0));
        assert!(recovery.last_use >= 4, "recency is kept: {}", recovery.last_use);
        let after: Vec<Restored> =
            (10..).zip(&tokens).map(|(now, tokens)| serve(&second, &namespace(&second), tokens, now)).collect();
        assert_eq!(before, after);
    }
}

/// Invariant: a changed window layout (draft on) misses windows, never history.
#[test]
fn turning_drafts_on_does_not_lose_the_history() {
    let directory = tempfile::tempdir().unwrap();
    let tokens = prompt(1, 10 * BLOCK_TOKENS + 1);
    let cache = Cache::open(on_disk(small(64, 16), directory.path())).unwrap();
    serve(&cache, &namespace(&cache), &tokens, 1);
    drop(cache);
    let cache = Cache::open(on_disk(small_with_draft(64, 16), directory.path())).unwrap();
    let restored = serve(&cache, &namespace(&cache), &tokens, 2);
    assert_eq!(cache.recovery().blocks, 10);
    // The windows are there, their drafts are not: a checkpoint without its drafts is none.
    assert_eq!((cache.recovery().checkpoints, cache.recovery().unreachable), (0, 1));
    assert_eq!((restored.adopted_tokens, restored.replayed_tokens, restored.checkpoint), (160, 48, false));
}

/// vllm#49261, sglang#26792 and the salts: what differs in anything that changes the bytes never hits.
#[test]
fn another_tenant_revision_adapter_or_rank_does_not_hit() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(on_disk(small(256, 64), directory.path())).unwrap();
    let base = || Namespace::new("small", "1").block_tokens(BLOCK_TOKENS);
    let tokens = prompt(1, 10 * BLOCK_TOKENS + 1);
    let mut now = 0;
    for other in [
        base(),
        base().tenant("a"),
        base().adapter("a"),
        base().tenant("b"),
        base().rank(0, 2),
        base().rank(1, 2),
        base().extension("rope", "2"),
        Namespace::new("small", "2").block_tokens(BLOCK_TOKENS),
        Namespace::new("small1", "1").block_tokens(BLOCK_TOKENS),
    ] {
        let namespace = cache.namespace(&other).unwrap();
        now += 2;
        assert_eq!(serve(&cache, &namespace, &tokens, now).adopted_tokens, 0, "{other:?}");
        assert_eq!(serve(&cache, &namespace, &tokens, now + 1).adopted_tokens, 160, "{other:?}");
    }
    let wrong_block = cache.namespace(&Namespace::new("small", "1").block_tokens(32)).err().unwrap();
    assert!(wrong_block.to_string().contains("32"), "{wrong_block}");
}

/// vllm#54914: a block that a plan counts on is evicted between look-up and use. A lease keeps it; past its deadline the restore says
/// what is gone.
#[test]
fn a_leased_path_is_not_evicted_and_an_expired_one_is_a_shorter_hit() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config { lease_ticks: 10, ..on_disk(small(8, 4), directory.path()) };
    let cache = Cache::open(config).unwrap();
    let namespace = namespace(&cache);
    let tokens = prompt(1, 4 * BLOCK_TOKENS + 1);
    serve(&cache, &namespace, &tokens, 1);
    let plan = namespace.sequence(&tokens).plan(2).unwrap();
    assert_eq!((plan.adopted_tokens, plan.lease.is_some()), (64, true));

    let flood = |seed: u32, now: u64| {
        let tokens = prompt(seed, 8 * BLOCK_TOKENS);
        let mut sequence = namespace.sequence(&tokens);
        drop(sequence.plan(now).unwrap());
        let saved = sequence.save(&mut Kv::new(&tokens)).unwrap();
        cache.drain();
        saved.new_blocks
    };
    assert_eq!(flood(2, 3), 4, "four slots are leased");
    let (restored, _) = plan.restore(Kv::new(&tokens)).unwrap().wait();
    assert_eq!((restored.adopted_tokens, restored.shortened), (64, false));

    assert_eq!(flood(3, 20), 8, "the lease has expired");
    assert_eq!(cache.stats().counters.expired_leases, 1);
    let (restored, _) = plan.restore(Kv::new(&tokens)).unwrap().wait();
    assert_eq!((restored.adopted_tokens, restored.computed_tokens, restored.shortened), (0, 65, true));
    drop(plan);
    assert_eq!(cache.stats().leases, 0);
}

/// Leases are bounded: plans beyond the share get none, and say so.
#[test]
fn leases_do_not_take_the_whole_cache() {
    let cache = Cache::open(small(8, 4)).unwrap();
    let namespace = namespace(&cache);
    let tokens = [prompt(1, 4 * BLOCK_TOKENS), prompt(2, 4 * BLOCK_TOKENS)];
    for (now, tokens) in (1..).zip(&tokens) {
        serve(&cache, &namespace, tokens, now);
    }
    let extended = |tokens: &[u32]| [tokens, &[7]].concat();
    let first = namespace.sequence(&extended(&tokens[0])).plan(3).unwrap();
    let second = namespace.sequence(&extended(&tokens[1])).plan(4).unwrap();
    assert_eq!((first.adopted_tokens, first.lease.is_some()), (64, true));
    assert_eq!((second.adopted_tokens, second.lease.is_some()), (64, false), "half of the cache is leased");
}

/// LMCache#2785, sglang#27789: counts drift. After many cycles of eviction and restore nothing is held and every slot is accounted for.
#[test]
fn slots_and_pins_do_not_leak() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config { checkpoints: "full".parse().unwrap(), ..on_disk(small(12, 3), directory.path()) };
    let cache = Cache::open(config).unwrap();
    let namespace = namespace(&cache);
    for round in 0..60 {
        serve(&cache, &namespace, &prompt(round % 5, (round % 7 + 1) * BLOCK_TOKENS + round % 3), u64::from(round) + 1);
    }
    let tokens = prompt(99, 12 * BLOCK_TOKENS);
    let mut sequence = namespace.sequence(&tokens);
    drop(sequence.plan(100).unwrap());
    assert_eq!(sequence.save(&mut Kv::new(&tokens)).unwrap().new_blocks, 12, "every slot can be had");
    sequence.capture(&mut Kv::new(&tokens)).unwrap();
    cache.drain();
    let stats = cache.stats();
    assert_eq!((stats.leases, stats.resident_records), (0, [12, 3, 0]));
    for group in [Group::History, Group::Window] {
        let counts = stats.counters.group(group);
        let went = counts.evicted_records + counts.orphaned_records;
        assert_eq!(counts.written_records - went, stats.resident_records[group as usize], "{}", group.name());
    }
}

/// Two requests at once, in threads, with eviction, swaps and restores: no wrong byte (the engine checks each), no deadlock.
#[test]
fn requests_at_once_do_not_mix_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(on_disk(small(40, 6), directory.path())).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..4_u32)
            .map(|worker| {
                let cache = &cache;
                scope.spawn(move || {
                    let namespace = namespace(cache);
                    for round in 0..60_u32 {
                        let seed = (round * 7 + worker * 3) % 6;
                        let tokens = prompt(seed, (round % 9 + 2) * BLOCK_TOKENS + worker);
                        serve(cache, &namespace, &tokens, u64::from(round * 4 + worker) + 1);
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            for policy in ["fifo", "two-hit", "lru"].into_iter().cycle() {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                cache.policies().swap(Role::Eviction, &policy.parse().unwrap()).unwrap();
            }
        });
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        done.store(true, Ordering::Relaxed);
    });
    let stats = cache.stats();
    assert_eq!((stats.leases, stats.counters.requests), (0, 240));
    for policy in cache.policies().status() {
        assert_eq!(policy.strikes, 0, "a race is no policy's fault: {policy:?}");
    }
}

/// A block goes while the window at its end is still being written, and both slots are used again: the end of the old write must not be
/// taken for that of the new one.
#[test]
fn a_window_still_being_written_is_not_mixed_up_with_its_successor() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config { durability: Durability::Strict, ..on_disk(small(2, 2), directory.path()) };
    let cache = Cache::open(config).unwrap();
    let namespace = namespace(&cache);
    for now in 1..200_u32 {
        let tokens = prompt(now, BLOCK_TOKENS + 1);
        let mut sequence = namespace.sequence(&tokens);
        drop(sequence.plan(now.into()).unwrap());
        sequence.save(&mut Kv::new(&tokens)).unwrap();
        sequence.capture(&mut Kv::new(&tokens)).unwrap();
    }
    cache.drain();
    let stats = cache.stats();
    assert_eq!(stats.resident_records[0], 2);
    let (history, window) = (stats.counters.group(Group::History), stats.counters.group(Group::Window));
    assert_eq!(window.written_records, stats.resident_records[1] + window.evicted_records + window.orphaned_records);
    assert_eq!(history.written_records, 2 + history.evicted_records);
}

/// vllm#51041: 1.2 TB written, nothing read, no error. What is written and what is read is counted, by group, and exported.
#[test]
fn a_cache_that_is_written_and_never_read_does_not_go_unseen() {
    let cache = Cache::open(small(64, 16)).unwrap();
    let namespace = namespace(&cache);
    let tokens = prompt(1, 4 * BLOCK_TOKENS + 1);
    serve(&cache, &namespace, &tokens, 1);
    serve(&cache, &namespace, &tokens, 2);
    let text = cache.stats().prometheus();
    for line in [
        "reprise_written_bytes_total{tier=\"disk\",group=\"history\"} 32768",
        "reprise_loaded_bytes_total{tier=\"disk\",group=\"history\"} 32768",
        "reprise_loaded_records_total{tier=\"disk\",group=\"window\"} 1",
        "reprise_plans_total{reason=\"no-block\"} 1",
        "reprise_plans_total{reason=\"complete\"} 1",
        "reprise_requests_total 2",
        "reprise_policy_retired{role=\"eviction\",policy=\"lru\"} 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').expect("name and value");
        assert!(name.starts_with("reprise_") && value.parse::<u64>().is_ok(), "{line}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Anemll#57: writer and reader disagree on which blocks. Whatever is saved of a prompt is what the same prompt finds: all complete
    /// blocks but the one that holds the last token.
    #[test]
    fn what_is_saved_is_not_something_else_than_what_is_found(tokens in 0..400_u32, more in 0..40_u32) {
        let cache = Cache::open(Config { native_policies: true, ..small(64, 16) }).unwrap();
        let namespace = namespace(&cache);
        let text = prompt(1, tokens + more);
        serve(&cache, &namespace, &text[..tokens as usize], 1);
        let resident = cache.stats().resident_records[0] as u32;
        prop_assert_eq!(resident, tokens / BLOCK_TOKENS);
        let plan = namespace.sequence(&text).plan(2).unwrap();
        let may_hit = (tokens + more).saturating_sub(1) / BLOCK_TOKENS;
        prop_assert_eq!(plan.matched_tokens, resident.min(may_hit) * BLOCK_TOKENS);
    }
}
