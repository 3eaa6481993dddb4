//! Every length around every boundary, with every checkpoint policy: saved, the engine and its cache gone, the store opened again,
//! planned, restored, gone on.

use reprise::Config;
use reprise_model::{Model, Shape};

use crate::{
    comparison::Cold,
    engine::{Engine, Served, config},
};

/// Tokens that follow a prompt.
pub const FOLLOWING: usize = 40;

/// Tokens that differ from those of another seed from the first one on.
pub fn tokens(shape: &Shape, seed: u32, count: usize) -> Vec<u32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state % shape.vocab as u32
    };
    let first = seed % shape.vocab as u32;
    [first].into_iter().chain(std::iter::repeat_with(&mut next)).take(count).collect()
}

/// Lengths at which something ends or begins: blocks, windows, and the replay that rebuilds all windows.
fn boundaries(shape: &Shape) -> Vec<usize> {
    let block = shape.hca_ratio;
    let layers = shape.layers.len();
    let (windows, replay) = (layers * shape.window, (layers + 1) * shape.window);
    let mut lengths: Vec<usize> = (1..=3 * block).collect();
    for boundary in [128, 256, 384, 512, windows, replay, replay + block, replay + 2 * block] {
        lengths.extend(boundary - 1..=boundary + 2);
    }
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

/// What became of a grid, so that a grid in which nothing is restored does not pass.
#[derive(Debug, Default)]
struct Tally {
    cases: usize,
    hits: usize,
    checkpoints: usize,
    replays: usize,
}

impl Tally {
    fn note(&mut self, served: &Served) {
        self.cases += 1;
        self.hits += usize::from(served.restored.adopted_tokens > 0);
        self.checkpoints += usize::from(served.restored.checkpoint);
        self.replays += usize::from(served.restored.replayed_tokens > 0);
    }
}

/// Saves the first `length` tokens in one process, as it were, and serves them in the next: alone, and as part of a longer prompt.
fn save_and_restore(cold: &Cold<'_>, model: &Model, checkpoints: &str, length: usize, tally: &mut Tally) {
    let directory = tempfile::tempdir().unwrap();
    let block = model.shape().hca_ratio;
    let blocks = (length / block + 4) as u64;
    let config =
        Config { checkpoints: checkpoints.parse().unwrap(), ..config(model.shape(), blocks, blocks, directory.path()) };
    let case = |served: &Served| format!("{checkpoints}, {length} tokens: {}", served.plan.explain());
    let first = Engine::open(model, config.clone());
    let saved = first.serve(&cold.tokens[..length], &[], 1);
    assert_eq!(saved.restored.adopted_tokens, 0, "{}", case(&saved));
    cold.compare(&saved).unwrap_or_else(|difference| panic!("{}: {difference}", case(&saved)));
    drop(first);

    let second = Engine::open(model, config);
    for prompt in [length, length + block + 1] {
        let served = second.serve(&cold.tokens[..prompt], &cold.tokens[prompt..prompt + FOLLOWING], prompt as u64);
        assert!(!served.restored.shortened && served.restored.computed_tokens == served.plan.computed_tokens);
        assert!((served.restored.adopted_tokens as usize) < prompt, "one token is always computed");
        cold.compare(&served).unwrap_or_else(|difference| panic!("{}: {difference}", case(&served)));
        tally.note(&served);
    }
}

fn run(shape: Shape, policies: &[&str], lengths: &[usize], seed: u32) -> Vec<Tally> {
    let model = Model::random(shape.clone(), u64::from(seed));
    let longest = lengths.iter().max().unwrap();
    let cold = Cold::new(&model, tokens(&shape, seed, longest + shape.hca_ratio + 1 + FOLLOWING));
    let tally = |policy: &&str| {
        let mut tally = Tally::default();
        lengths.iter().for_each(|&length| save_and_restore(&cold, &model, policy, length, &mut tally));
        tally
    };
    policies.iter().map(tally).collect()
}

#[test]
fn no_length_and_no_policy_makes_a_restore_differ_from_a_cold_prefill() {
    let shape = Shape::small(16, 16);
    let lengths = boundaries(&shape);
    let policies = ["full", "periodic:16", "periodic:48", "periodic:400", "zero", "events", "events:back=1"];
    let tallies = run(shape, &policies, &lengths, 1);
    for (policy, tally) in policies.iter().zip(&tallies) {
        assert_eq!(tally.cases, 2 * lengths.len());
        assert!(tally.hits > 20, "{policy}: {tally:?}");
        assert_eq!(tally.checkpoints > 0, *policy != "zero", "{policy}: {tally:?}");
    }
    assert!(tallies[4].replays == tallies[4].hits, "without checkpoints every hit is a replay: {:?}", tallies[4]);
    assert!(tallies[3].replays > 0 && tallies[3].checkpoints > 0, "both ways: {:?}", tallies[3]);
}

/// The published window and ratios: a block is a window, and a replay is long.
#[test]
fn no_restore_differs_with_a_window_of_128() {
    for (shape, lengths, policies) in [
        (
            Shape::small(128, 128),
            vec![127, 128, 129, 130, 255, 256, 257, 384, 513],
            vec!["full", "periodic:256", "events"],
        ),
        (Shape::small(128, 16), vec![15, 16, 17, 112, 127, 128, 129, 130, 144], vec!["full", "events:back=1"]),
        (Shape::small(16, 128), vec![128, 129, 255, 257, 385], vec!["events", "zero"]),
        (Shape::small(128, 128), vec![1153], vec!["zero"]),
    ] {
        for tally in run(shape.clone(), &policies, &lengths, 2) {
            assert!(tally.hits > 0, "{} {}: {tally:?}", shape.window, shape.hca_ratio);
        }
    }
}

/// All boundaries with all shapes and policies.
#[test]
#[ignore = "the wide grid takes minutes, in release"]
fn no_corner_of_the_wide_grid_differs() {
    let policies =
        ["full", "periodic:16", "periodic:128", "periodic:256", "periodic:1024", "zero", "events", "events:back=1"];
    for (window, hca_ratio) in [(16, 16), (128, 16), (16, 128), (128, 128), (32, 64)] {
        for seed in [3, 4] {
            let shape = Shape::small(window, hca_ratio);
            let tallies = run(shape.clone(), &policies, &boundaries(&shape), seed);
            let cases: usize = tallies.iter().map(|tally| tally.cases).sum();
            println!("window {window}, HCA ratio {hca_ratio}, seed {seed}: {cases} restores exact; {tallies:?}");
        }
    }
}
