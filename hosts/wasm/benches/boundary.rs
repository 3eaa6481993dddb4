//! What the boundary costs: a call, a batch of events, and `lru` behind it.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use reprise_core::policy::{
    CachePolicy as _, Event, EventBuffer, GroupInfo, Inserted, Kind, NO_PARENT, Policy, Settings, Span,
};
use reprise_policies::Lru;
use reprise_wasm::{CachePolicy, Engine, Limits};

#[path = "../tests/kit/mod.rs"]
mod kit;

const BATCH: usize = 256;
const RECORDS: u32 = 100_000;
const PATH_BLOCKS: u32 = 100;

fn history() -> [GroupInfo; 1] {
    [GroupInfo {
        group: 0,
        name: "history".into(),
        record_bytes: 647_168,
        capacity_records: RECORDS.into(),
        recompute_tokens: 128,
        tree: true,
    }]
}

/// Batches that fill the cache with paths, then batches that use, evict and insert as a full cache does: each record is its path's
/// next block.
struct Load {
    next: u32,
    now: u64,
    random: u64,
}

impl Load {
    fn inserted(&mut self) -> Event {
        let (id, block) = (self.next, self.next % PATH_BLOCKS);
        self.next += 1;
        let parent = if block == 0 { NO_PARENT } else { id - 1 };
        Event::Inserted(Inserted { id, parent, group: 0, namespace: 0, depth: block + 1, now: self.now })
    }

    fn used(&mut self) -> Event {
        self.now += 1;
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let path = (self.random >> 33) as u32 % (RECORDS / PATH_BLOCKS);
        let id = path * PATH_BLOCKS + PATH_BLOCKS - 1;
        Event::Used { id, group: 0, depth: PATH_BLOCKS, now: self.now }
    }
}

fn batches(load: &mut Load, count: usize, mut event: impl FnMut(&mut Load) -> Event) -> Vec<EventBuffer> {
    let mut batches = vec![EventBuffer::default(); count];
    for batch in &mut batches {
        for _ in 0..BATCH {
            batch.push(event(load));
        }
    }
    batches
}

fn boundary(criterion: &mut Criterion) {
    let engine = Engine::new(&Limits::default()).unwrap();
    let silent = engine.load(&kit::CachePolicy::default().component(), "silent", Kind::Cache).unwrap();
    let mut silent = silent.cache(&[], &history()).unwrap();
    let words = vec![0_u64; BATCH * 3];
    let mut victims = Vec::new();
    criterion.bench_function("call/empty", |bencher| bencher.iter(|| silent.step(&[], 0, &mut victims).unwrap()));
    let mut group = criterion.benchmark_group("boundary");
    group.throughput(Throughput::Elements(BATCH as u64));
    group.bench_function("256 events", |bencher| {
        bencher.iter(|| silent.step(black_box(&words), 0, &mut victims).unwrap())
    });
    group.finish();

    let events = engine.load(reprise_policies_dist::component("events").unwrap(), "events", Kind::Checkpoint).unwrap();
    let mut events = events.checkpoint(&[]).unwrap();
    let span = Span { end: 8_192, prompt_tokens: 8_200, block_tokens: 128, ..Span::default() };
    let mut positions = Vec::new();
    criterion.bench_function("call/choose", |bencher| {
        bencher.iter(|| {
            positions.clear();
            events.choose(black_box(&span), &mut positions).unwrap();
        });
    });
}

fn lru(criterion: &mut Criterion) {
    let engine = Engine::new(&Limits::default()).unwrap();
    let component = engine.load(reprise_policies_dist::component("lru").unwrap(), "lru", Kind::Cache).unwrap();
    let filled = |load: &mut Load| batches(load, RECORDS as usize / BATCH, Load::inserted);
    let start = || Load { next: 0, now: 1, random: 7 };

    let mut group = criterion.benchmark_group("lru");
    group.throughput(Throughput::Elements(BATCH as u64));

    let mut load = start();
    let fill = filled(&mut load);
    let used = batches(&mut load, 64, Load::used);
    let wasm = || -> CachePolicy { component.cache(&[], &history()).unwrap() };
    let native = || Lru::new(&Settings::parse(&[], [] as [(&str, &str); 0]).unwrap());
    let mut victims = Vec::new();

    let mut policy = wasm();
    for batch in &fill {
        policy.step(batch.words(), 0, &mut victims).unwrap();
    }
    let mut turn = used.iter().cycle();
    group.bench_function("used/wasm", |bencher| {
        bencher.iter(|| policy.step(turn.next().unwrap().words(), 0, &mut victims).unwrap());
    });
    let mut policy = native();
    policy.attach(&history());
    for batch in &fill {
        policy.step(batch.events(), 0, &mut victims);
    }
    let mut turn = used.iter().cycle();
    group.bench_function("used/native", |bencher| {
        bencher.iter(|| policy.step(turn.next().unwrap().events(), 0, &mut victims));
    });

    group.throughput(Throughput::Elements((fill.len() * BATCH) as u64));
    group.sample_size(20);
    group.bench_function("insert and evict/wasm", |bencher| {
        bencher.iter_with_large_drop(|| {
            let mut policy = wasm();
            for batch in &fill {
                victims.clear();
                policy.step(batch.words(), 64, &mut victims).unwrap();
            }
            policy
        });
    });
    group.bench_function("insert and evict/native", |bencher| {
        bencher.iter_with_large_drop(|| {
            let mut policy = native();
            policy.attach(&history());
            for batch in &fill {
                victims.clear();
                policy.step(batch.events(), 64, &mut victims);
            }
            policy
        });
    });
    group.finish();
}

criterion_group!(benches, boundary, lru);
criterion_main!(benches);
