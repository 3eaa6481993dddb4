//! How long a request takes while eviction policies are swapped, with a million blocks resident: the longest, beside the longest
//! without a swap in the same run.
//!
//! `cargo bench --workspace --bench swap`. One thread serves requests of eight blocks that need room, another swaps. The time that the machine keeps
//! the serving thread waiting for a processor is taken off, by the kernel's count; what is left are locks and work.

use std::{
    env,
    fs::File,
    os::unix::fs::FileExt,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use reprise::{Cache, Config, Digest, Namespace, NamespaceHandle, Role, Shadowing, Shape};

const BLOCKS: u64 = 1_000_000;
const PATH_BLOCKS: u64 = 8;

struct Payload;

impl reprise::BlockSource for Payload {
    fn fill(&mut self, _: &reprise::Record, _: &mut [u8]) {}
}

fn digests(path: u64, blocks: u64) -> Vec<Digest> {
    (0..blocks)
        .map(|block| {
            let mut digest = Digest::default();
            let name = (path * blocks + block).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31);
            digest.0[..8].copy_from_slice(&name.to_le_bytes());
            digest.0[8..16].copy_from_slice(&(path * blocks + block).to_le_bytes());
            digest
        })
        .collect()
}

/// How long this thread has waited for a processor, in all: what the kernel counts as time on a run queue.
struct Queued(File);

impl Queued {
    fn of_this_thread() -> Self {
        Self(File::open("/proc/thread-self/schedstat").expect("the scheduler's counts"))
    }

    fn so_far(&self) -> Duration {
        let mut text = [0; 96];
        let length = self.0.read_at(&mut text, 0).expect("the scheduler's counts");
        let text = std::str::from_utf8(&text[..length]).expect("digits");
        Duration::from_nanos(text.split(' ').nth(1).and_then(|count| count.parse().ok()).expect("a count"))
    }
}

/// How long one request took, the time that the machine kept the thread waiting for a processor taken off.
fn serve(namespace: &NamespaceHandle, path: u64, block_tokens: u64, queued: &Queued) -> Duration {
    let mut sequence = namespace.sequence_of_digests(PATH_BLOCKS * block_tokens + 1, digests(path, PATH_BLOCKS));
    let before = queued.so_far();
    let begun = Instant::now();
    drop(sequence.plan(path).expect("a plan"));
    sequence.save(&mut Payload).expect("a save");
    begun.elapsed().saturating_sub(queued.so_far() - before)
}

/// Times of requests until `enough`.
fn times(namespace: &NamespaceHandle, next: &mut u64, block_tokens: u64, enough: impl Fn() -> bool) -> Vec<Duration> {
    let mut times = Vec::with_capacity(1 << 22);
    let queued = Queued::of_this_thread();
    while !enough() {
        times.push(serve(namespace, *next, block_tokens, &queued));
        *next += 1;
    }
    times
}

fn line(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    let slow = times.iter().filter(|time| time.as_millis() >= 1).count();
    println!(
        "{what:<24}{:>10} requests   median {:>7.1} us   p99.9 {:>8.1} us   longest {:>9.1} us   {slow} of 1 ms and more",
        times.len(),
        at(0.5),
        at(0.999),
        at(1.0)
    );
}

fn main() {
    let config = Config::new("v4-flash").expect("a preset");
    let slot_bytes = Shape::new(&config.model, 128, 1 << 40, 1 << 30).expect("a shape").history.slot_bytes;
    let config = Config { history_bytes: BLOCKS * slot_bytes, window_bytes: 0, native_policies: false, ..config };
    let block_tokens = u64::from(config.block_tokens);
    let cache = Cache::open(config).expect("a cache");
    let namespace = cache.namespace(&Namespace::new("bench", "1")).expect("a namespace");
    let mut next = 0;
    let queued = Queued::of_this_thread();
    while cache.stats().resident_records[0] < BLOCKS {
        for _ in 0..1000 {
            serve(&namespace, next, block_tokens, &queued);
            next += 1;
        }
    }
    println!("{BLOCKS} blocks resident");
    let seconds = env::var("REPRISE_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5.0);
    for round in 1..=3 {
        let until = Instant::now() + Duration::from_secs_f64(seconds);
        line(&format!("{round}: without"), times(&namespace, &mut next, block_tokens, || Instant::now() >= until));

        let done = AtomicBool::new(false);
        let (with_swaps, took) = thread::scope(|scope| {
            let swapper = scope.spawn(|| {
                let mut took = Vec::new();
                for policy in ["fifo", "lru", "two-hit", "lru"] {
                    let begun = Instant::now();
                    let swapped = cache.policies().swap(Role::Eviction, &policy.parse().expect("a policy"));
                    swapped.expect("a swap");
                    took.push(format!("{policy} {} ms", begun.elapsed().as_millis()));
                }
                done.store(true, Ordering::Relaxed);
                took
            });
            let times = times(&namespace, &mut next, block_tokens, || done.load(Ordering::Relaxed));
            (times, swapper.join().expect("the swapper"))
        });
        line(&format!("{round}: with swaps"), with_swaps);
        println!("{:<24}{}", "   swapped in", took.join(", "));

        let shadowing = Shadowing { eviction: Some("fifo".parse().expect("a policy")), ..Shadowing::default() };
        cache.policies().shadow(&shadowing).expect("a shadow");
        let until = Instant::now() + Duration::from_secs_f64(seconds);
        line(
            &format!("{round}: with a shadow"),
            times(&namespace, &mut next, block_tokens, || Instant::now() >= until),
        );
        let report = cache.policies().end_shadow().expect("a report");
        println!("{:<24}{} requests gone through, {} missed", "   the shadow", report.requests, report.missed_requests);
    }
    for policy in cache.policies().status() {
        assert_eq!(policy.strikes, 0, "{policy:?}");
    }
}
