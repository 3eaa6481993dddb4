//! What each language costs.

use std::time::{Duration, Instant};

use reprise_core::policy::{Event, EventBuffer, GroupInfo, Inserted, Kind, NO_PARENT};
use reprise_wasm::{CachePolicy, Component, Engine, Limits};

use crate::template::CACHE;

const RECORDS: u32 = 4096;
const CALLS: usize = 400;

fn attached(component: &Component) -> CachePolicy {
    let group = GroupInfo {
        group: 0,
        name: "history".into(),
        record_bytes: 4096,
        capacity_records: RECORDS.into(),
        recompute_tokens: 128,
        tree: true,
    };
    let mut policy = component.cache(&[], &[group]).unwrap();
    let mut events = EventBuffer::default();
    for id in 0..RECORDS {
        let parent = if id.is_multiple_of(16) { NO_PARENT } else { id - 1 };
        events.push(Event::Inserted(Inserted {
            id,
            parent,
            group: 0,
            namespace: 0,
            depth: id % 16 + 1,
            now: id.into(),
        }));
    }
    policy.step(events.words(), 0, &mut Vec::new()).unwrap();
    policy
}

/// The median of [`CALLS`] calls that bring this many uses and ask for a victim, which is declined.
fn time_a_call(policy: &mut CachePolicy, count: u32) -> Duration {
    let mut times = Vec::new();
    let mut events = EventBuffer::default();
    let mut victims = Vec::new();
    for call in 0..CALLS as u64 {
        for number in 0..count {
            let id = (number * 1_009 + call as u32 * 37) % RECORDS;
            events.push(Event::Used { id, group: 0, depth: id % 16 + 1, now: u64::from(RECORDS) + call });
        }
        victims.clear();
        let start = Instant::now();
        policy.step(events.words(), 1, &mut victims).unwrap();
        times.push(start.elapsed());
        events.clear();
        let kept = victims.iter().map(|&id| Event::Kept { id, group: 0, now: u64::from(RECORDS) + call });
        kept.for_each(|event| events.push(event));
    }
    times.sort();
    times[CALLS / 2]
}

/// Prints the table of `policies/examples/README.md`:
/// `REPRISE_REQUIRE_TOOLS=1 cargo test --workspace --test examples -- --ignored --nocapture --test-threads=1 costs`.
#[test]
#[ignore = "prints figures"]
fn costs_of_each_language() {
    println!("| language | component | compile and check | call of 64 events | call of 256 events |");
    println!("|---|---|---|---|---|");
    for template in &CACHE {
        let Some(bytes) = template.component() else { continue };
        let engine = Engine::new(&Limits::of(template.profile)).unwrap();
        let start = Instant::now();
        let component = engine.load(bytes, template.folder, Kind::Cache).unwrap();
        let loaded = start.elapsed();
        let mut policy = attached(&component);
        let micros = |time: Duration| format!("{:.1} µs", time.as_secs_f64() * 1e6);
        let [few, many] = [64, 256].map(|count| micros(time_a_call(&mut policy, count)));
        println!(
            "| {} | {:.1} KB | {} ms | {few} | {many} |",
            template.language,
            bytes.len() as f64 / 1e3,
            loaded.as_millis()
        );
    }
}
