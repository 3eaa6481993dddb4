//! Time per access of the replay without types beside libCacheSim's LRU, in its own loop, on the same keys, in one run.
//!
//! `REPRISE_REQUIRE_TOOLS=1 cargo bench --workspace --bench untyped` takes the bundled parts; with `REPRISE_TRACES=DIR` the full
//! `mooncake-conversation.jsonl.gz` in that directory. An access is one block of a prompt. What is timed there is `process_trace` on a mapped
//! binary file; here it is the replay of numbered blocks, by the rule and by the policy `lru` natively and as a component, which is
//! compiled before. Numbering, done once for all sizes, is shown beside: libCacheSim is given numbers. Each time is the best of several
//! turns; ratios over 1 mean that this is faster.

#[allow(dead_code, reason = "the tests use the rest")]
mod peers;

use std::time::Duration;

use peers::{Subject, libcachesim, python, scratch, write_keys};
use reprise::{PolicyChoice, PolicyLoader, PolicyTerms};
use reprise_cli::untyped::{Eviction, Options, Paths, Rule, replay_paths};

const TURNS: u32 = 7;

fn main() {
    let Some(python) = python() else { return };
    let policy = |native| {
        let loader = PolicyLoader::new(PolicyTerms { native, records: 1 << 20, ..PolicyTerms::default() });
        Eviction::policy(&PolicyChoice::shipped("lru"), &loader).expect("it is shipped")
    };
    let forms = [Rule::Lru.into(), policy(true), policy(false)];
    println!(
        "{:>8} {:>12} {:>8} {:>8} {:>10} | {:>8} {:>8} {:>10} {:>14}",
        "blocks", "libCacheSim", "rule", "native", "component", "rule", "native", "component", "with numbering"
    );
    for subject in Subject::all(python, "bench").iter().filter(|subject| subject.is_measured()) {
        let keys = scratch("bench.oracleGeneral");
        let paths = subject.paths();
        write_keys(&paths, &keys);
        let accesses = (0..paths.requests()).map(|request| paths.len(request)).sum::<usize>() as f64;
        let nanoseconds = |time: Duration| time.as_secs_f64() * 1e9 / accesses;
        let numbering = nanoseconds((0..TURNS).map(|_| subject.paths().elapsed()).min().expect("turns"));
        println!("{}: {accesses} accesses; ns each, and times as fast; numbering {numbering:.1} ns", subject.name);
        let distinct = paths.blocks();
        for size in [distinct / 400, distinct / 100, distinct / 25, distinct / 6, distinct / 3] {
            let theirs = libcachesim(python, &keys, TURNS, &[size]).lru[0].2 * 1e9 / accesses;
            let [rule, native, component] = forms.each_ref().map(|form| nanoseconds(best(&paths, form, size)));
            println!(
                "{size:>8} {theirs:>12.1} {rule:>8.1} {native:>8.1} {component:>10.1} | {:>8.2} {:>8.2} {:>10.2} {:>14.2}",
                theirs / rule,
                theirs / native,
                theirs / component,
                theirs / (rule + numbering)
            );
        }
    }
}

fn best(paths: &Paths, eviction: &Eviction, capacity_blocks: u32) -> Duration {
    let options = Options { capacity_blocks, eviction: eviction.clone() };
    let turn = |_| replay_paths(paths, &options).expect("a replay").elapsed;
    (0..TURNS).map(turn).min().expect("turns")
}
