//! Caches of several types: what belongs to another position, type or shape, what is incomplete, and what goes together.

use std::{fs, os::unix::fs::FileExt, path::Path};

use reprise::{Cache, Config, Group};
use reprise_core::model::{CacheType, Kind, ModelSpec};
use reprise_tests::engine::{BLOCK_TOKENS, Kv, prompt, small, small_with_draft};

use super::{SLOT_BYTES, damage, file_of, namespace, on_disk, serve};

/// Puts the bytes of one slot, trailer and all, over another one.
fn transplant(directory: &Path, (from, from_slot): (&str, u64), (to, to_slot): (&str, u64)) {
    let mut slot = vec![0; SLOT_BYTES as usize];
    let chunk =
        |group| fs::File::options().read(true).write(true).open(file_of(directory, group, "-0000.chunk")).unwrap();
    chunk(from).read_exact_at(&mut slot, from_slot * SLOT_BYTES).unwrap();
    let to = chunk(to);
    to.write_all_at(&slot, to_slot * SLOT_BYTES).unwrap();
    to.sync_all().unwrap();
}

/// ROCm/ATOM#1417: a hit read its window from a place that another request had used since. Here the only slot for windows changes hands
/// between plan and restore: the window that is in it now is not taken for the one that was planned.
#[test]
fn a_window_that_another_request_has_overwritten_is_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config { lease_ticks: 10, ..on_disk(small(64, 1), directory.path()) };
    let cache = Cache::open(config).unwrap();
    let namespace = namespace(&cache);
    let [first, second] = [1, 2].map(|seed| prompt(seed, 4 * BLOCK_TOKENS + 1));
    serve(&cache, &namespace, &first, 1);
    let plan = namespace.sequence(&first).plan(2).unwrap();
    assert!(plan.loads_checkpoint);

    serve(&cache, &namespace, &second, 20);
    assert_eq!(cache.stats().counters.group(Group::Window).evicted_records, 1);
    let (restored, kv) = plan.restore(Kv::new(&first)).unwrap().wait();
    assert_eq!((restored.adopted_tokens, restored.replayed_tokens, restored.checkpoint), (64, 32, false));
    assert!(kv.accepted().iter().all(|record| record.group == Group::History));
}

/// sglang#33656, LMCache#3156: a row of another position, or a record of another type, came back as if it were the right one. Each record
/// names its position and its group; what does not fit is a miss, counted, and the next older checkpoint serves.
#[test]
fn a_record_of_another_position_or_type_is_not_restored() {
    for (from, what) in
        [(("window", 1), "a window of another position"), (("history", 7), "a block instead of a window")]
    {
        let directory = tempfile::tempdir().unwrap();
        let config = Config { checkpoints: "periodic:32".parse().unwrap(), replay: false, ..small(64, 16) };
        let cache = Cache::open(on_disk(config, directory.path())).unwrap();
        let namespace = namespace(&cache);
        let tokens = prompt(1, 8 * BLOCK_TOKENS + 1);
        serve(&cache, &namespace, &tokens, 1);
        // Windows at 32, 64, 96 and 128 tokens, in this order.
        transplant(directory.path(), from, ("window", 3));
        let restored = serve(&cache, &namespace, &tokens, 2);
        assert_eq!((restored.adopted_tokens, restored.checkpoint, restored.shortened), (96, true, true), "{what}");
        assert_eq!(cache.stats().counters.group(Group::Window).failed_reads, 1, "{what}");
    }
}

/// LMCache#3156: writer and reader have other shapes in mind. After a change of the window's rows, no old window is read, and the operator is
/// told; the history has kept its shape and hits.
#[test]
fn a_window_of_another_shape_is_not_read() {
    type Change = fn(&mut CacheType);
    let changes: [(&str, Change); 2] = [
        ("another format of as many bytes", |window| window.row_format = "int8".to_owned()),
        ("longer rows", |window| window.row_bytes = 320),
    ];
    let tokens = prompt(1, 6 * BLOCK_TOKENS + 1);
    for (what, change) in changes {
        let directory = tempfile::tempdir().unwrap();
        let config = on_disk(small(64, 16), directory.path());
        let cache = Cache::open(config.clone()).unwrap();
        serve(&cache, &namespace(&cache), &tokens, 1);
        drop(cache);
        let cache = Cache::open(with_types(config, |types| types[1..].iter_mut().for_each(change))).unwrap();
        let recovery = cache.recovery();
        assert_eq!((recovery.blocks, recovery.checkpoints, recovery.dropped), (6, 0, 1), "{what}");
        assert_eq!(recovery.remarks.len(), 1, "{what}");
        let restored = serve(&cache, &namespace(&cache), &tokens, 2);
        assert_eq!((restored.adopted_tokens, restored.replayed_tokens, restored.checkpoint), (96, 32, false), "{what}");
        assert_eq!(cache.stats().counters.group(Group::Window).failed_reads, 0, "{what}");
    }
}

/// sglang#36179: a conversation whose context comes back from a lower tier, turn after turn and with restarts between, gets the bytes it
/// saved. [`Kv`] checks each.
#[test]
fn fifty_rounds_of_a_conversation_do_not_bring_other_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let config = on_disk(small_with_draft(96, 3), directory.path());
    let mut cache = Cache::open(config.clone()).unwrap();
    let text = prompt(1, 50 * 29);
    for round in 1..=50 {
        if round % 10 == 0 {
            drop(cache);
            cache = Cache::open(config.clone()).unwrap();
        }
        let now = u64::from(round);
        let restored = serve(&cache, &namespace(&cache), &text[..29 * round as usize], now);
        // All complete blocks of the round before, and their window.
        let before = 29 * (round - 1) / BLOCK_TOKENS * BLOCK_TOKENS;
        assert_eq!((restored.adopted_tokens, restored.checkpoint), (before, before > 0), "round {round}");
        // Somebody else's request evicts in between.
        serve(&cache, &namespace(&cache), &prompt(1 + round, 2 * BLOCK_TOKENS), now);
    }
}

/// sglang#34562: one window was computed again in place of all, which is not exact: a row depends on those a window further back in the
/// layer below. Without a checkpoint, two layers of 16 tokens are replayed from 32 tokens on, or nothing is adopted.
#[test]
fn a_hit_without_a_window_does_not_replay_too_little() {
    let config = Config { checkpoints: "zero".parse().unwrap(), ..small(64, 16) };
    let cache = Cache::open(config).unwrap();
    let namespace = namespace(&cache);
    let tokens = prompt(1, 8 * BLOCK_TOKENS);
    serve(&cache, &namespace, &tokens, 1);
    for (blocks, adopted, replayed) in [(1, 0, 0), (2, 0, 0), (3, 48, 32), (7, 112, 32)] {
        let plan = namespace.sequence(&tokens[..(blocks * BLOCK_TOKENS + 1) as usize]).plan(2).unwrap();
        assert_eq!(plan.matched_tokens, blocks * BLOCK_TOKENS);
        assert_eq!((plan.adopted_tokens, plan.replayed_tokens), (adopted, replayed), "{}", plan.explain());
        assert_eq!(plan.computed_tokens, plan.prompt_tokens - adopted + replayed);
    }
}

/// sglang#27294: a block was stored whose HCA rows were not complete, beside prefixes that were. What is stored is complete in the type with the
/// longest ratio, and a block that no row of it would fill is no block.
#[test]
fn a_block_that_is_incomplete_in_one_type_is_not_stored() {
    let directory = tempfile::tempdir().unwrap();
    let sparse = |types: &mut Vec<CacheType>| {
        let heavy = CacheType { name: "heavy".to_owned(), kind: Kind::Compressed { ratio: 16 }, ..types[0].clone() };
        types.push(heavy);
    };
    let config = with_types(on_disk(small(64, 16), directory.path()), sparse);
    let half = Config { block_tokens: 8, store: None, ..config.clone() };
    assert!(Cache::open(half).unwrap_err().to_string().contains("16"), "half a row of a type");

    let cache = Cache::open(config).unwrap();
    let namespace = namespace(&cache);
    let tokens = prompt(1, 5 * BLOCK_TOKENS);
    // The engine has named five blocks; of the last, twelve tokens are three rows of one type and none of the other.
    let keys: [[u8; 32]; 5] = std::array::from_fn(|block| [block as u8; 32]);
    let mut sequence = namespace.sequence_of_keys(4 * u64::from(BLOCK_TOKENS) + 12, &keys);
    drop(sequence.plan(1).unwrap());
    assert_eq!(sequence.save(&mut Kv::new(&tokens)).unwrap().new_blocks, 4);
    sequence.extend_keys(4, &[]);
    assert_eq!(sequence.save(&mut Kv::new(&tokens)).unwrap().new_blocks, 1);
}

/// sglang#31108, #30321: the indexer's rows were fewer than the KV rows, and the hit was as long as the latter. A hit is as long as the type
/// that has least, whichever that is.
#[test]
fn a_lost_indexer_row_does_not_leave_its_kv_rows_a_hit() {
    let indexed = |types: &mut Vec<CacheType>| types[0] = CacheType { row_bytes: 512, ..types[0].clone() };
    let indexer = |types: &mut Vec<CacheType>| {
        indexed(types);
        types.push(CacheType { name: "indexer".to_owned(), ..types[0].clone() });
    };
    // Each type has 4096 bytes of a block, in the order of the model.
    for (what, offset_bytes) in [("KV rows", 100), ("indexer rows", 4096 + 100)] {
        let directory = tempfile::tempdir().unwrap();
        let config = Config { checkpoints: "full".parse().unwrap(), ..on_disk(small(64, 16), directory.path()) };
        let cache = Cache::open(with_types(config, indexer)).unwrap();
        let namespace = namespace(&cache);
        let tokens = prompt(1, 8 * BLOCK_TOKENS + 1);
        serve(&cache, &namespace, &tokens, 1);
        damage(directory.path(), "history", 5 * SLOT_BYTES + offset_bytes);
        let restored = serve(&cache, &namespace, &tokens, 2);
        assert_eq!((restored.adopted_tokens, restored.checkpoint, restored.shortened), (80, true, true), "{what}");
    }
}

/// sglang#31600: drafts went on without their KV, and hardly one was accepted. The draft's rows are stored beside the window and come back with
/// it; without them the window is none, and a replay makes both.
#[test]
fn a_window_without_its_draft_is_not_a_checkpoint() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(on_disk(small_with_draft(64, 16), directory.path())).unwrap();
    let namespace = namespace(&cache);
    let tokens = prompt(1, 6 * BLOCK_TOKENS + 1);
    serve(&cache, &namespace, &tokens, 1);
    let plan = namespace.sequence(&tokens).plan(2).unwrap();
    let (restored, kv) = plan.restore(Kv::new(&tokens)).unwrap().wait();
    assert!(plan.drafts && restored.checkpoint);
    let last: Vec<(Group, u32)> =
        kv.accepted()[6..].iter().map(|record| (record.group, record.position_tokens)).collect();
    assert_eq!(last, [(Group::Window, 96), (Group::Draft, 96)]);
    drop(plan);

    damage(directory.path(), "draft", 100);
    let restored = serve(&cache, &namespace, &tokens, 3);
    assert_eq!((restored.adopted_tokens, restored.replayed_tokens, restored.checkpoint), (96, 48, false));
    assert_eq!(cache.stats().counters.group(Group::Draft).failed_reads, 1);
}

/// vllm#54661, sglang#29662: one type took the room of the others. Each group has its own files, never longer than its quota of slots, and
/// is full however full the others are.
#[test]
fn a_flood_of_one_type_does_not_take_the_room_of_another() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config { checkpoints: "full".parse().unwrap(), ..on_disk(small(6, 4), directory.path()) };
    let cache = Cache::open(config).unwrap();
    for now in 1..=30 {
        serve(&cache, &namespace(&cache), &prompt(now, 6 * BLOCK_TOKENS), u64::from(now));
        let stats = cache.stats();
        assert_eq!(stats.resident_records, [6, 4, 0]);
        assert_eq!(stats.resident_bytes, stats.capacity_bytes);
    }
    for (group, slots) in [("history", 6), ("window", 4)] {
        let file_bytes = fs::metadata(file_of(directory.path(), group, "-0000.chunk")).unwrap().len();
        assert_eq!(file_bytes, slots * SLOT_BYTES, "{group}");
    }
}

/// TRT-LLM, the note on eviction in its block manager: part of a window goes, and what is left of it is of no use. A window and its draft
/// come and go together, in the books and on disk.
#[test]
fn half_a_window_does_not_stay() {
    let directory = tempfile::tempdir().unwrap();
    let config = on_disk(small_with_draft(64, 2), directory.path());
    let cache = Cache::open(config.clone()).unwrap();
    for now in 1..=9 {
        serve(&cache, &namespace(&cache), &prompt(now, 3 * BLOCK_TOKENS), u64::from(now));
        let stats = cache.stats();
        assert_eq!(stats.resident_records[1], stats.resident_records[2]);
        let moved = |group| {
            let counts = stats.counters.group(group);
            (counts.written_records, counts.evicted_records)
        };
        assert_eq!(moved(Group::Window), moved(Group::Draft));
    }
    drop(cache);
    let recovery = Cache::open(config).unwrap().recovery().clone();
    assert_eq!((recovery.checkpoints, recovery.unreachable), (2, 0));
}

/// TRT-LLM, the same: blocks that no path reaches any more, with their windows, are not kept.
#[test]
fn blocks_behind_a_lost_one_do_not_keep_their_slots() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config { checkpoints: "full".parse().unwrap(), ..on_disk(small(8, 8), directory.path()) };
    let tokens = prompt(1, 8 * BLOCK_TOKENS);
    let cache = Cache::open(config.clone()).unwrap();
    serve(&cache, &namespace(&cache), &tokens, 1);
    drop(cache);
    // The third block's entry: behind a page of header, 128 bytes a slot.
    let table = fs::File::options().write(true).open(file_of(directory.path(), "history", ".table")).unwrap();
    table.write_all_at(&[0; 128], 4096 + 2 * 128).unwrap();

    let cache = Cache::open(config).unwrap();
    let recovery = cache.recovery();
    assert_eq!((recovery.blocks, recovery.checkpoints, recovery.unreachable), (2, 2, 5 + 6));
    serve(&cache, &namespace(&cache), &prompt(2, 6 * BLOCK_TOKENS), 2);
    let stats = cache.stats();
    assert_eq!(stats.resident_records, [8, 8, 0]);
    let evicted = Group::ALL.map(|group| stats.counters.group(group).evicted_records);
    assert_eq!(evicted, [0; 3], "every slot that was lost was free");
}

/// The same with other types.
fn with_types(config: Config, change: impl FnOnce(&mut Vec<CacheType>)) -> Config {
    let mut types = config.model.types().to_vec();
    change(&mut types);
    let groups = config.model.groups().iter().map(|group| group.name.clone()).collect();
    Config { model: ModelSpec::new("small", groups, types).unwrap(), ..config }
}
