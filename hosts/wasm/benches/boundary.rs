//! What the boundary costs: a call, a batch of events, shipped policies behind it, and what one request asks of them; native code
//! beside each. Times are CPU time of the thread.

use std::{hint::black_box, slice::from_ref};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use reprise_core::policy::{
    Admission, CachePolicy as _, Event, EventBuffer, GroupInfo, Inserted, Kind, NO_PARENT, Policy, Settings, Span,
};
use reprise_policies::{Lru, TwoHit};
use reprise_wasm::{CachePolicy, Engine, Limits};

mod cpu_time;

use cpu_time::CpuTime;

#[path = "../tests/kit/mod.rs"]
mod kit;

const BATCH: usize = 256;
const RECORDS: u32 = 100_000;
const PATH_BLOCKS: u32 = 100;

fn group(records: u32) -> GroupInfo {
    GroupInfo {
        group: 0,
        name: "history".into(),
        record_bytes: 647_168,
        capacity_records: records.into(),
        recompute_tokens: 128,
        tree: true,
    }
}

fn history() -> [GroupInfo; 1] {
    [group(RECORDS)]
}

fn component(engine: &Engine, name: &str, kind: Kind) -> reprise_wasm::Component {
    engine.load(reprise_policies_dist::component(name).unwrap(), name, kind).unwrap()
}

fn native<P: Policy>() -> P {
    P::new(&Settings::parse(P::DESCRIPTION.settings, [] as [(&str, &str); 0]).unwrap())
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

fn boundary(criterion: &mut Criterion<CpuTime>) {
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
    // `lru` takes every event apart and finds that it has no such record.
    let mut strange = component(&engine, "lru", Kind::Cache).cache(&[], &history()).unwrap();
    let mut load = Load { next: 0, now: 1, random: 7 };
    let unheard = batches(&mut load, 1, Load::used);
    group.bench_function("256 events, decoded", |bencher| {
        bencher.iter(|| strange.step(black_box(unheard[0].words()), 0, &mut victims).unwrap());
    });
    group.finish();

    let mut events = component(&engine, "events", Kind::Checkpoint).checkpoint(&[]).unwrap();
    let span = Span { end: 8_192, prompt_tokens: 8_200, block_tokens: 128, ..Span::default() };
    let mut positions = Vec::new();
    criterion.bench_function("call/choose", |bencher| {
        bencher.iter(|| {
            positions.clear();
            events.choose(black_box(&span), &mut positions).unwrap();
        });
    });
}

fn lru(criterion: &mut Criterion<CpuTime>) {
    let engine = Engine::new(&Limits::default()).unwrap();
    let component = component(&engine, "lru", Kind::Cache);
    let filled = |load: &mut Load| batches(load, RECORDS as usize / BATCH, Load::inserted);
    let start = || Load { next: 0, now: 1, random: 7 };

    let mut group = criterion.benchmark_group("lru");
    group.throughput(Throughput::Elements(BATCH as u64));

    let mut load = start();
    let fill = filled(&mut load);
    let used = batches(&mut load, 64, Load::used);
    let wasm = || -> CachePolicy { component.cache(&[], &history()).unwrap() };
    let mut victims = Vec::new();

    let mut policy = wasm();
    for batch in &fill {
        policy.step(batch.words(), 0, &mut victims).unwrap();
    }
    let mut turn = used.iter().cycle();
    group.bench_function("used/wasm", |bencher| {
        bencher.iter(|| policy.step(turn.next().unwrap().words(), 0, &mut victims).unwrap());
    });
    let mut policy: Lru = native();
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
            let mut policy: Lru = native();
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

/// `two-hit` asked for admission: prompts of 512 blocks, half of them seen before.
fn two_hit(criterion: &mut Criterion<CpuTime>) {
    const BLOCKS: usize = 512;
    let engine = Engine::new(&Limits::default()).unwrap();
    let key =
        |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let mut prompt = 0_u64;
    let mut keys = || {
        prompt += 1;
        let seen = (prompt - 1) * BLOCKS as u64 / 2;
        (seen..seen + BLOCKS as u64).map(key).collect::<Vec<_>>()
    };
    let question = |keys: &[u64], ask: &mut dyn FnMut(&Admission<'_>)| {
        ask(&Admission { now: 1, group: 0, keys, first: 0, free: 0 });
    };
    let mut group = criterion.benchmark_group("two-hit");
    group.throughput(Throughput::Elements(BLOCKS as u64));
    let mut verdicts = Vec::new();
    let mut policy = component(&engine, "two-hit", Kind::Cache).cache(&[], &history()).unwrap();
    group.bench_function("admit/wasm", |bencher| {
        bencher.iter_batched(
            &mut keys,
            |keys| {
                question(&keys, &mut |asked| {
                    verdicts.clear();
                    policy.admit(asked, &mut verdicts).unwrap()
                })
            },
            criterion::BatchSize::SmallInput,
        );
    });
    let mut policy: TwoHit = native();
    policy.attach(&history());
    group.bench_function("admit/native", |bencher| {
        bencher.iter_batched(
            &mut keys,
            |keys| {
                question(&keys, &mut |asked| {
                    verdicts.clear();
                    policy.admit(asked, &mut verdicts)
                })
            },
            criterion::BatchSize::SmallInput,
        );
    });
    group.finish();
}

/// What one request of a million tokens asks of the default policies when a million blocks are live and nothing comes in: its path is
/// used, leased and given back, and windows are placed.
fn request(criterion: &mut Criterion<CpuTime>) {
    const LIVE: u32 = 1_000_000;
    let engine = Engine::new(&Limits::default()).unwrap();
    let mut load = Load { next: 0, now: 1, random: 7 };
    let mut lru = component(&engine, "lru", Kind::Cache).cache(&[], from_ref(&group(LIVE))).unwrap();
    let mut none = Vec::new();
    for batch in batches(&mut load, LIVE as usize / BATCH, Load::inserted) {
        lru.step(batch.words(), 0, &mut none).unwrap();
    }
    let mut events = component(&engine, "events", Kind::Checkpoint).checkpoint(&[]).unwrap();
    let span = Span { end: 1 << 20, prompt_tokens: (1 << 20) + 5, block_tokens: 128, ..Span::default() };
    let (mut batch, mut victims, mut positions) = (EventBuffer::default(), Vec::new(), Vec::new());
    criterion.bench_function("request/a million tokens", |bencher| {
        bencher.iter(|| {
            batch.clear();
            let Event::Used { id, group, depth, now } = load.used() else { unreachable!("a use") };
            let id = id % LIVE;
            batch.push(Event::Used { id, group, depth, now });
            batch.push(Event::Pinned { id, group, now });
            batch.push(Event::Unpinned { id, group, now });
            victims.clear();
            lru.step(batch.words(), 0, &mut victims).unwrap();
            positions.clear();
            events.choose(black_box(&span), &mut positions).unwrap();
        });
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(CpuTime);
    targets = boundary, lru, two_hit, request
}
criterion_main!(benches);
