//! The bounds against the freest policy there is, on tiny traces, and against the policies of this package.

use std::collections::BTreeMap;

use proptest::prelude::*;
use reprise::{Cache, Config, PolicyChoice, Role, Shape, shipped};

use super::{
    Bound, Room, Terms,
    freest::{Request, Rules, most_saved},
    saved_tokens, untyped_hit_tokens,
};
use crate::{
    replay::{self, replay},
    trace::{ReadOptions, Trace},
    untyped::{self, Paths, Rule},
};

const BLOCK_TOKENS: u32 = 4;
const BLOCK_BYTES: u64 = 2;
const CHECKPOINT_BYTES: u64 = 3;
const MOST_BLOCKS: usize = 5;

/// Prompts as ids and how many tokens the last block lacks. At most [`MOST_BLOCKS`] different blocks come of them.
fn prompts() -> impl Strategy<Value = Vec<(Vec<u32>, u32)>> {
    let prompt = (prop::collection::vec(0..2_u32, 1..4), 0..BLOCK_TOKENS);
    prop::collection::vec(prompt, 2..7).prop_map(|mut prompts| {
        let mut known = BTreeMap::new();
        for (ids, _) in &mut prompts {
            for end in 1..=ids.len() {
                if !known.contains_key(&ids[..end]) && known.len() == MOST_BLOCKS {
                    ids.truncate(end - 1);
                    break;
                }
                known.insert(ids[..end].to_vec(), ());
            }
        }
        prompts.retain(|(ids, _)| !ids.is_empty());
        prompts
    })
}

fn trace(prompts: &[(Vec<u32>, u32)]) -> Trace {
    let mut text = format!("{{\"trace\":\"made up\",\"block_size\":{BLOCK_TOKENS}}}\n");
    for (ids, lacking) in prompts {
        let runs: Vec<[u32; 2]> = ids.iter().map(|&id| [id, 1]).collect();
        let tokens = ids.len() as u32 * BLOCK_TOKENS - lacking;
        text += &format!("{{\"t\":0,\"in\":{tokens},\"ref\":-1,\"lcp\":0,\"new\":{runs:?}}}\n");
    }
    Trace::from_reader("made up", text.as_bytes(), &ReadOptions::default()).expect("a good trace")
}

/// Paths of `prompts`, of whose ids `blocks` says how many count and how many may be hit; and the parents of blocks.
fn paths(
    prompts: &[(Vec<u32>, u32)],
    blocks: impl Fn(usize, u32) -> (usize, usize),
) -> (Vec<Request>, Vec<Option<usize>>) {
    let (mut numbers, mut parents) = (BTreeMap::new(), Vec::new());
    let requests = prompts.iter().map(|(ids, lacking)| {
        let (complete, usable) = blocks(ids.len(), *lacking);
        let mut path: Vec<usize> = Vec::new();
        for end in 1..=complete {
            let number = *numbers.entry(ids[..end].to_vec()).or_insert_with(|| {
                parents.push(path.last().copied());
                parents.len() - 1
            });
            path.push(number);
        }
        Request { path, usable }
    });
    (requests.collect(), parents)
}

/// What can be saved in `room` by the rules of a replay.
fn most_saved_typed(prompts: &[(Vec<u32>, u32)], room: Room, checkpoint: Option<u64>, replay: Option<u32>) -> u64 {
    let block_tokens = BLOCK_TOKENS as usize;
    let (requests, parents) = paths(prompts, |ids, lacking| {
        let tokens = ids * block_tokens - lacking as usize;
        (tokens / block_tokens, (tokens - 1) / block_tokens)
    });
    let saves = |_: usize, found: usize, checkpoint_at: usize| {
        let tokens = |blocks: usize| (blocks * block_tokens) as u64;
        let from_checkpoint = tokens(if checkpoint.is_some() { checkpoint_at } else { found });
        from_checkpoint.max(replay.map_or(0, |replayed| tokens(found).saturating_sub(u64::from(replayed))))
    };
    let (block, checkpoint) = (BLOCK_BYTES, checkpoint.unwrap_or(0));
    most_saved(&requests, &Rules { parents: &parents, room, block, checkpoint, closed: true, saves: &saves })
}

/// What can be found in a pool of `capacity` blocks by the rules of a replay without types, from request `first` (from 0) on.
fn most_found_untyped(prompts: &[(Vec<u32>, u32)], first: usize, capacity: u64) -> u64 {
    let (requests, parents) = paths(prompts, |ids, _| (ids, ids));
    let saves = |time: usize, found: usize, _: usize| {
        let (ids, lacking) = &prompts[time];
        let tokens = ids.len() as u64 * u64::from(BLOCK_TOKENS) - u64::from(*lacking);
        let measured = time >= first;
        if measured { tokens.min(found as u64 * u64::from(BLOCK_TOKENS)) } else { 0 }
    };
    let room = Room::Together(capacity);
    most_saved(&requests, &Rules { parents: &parents, room, block: 1, checkpoint: 0, closed: false, saves: &saves })
}

fn bound(prompts: &[(Vec<u32>, u32)], rooms: &[Room], checkpoint: Option<u64>, replay: Option<u32>) -> Bound {
    let terms = Terms {
        block_tokens: BLOCK_TOKENS,
        history_slot_bytes: BLOCK_BYTES,
        window_slot_bytes: checkpoint,
        replay_tokens: replay,
        session_gap_us: 0,
        limit: None,
        rooms: rooms.to_vec(),
    };
    saved_tokens(&trace(prompts), &terms).expect("equal block sizes")
}

fn rooms() -> impl Strategy<Value = Room> {
    prop_oneof![
        (0..20_u64).prop_map(Room::Together),
        (0..10_u64, 0..9_u64).prop_map(|(history, window)| Room::Apart { history, window }),
    ]
}

fn found_untyped(trace: &Trace, rule: Rule, capacity_blocks: u32) -> u64 {
    let options = untyped::Options { capacity_blocks, eviction: rule.into() };
    untyped::replay_paths(&Paths::of(trace, None).unwrap(), &options).unwrap().found_tokens
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn nobody_saves_more_than_the_bound(
        prompts in prompts(),
        room in rooms(),
        checkpoint in prop::option::of(Just(CHECKPOINT_BYTES)),
        replay in prop::option::of(1..6_u32),
    ) {
        let most = most_saved_typed(&prompts, room, checkpoint, replay);
        // Tight for this room, or made for another.
        for asked in [vec![room], vec![Room::Together(5), Room::Apart { history: 4, window: 3 }]] {
            let bound = bound(&prompts, &asked, checkpoint, replay).tokens(room);
            prop_assert!(bound >= most, "{most} were saved, the bound is {bound}");
        }
    }

    #[test]
    fn nobody_finds_more_without_types_than_the_bound(prompts in prompts(), capacity in 0..6_u32) {
        let most = most_found_untyped(&prompts, prompts.len() / 2, u64::from(capacity));
        let trace = trace(&prompts);
        let bound = untyped_hit_tokens(&trace, None, &[capacity]).unwrap();
        let tokens = bound.tokens(Room::Together(u64::from(capacity)));
        prop_assert!(tokens >= most, "{most} were found, the bound is {tokens}");
        for rule in Rule::ALL {
            let found = found_untyped(&trace, rule, capacity);
            prop_assert!(found <= most, "{rule:?} finds {found}, the freest policy {most}");
        }
        prop_assert_eq!(bound.unlimited_tokens(), most_found_untyped(&prompts, prompts.len() / 2, 99));
    }

    /// As many prompts before them that nobody asks for again, so that all of these are measured.
    #[test]
    fn where_all_blocks_count_the_same_nobody_finds_more_than_the_optimal_of_the_simulator(
        prompts in prompts(),
        capacity in 1..6_u32,
    ) {
        let complete: Vec<_> = prompts.into_iter().map(|(ids, _)| (ids, 0)).collect();
        let before = (0..complete.len() as u32).map(|number| (vec![100 + number], 0));
        let trace = trace(&before.chain(complete.iter().cloned()).collect::<Vec<_>>());
        let found = found_untyped(&trace, Rule::Optimal, capacity);
        prop_assert_eq!(found, most_found_untyped(&complete, 0, u64::from(capacity)));
    }

    #[test]
    fn the_bound_is_not_above_what_is_saved_with_room_for_all_or_for_nothing(
        prompts in prompts(),
        checkpoint in prop::option::of(Just(CHECKPOINT_BYTES)),
        replay in prop::option::of(1..6_u32),
    ) {
        let (all, nothing) = (Room::Together(1_000), Room::Together(0));
        let bound = bound(&prompts, &[all, nothing], checkpoint, replay);
        prop_assert_eq!(bound.tokens(all), most_saved_typed(&prompts, all, checkpoint, replay));
        prop_assert_eq!(bound.tokens(all), bound.unlimited_tokens());
        prop_assert_eq!(bound.tokens(nothing), 0);
    }

    #[test]
    fn more_room_never_lowers_the_bound(prompts in prompts(), asked in prop::collection::vec(rooms(), 0..4)) {
        let bound = bound(&prompts, &asked, Some(CHECKPOINT_BYTES), Some(5));
        let together: Vec<u64> = (0..40).map(|bytes| bound.tokens(Room::Together(bytes))).collect();
        prop_assert!(together.is_sorted(), "{:?}", together);
        for history in 0..20 {
            for window in 0..20 {
                let apart = |history, window| bound.tokens(Room::Apart { history, window });
                prop_assert!(apart(history, window) <= apart(history + 1, window));
                prop_assert!(apart(history, window) <= apart(history, window + 1));
                prop_assert!(apart(history, window) <= bound.tokens(Room::Together(history + window)), "a split frees nothing");
            }
        }
    }
}

/// Blocks A and B, room for one. The third request finds A or the fourth finds B, and only the latter is measured. Going by the next use
/// keeps A.
#[test]
fn the_optimal_of_the_simulator_is_not_taken_for_the_most_that_is_possible() {
    let [a, b, c] = [0, 1, 2].map(|id| (vec![id], 0));
    let prompts = [a.clone(), b.clone(), a, b, c.clone(), c];
    let trace = trace(&prompts);
    let block = u64::from(BLOCK_TOKENS);
    assert_eq!(found_untyped(&trace, Rule::Optimal, 1), block);
    assert_eq!(most_found_untyped(&prompts, 3, 1), 2 * block);
    assert_eq!(untyped_hit_tokens(&trace, None, &[1]).unwrap().tokens(Room::Together(1)), 2 * block);
}

/// Of the sample, at sizes from where next to nothing fits to where everything does.
#[test]
fn no_shipped_policy_is_above_the_bound() {
    const GAP_US: u64 = 120_000_000;
    let trace = Trace::sample().unwrap();
    let config = Config::new("v4-flash").unwrap();
    let shape = Shape::new(&config.model, config.block_tokens, 1 << 30, 1 << 30).unwrap();
    for replays in [true, false] {
        let apart = |mib: u64| Room::Apart { history: (mib * 3) << 18, window: mib << 18 };
        let sizes_mib = [40, 200, 600, 64_000];
        let rooms = sizes_mib.iter().flat_map(|&mib| [Room::Together(mib << 20), apart(mib)]).collect();
        let terms = Terms { session_gap_us: GAP_US, rooms, ..Terms::new(&shape, replays) };
        let bound = saved_tokens(&trace, &terms).unwrap();
        let mut most = 0;
        for mib in sizes_mib {
            for (cache, checkpoints) in shipped(Role::Eviction)
                .iter()
                .flat_map(|cache| shipped(Role::Checkpoints).iter().map(move |checkpoints| (cache, checkpoints)))
            {
                let config = Config {
                    eviction: PolicyChoice::shipped(cache.name),
                    checkpoints: PolicyChoice::shipped(checkpoints.name),
                    history_bytes: (mib * 3) << 18,
                    window_bytes: mib << 18,
                    replay: replays,
                    native_policies: true,
                    deterministic: true,
                    ..config.clone()
                };
                let cache = Cache::open(config).unwrap();
                let options = replay::Options { session_gap_us: GAP_US, ..replay::Options::default() };
                let saved = replay(&cache, &trace, &options, &mut |_, _, _| {}).unwrap().integers.saved_tokens;
                most = most.max(saved);
                let tokens = bound.tokens(apart(mib));
                let pair = format!("{} and {} at {mib} MiB", cache.config().eviction, checkpoints.name);
                assert!(saved <= tokens, "{pair} save {saved}, the bound is {tokens}");
                assert!(tokens <= bound.tokens(Room::Together(mib << 20)));
            }
        }
        assert_eq!(most, bound.unlimited_tokens(), "with room for all and every checkpoint");
    }
}
