//! Prompts that share a prefix, conversations, quotas, and evictions at the worst moment.

use reprise::{Config, Explain};
use reprise_model::{Model, Shape};

use crate::{
    comparison::Cold,
    engine::{Engine, Served, config},
    lengths::{FOLLOWING, tokens},
};

fn exact(cold: &Cold<'_>, served: &Served) {
    cold.compare(served).unwrap_or_else(|difference| panic!("{difference}: {}", served.plan.explain()));
}

/// `shared` tokens of `base`, then others.
fn branch(shape: &Shape, base: &[u32], shared: usize, seed: u32, count: usize) -> Vec<u32> {
    let mut other = tokens(shape, seed, count - shared);
    // The first token behind the branching differs for sure, from branch to branch as well.
    other[0] = (base[shared] + seed) % shape.vocab as u32;
    [&base[..shared], &other].concat()
}

/// B leaves A in the middle of a block, at its end, at a junction that has no checkpoint yet, and at one that has.
#[test]
fn a_branch_does_not_get_what_lies_behind_the_branching() {
    let shape = Shape::small(16, 16);
    let model = Model::random(shape.clone(), 5);
    let a = tokens(&shape, 7, 200 + FOLLOWING);
    let cold_a = Cold::new(&model, a.clone());
    for checkpoints in ["full", "periodic:32", "zero", "events", "events:back=1"] {
        for shared in [64, 65, 71, 79, 80, 144, 150, 160, 161] {
            let directory = tempfile::tempdir().unwrap();
            let config =
                Config { checkpoints: checkpoints.parse().unwrap(), ..config(&shape, 64, 64, directory.path()) };
            let engine = Engine::open(&model, config);
            exact(&cold_a, &engine.serve(&a[..200], &a[200..], 1));
            let mut adopted = Vec::new();
            // The second of the two finds the checkpoint at the junction that the first one may have left.
            for (now, seed) in [(2, 8), (3, 9)] {
                let b = branch(&shape, &a, shared, seed, 190 + FOLLOWING);
                let served = engine.serve(&b[..190], &b[190..], now);
                exact(&Cold::new(&model, b), &served);
                assert!(served.restored.adopted_tokens as usize <= shared / 16 * 16);
                adopted.push(served.restored.adopted_tokens as usize);
            }
            if checkpoints == "events" {
                assert_eq!(adopted[1], shared / 16 * 16, "the junction was kept: {adopted:?}");
                assert!(adopted[0] == 0 || adopted[0] > 128, "the first has only a replay: {adopted:?}");
            }
            exact(&cold_a, &engine.serve(&a[..200], &a[200..], 4));
        }
    }
}

/// sglang#36179: outputs loop after a restore. Fifty rounds of two conversations in turn, each round through the cache.
#[test]
fn fifty_rounds_of_a_conversation_do_not_drift_from_a_cold_prefill() {
    let shape = Shape::small(16, 16);
    let model = Model::random(shape.clone(), 6);
    let directory = tempfile::tempdir().unwrap();
    let engine = Engine::open(&model, config(&shape, 400, 40, directory.path()));
    let round = 23;
    let conversations = [11, 12].map(|seed| Cold::new(&model, tokens(&shape, seed, 51 * round + FOLLOWING)));
    let mut adopted = 0;
    for turn in 1..=50 {
        for (index, cold) in conversations.iter().enumerate() {
            let prompt = turn * round;
            let served =
                engine.serve(&cold.tokens[..prompt], &cold.tokens[prompt..prompt + 9], (2 * turn + index) as u64);
            exact(cold, &served);
            adopted += served.restored.adopted_tokens as usize;
        }
    }
    let prompts: usize = (1..=50).map(|turn| 2 * turn * round).sum();
    assert!(adopted * 10 > prompts * 9, "{adopted} of {prompts} tokens were adopted");
}

/// Six sessions in a cache that holds two of them, with few checkpoints: what is evicted is computed, what is left is exact.
#[test]
fn sessions_that_evict_each_other_do_not_mix() {
    let shape = Shape::small(16, 16);
    let model = Model::random(shape.clone(), 7);
    for (checkpoints, eviction) in [("events", "lru"), ("full", "fifo"), ("periodic:48", "two-hit"), ("zero", "lru")] {
        let directory = tempfile::tempdir().unwrap();
        let config = Config {
            checkpoints: checkpoints.parse().unwrap(),
            eviction: eviction.parse().unwrap(),
            ..config(&shape, 30, 5, directory.path())
        };
        let engine = Engine::open(&model, config);
        let sessions: Vec<Cold<'_>> = (20..26).map(|seed| Cold::new(&model, tokens(&shape, seed, 340))).collect();
        let mut hits = 0;
        for step in 0_usize..60 {
            // Some sessions come back at once, others after all the rest.
            let session = [0, 1, 0, 2, 0, 3, 1, 4, 0, 5][step % 10];
            let prompt = 40 + (step / 10) * 43 + session;
            let cold = &sessions[session];
            let served = engine.serve(&cold.tokens[..prompt], &cold.tokens[prompt..prompt + 20], step as u64 + 1);
            exact(cold, &served);
            hits += usize::from(served.restored.adopted_tokens > 0);
        }
        let stats = engine.cache.stats();
        assert!(stats.counters.group(reprise::Group::History).evicted_records > 50, "{checkpoints}, {eviction}");
        assert!(hits > 5, "{checkpoints}, {eviction}: {hits} hits");
    }
}

/// Other prompts, enough of them to take every slot that is not held.
fn flood(engine: &Engine<'_>, shape: &Shape, now: u64) {
    for seed in 0..6 {
        engine.serve(&tokens(shape, 40 + seed, 8 * 16 + 1), &[], now);
    }
}

/// vllm#54914: whatever goes between the look-up and the restore, the lease keeps what the plan needs; without it, the plan is cut.
#[test]
fn an_eviction_between_plan_and_restore_does_not_change_a_bit() {
    let shape = Shape::small(16, 16);
    let model = Model::random(shape.clone(), 8);
    for checkpoints in ["full", "events", "zero"] {
        for (lease_ticks, kept) in [(1_000, true), (1, false)] {
            let directory = tempfile::tempdir().unwrap();
            let config = Config {
                checkpoints: checkpoints.parse().unwrap(),
                lease_ticks,
                leased_ppm: 1_000_000,
                ..config(&shape, 20, 20, directory.path())
            };
            let engine = Engine::open(&model, config);
            let cold = Cold::new(&model, tokens(&shape, 30, 12 * 16 + 5 + FOLLOWING));
            let (prompt, following) = cold.tokens.split_at(12 * 16 + 5);
            exact(&cold, &engine.serve(prompt, &[], 1));
            let mut request = engine.plan(prompt, 2);
            assert!(request.plan.adopted_tokens > 0, "{}", request.plan.explain());
            flood(&engine, &shape, 10);
            let restoring = engine.restore(&request.plan);
            assert_eq!(restoring.0.shortened, !kept, "{checkpoints}");
            let served = engine.finish(&mut request, restoring, prompt, following);
            exact(&cold, &served);
        }
    }
}

/// What went before the plan is not planned.
#[test]
fn an_eviction_before_the_plan_does_not_change_a_bit() {
    let shape = Shape::small(16, 16);
    let model = Model::random(shape.clone(), 9);
    let directory = tempfile::tempdir().unwrap();
    let engine = Engine::open(&model, config(&shape, 20, 20, directory.path()));
    let cold = Cold::new(&model, tokens(&shape, 31, 12 * 16 + 5 + FOLLOWING));
    let (prompt, following) = cold.tokens.split_at(12 * 16 + 5);
    exact(&cold, &engine.serve(prompt, &[], 1));
    flood(&engine, &shape, 2);
    let served = engine.serve(prompt, following, 3);
    exact(&cold, &served);
    assert_eq!((served.restored.adopted_tokens, served.plan.explain().reason), (0, Explain::NoBlock));
}
