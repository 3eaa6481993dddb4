//! Block decisions a second in a dry run: policies as components against their native twins, turn by turn in one run.
//!
//! `cargo bench -p reprise-cli --bench replay` takes the parts of the traces that are bundled. With `REPRISE_TRACES=DIR` it takes the full
//! traces `mooncake-conversation.jsonl.gz` and `coding-agent-180.jsonl.gz` in that directory. The clock runs from the
//! decoded trace to the result; the machine may be busy, so what counts is the ratio of a turn, and the best of all turns.

use std::{
    env,
    path::{Path, PathBuf},
};

use reprise::{Cache, Config, Planner};
use reprise_cli::{
    replay::{Options, Outcome, replay},
    trace::{ReadOptions, Trace},
};

const TURNS: usize = 9;

fn turn(trace: &Trace, checkpoints: &str, eviction: &str, native: bool) -> Outcome {
    let config = Config {
        checkpoints: checkpoints.parse().expect("a policy"),
        eviction: eviction.parse().expect("a policy"),
        native_policies: native,
        planner: Planner::MinCompute,
        deterministic: true,
        ..Config::new("v4-pro").expect("a preset")
    };
    let cache = Cache::open(config).expect("a cache");
    let options = Options { session_gap_us: 120_000_000, ..Options::default() };
    replay(&cache, trace, &options, &mut |_, _, _| {}).expect("a replay")
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn compare(trace: &Trace, checkpoints: &str, eviction: &str) {
    let (mut ratios, mut native_s, mut component_s) = (Vec::new(), Vec::new(), Vec::new());
    let mut decisions = 0;
    for _ in 0..TURNS {
        let native = turn(trace, checkpoints, eviction, true);
        let component = turn(trace, checkpoints, eviction, false);
        assert_eq!(native.integers, component.integers);
        decisions = native.decisions;
        ratios.push(native.elapsed.as_secs_f64() / component.elapsed.as_secs_f64());
        native_s.push(native.elapsed.as_secs_f64());
        component_s.push(component.elapsed.as_secs_f64());
    }
    let best = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
    let rate = |seconds: f64| decisions as f64 / seconds / 1e6;
    println!(
        "{:<32} {checkpoints:>14} {eviction:>8} {decisions:>11} {:>9.2} {:>9.2} {:>9.2} {:>9.2} {:>8.2} {:>8.2}",
        trace.name,
        rate(best(&native_s)),
        rate(median(native_s.clone())),
        rate(best(&component_s)),
        rate(median(component_s.clone())),
        median(ratios),
        best(&component_s),
    );
}

fn main() {
    let (directory, names) = match env::var_os("REPRISE_TRACES") {
        Some(directory) => (PathBuf::from(directory), ["mooncake-conversation.jsonl.gz", "coding-agent-180.jsonl.gz"]),
        None => (
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data"),
            ["conversation-part.jsonl.gz", "coding-agent-part.jsonl.gz"],
        ),
    };
    println!(
        "million block decisions a second, best and median of {TURNS} turns; ratio: median of component/native by turn"
    );
    println!(
        "{:<32} {:>14} {:>8} {:>11} {:>19} {:>19} {:>8} {:>8}",
        "trace", "checkpoints", "eviction", "decisions", "native", "component", "ratio", "best s"
    );
    for name in names {
        let trace = Trace::read(&directory.join(name), &ReadOptions::default()).expect("a trace");
        for (checkpoints, eviction) in [("events", "lru"), ("events", "fifo"), ("events", "two-hit"), ("full", "lru")] {
            compare(&trace, checkpoints, eviction);
        }
    }
}
