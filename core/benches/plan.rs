//! What it costs to plan a prompt of 1,048,576 tokens whose digests are known: look-up in a tree of a million blocks, the deepest
//! checkpoint, the choice by price, the explanation.
//!
//! `cargo bench -p reprise-core --bench plan`. The cases: the checkpoint at the end of the path, in its middle, and none on it at all,
//! which looks through every name. Other paths hold the rest of the blocks and checkpoints, so that nothing fits the processor's cache.

use criterion::{Criterion, criterion_group, criterion_main};
use reprise_core::{
    Digest,
    plan::{Candidates, Circumstances, Explain, Explanation, Lookup, Planner, Prices, RecordSizes},
    policy::NO_PARENT,
    prefix::{Namespace, digests},
    tree::Tree,
};

const BLOCK_TOKENS: u32 = 128;
const PROMPT_TOKENS: u32 = 1 << 20;
const PATHS: u32 = 128;
/// Checkpoints of V4-Pro in 16 GiB.
const CHECKPOINTS: u32 = 3_320;

const SIZES: RecordSizes = RecordSizes {
    block_tokens: BLOCK_TOKENS,
    block_bytes: 644_024,
    checkpoint_bytes: 5_174_272,
    checkpoint_records: 1,
};

fn path(seed: u32) -> Vec<Digest> {
    let key = Namespace::new("bench", "1").block_tokens(BLOCK_TOKENS).key().expect("a namespace");
    let tokens: Vec<u32> = (0..PROMPT_TOKENS).map(|place| place.wrapping_mul(0x9e37_79b9) ^ seed).collect();
    let mut path = Vec::new();
    digests(&key, &tokens, &mut path);
    path
}

fn insert(tree: &mut Tree, path: &[Digest]) -> Vec<u32> {
    let mut parent = NO_PARENT;
    path.iter()
        .map(|&digest| {
            parent = tree.insert(parent, digest, 0, 1, false).expect("there is room");
            parent
        })
        .collect()
}

/// A million blocks, and the checkpoints that other paths have.
fn filled() -> Tree {
    let mut tree = Tree::new(PATHS * PROMPT_TOKENS / BLOCK_TOKENS, CHECKPOINTS + 1);
    for seed in 1..PATHS {
        let ids = insert(&mut tree, &path(seed));
        for &id in ids.iter().rev().take(CHECKPOINTS as usize / (PATHS as usize - 1)) {
            tree.place_checkpoint(id, 1, false);
        }
    }
    tree
}

fn plan(tree: &Tree, digests: &[Digest]) -> Explanation {
    let found = tree.look_up(digests);
    let checkpoint = tree.deepest_checkpoint(&digests[..found.depth as usize]);
    let lookup = Lookup {
        prompt_tokens: PROMPT_TOKENS + 1,
        matched_tokens: found.depth * BLOCK_TOKENS,
        checkpoint_tokens: checkpoint.map_or(0, |(_, at)| at.depth * BLOCK_TOKENS),
        replay_tokens: Some(7_808),
    };
    let prices = Prices::default();
    let taken = Planner::MinTime.choose(&Candidates::new(&lookup), &prices, &SIZES);
    let circumstances = Circumstances {
        may_adopt_tokens: PROMPT_TOKENS,
        at_most: Explain::Complete,
        beyond: Explain::NoBlock,
        windows: true,
        drafts: false,
    };
    Explanation::new(&lookup, &taken, &circumstances, &prices, &SIZES)
}

fn bench(criterion: &mut Criterion) {
    let digests = path(0);
    let last = digests.len() - 1;
    for (name, at) in [("checkpoint at the end", Some(last)), ("in the middle", Some(last / 2)), ("none", None)] {
        let mut tree = filled();
        let ids = insert(&mut tree, &digests);
        if let Some(at) = at {
            tree.place_checkpoint(ids[at], 2, false);
        }
        criterion.bench_function(&format!("plan 1M tokens, {name}"), |bencher| bencher.iter(|| plan(&tree, &digests)));
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
