//! Laws of the cache over random streams of requests: what is written is what can be read, what is read was written, and what more
//! room changes.

#[path = "laws/audited.rs"]
mod audited;
#[path = "laws/stream.rs"]
mod stream;

use proptest::{collection::vec, prelude::*};
use reprise::{Config, Planner};
use reprise_tests::engine::{BLOCK_BYTES, small};

use audited::Audited;
use stream::{Keeping, Request, Rows, config, keys, open, request};

fn run(config: &Config, requests: &[Request]) {
    let mut audited = Audited::open(config);
    let mut held = None;
    for (now, request) in (1..).zip(requests) {
        let plan = audited.serve(request, now);
        // Only now may what the plan before held go.
        held = plan;
        if request.restarted && config.store.is_some() {
            held = None;
            audited = audited.restart();
        }
    }
    drop(held);
    assert_eq!(audited.cache.stats().leases, 0);
    audited.check_use(requests.len() as u64 + 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Anemll#57, vllm#51041: writer and reader disagree on which records. Whatever the policies, the quotas and the requests: a plan
    /// names what was written under the same group, digest and position and has not gone, and all of that which it could use; and
    /// nothing is kept that no plan could name.
    #[test]
    fn no_plan_names_what_was_not_written_and_nothing_is_kept_that_no_plan_names(
        config in config(),
        requests in vec(request(), 1..40),
    ) {
        run(&config, &requests);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The same with a store: what an engine is asked for is what is stored, and what it is given is what the plan said, byte by byte.
    #[test]
    fn no_store_reads_what_was_not_written(config in config(), requests in vec(request(), 1..24)) {
        let directory = tempfile::tempdir().unwrap();
        run(&Config { store: Some(directory.path().join("store")), ..config }, &requests);
    }
}

/// Matched and adopted tokens of every request of a stream, with so much room.
fn outcomes(config: &Config, requests: &[Request]) -> Vec<(u32, u32)> {
    let (_cache, namespace) = open(config);
    let serve = |(now, request): (u64, &Request)| {
        let mut sequence = namespace.sequence_of_keys(request.prompt_tokens().into(), &keys(&request.path));
        let plan = sequence.plan(now).unwrap();
        let outcome = (plan.matched_tokens, plan.adopted_tokens);
        drop(plan);
        if !matches!(request.keeping, Keeping::Aborted) {
            sequence.save(&mut Rows::default()).unwrap();
            sequence.capture(&mut Rows::default()).unwrap();
        }
        outcome
    };
    (1..).zip(requests).map(serve).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// LRU over leaves keeps the inclusion property of LRU: what a smaller cache holds, a larger one holds, too.
    #[test]
    fn more_room_never_matches_less_under_lru(
        config in config(),
        more_blocks in 1_u64..24,
        requests in vec(request(), 1..40),
    ) {
        let smaller = Config { eviction: "lru".parse().unwrap(), ..config };
        let history_bytes = smaller.history_bytes + more_blocks * BLOCK_BYTES;
        let larger = Config { history_bytes, ..smaller.clone() };
        for (less, more) in outcomes(&smaller, &requests).into_iter().zip(outcomes(&larger, &requests)) {
            prop_assert!(less.0 <= more.0, "{} tokens are matched with less room, {} with more", less.0, more.0);
        }
    }
}

/// Windows have a quota of their own, so adopted tokens are not monotone. With one block of room, the second block of the long prompt is not
/// saved, so its window has no place and the first block keeps its own. With room for both, the window of the second block takes the only
/// window slot, and a prompt that ends between the two finds its block and no window. These are the shortest such streams, found by trying all.
#[test]
fn more_room_may_adopt_less_than_it_matches() {
    let stream = |blocks: &[usize]| -> Vec<Request> {
        let request = |&blocks: &usize| Request {
            path: vec![0; blocks],
            tail_tokens: 1,
            back_blocks: 0,
            keeping: Keeping::SavedThenCaptured,
            held: false,
            restarted: false,
        };
        blocks.iter().map(request).collect()
    };
    for (checkpoints, requests) in [("full", stream(&[2, 1])), ("events", stream(&[1, 2, 1]))] {
        let room = |blocks| Config {
            checkpoints: checkpoints.parse().unwrap(),
            native_policies: true,
            planner: Planner::MinCompute,
            ..small(blocks, 1)
        };
        let last = |blocks| *outcomes(&room(blocks), &requests).last().unwrap();
        assert_eq!((last(1), last(2)), ((16, 16), (16, 0)), "{checkpoints}");
    }
}
