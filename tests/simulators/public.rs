//! The simulator's rules against the simulator.

use std::{collections::BTreeMap, path::Path, process::Command};

use reprise_cli::untyped::{Mode, Options, Paths, Rule, replay_paths};
use reprise_tests::tools::run;
use serde::Deserialize;

use crate::peers::{Subject, python, scratch};

/// What the program prints with `--format json`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Printed {
    metadata: Metadata,
    points: Vec<Point>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    request_count: usize,
    event_count: u64,
    unique_blocks: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Point {
    cache_blocks: u32,
    results: BTreeMap<String, Figures>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Figures {
    measurement_mode: String,
    hit_tokens: u64,
    total_tokens: u64,
}

/// Budgets that the bundled parts fill; the program leaves out those that are not filled.
const SMALL_BUDGETS: &str = "0.0625,0.125,0.25,0.5,1,2,4,8,16,32";

/// Runs the program as its users do. A model is only needed to turn budgets into blocks.
fn simulate(python: &Path, subject: &Subject) -> String {
    let mut command = Command::new(python);
    command.args(["-m", "kvcache_sim", "run", "--model", "deepseek-v4-pro", "--block-size", "512"]);
    command.args(["--format", "json", "--no-progress", "--trace"]).arg(&subject.lines);
    if !subject.full {
        command.args(["--budgets-gib", SMALL_BUDGETS]);
    }
    // It compiles its simulator into the folder for temporary files.
    command.env("TMPDIR", scratch("").as_os_str());
    run(&mut command)
}

fn replayed(paths: &Paths, rule: Rule, capacity_blocks: u32) -> Figures {
    let outcome =
        replay_paths(paths, &Options { capacity_blocks, eviction: rule.into() }).expect("a rule does not fail");
    let measurement_mode = match outcome.mode {
        Mode::FixedWindow => "fixed_window",
        Mode::Underfilled => "underfilled_at_window",
    };
    Figures {
        measurement_mode: measurement_mode.to_owned(),
        hit_tokens: outcome.hit_tokens(),
        total_tokens: outcome.measured_tokens,
    }
}

#[test]
fn no_digit_that_kvcache_simulator_prints_differs() {
    let Some(python) = python() else { return };
    for subject in Subject::all(python, "public") {
        let said = simulate(python, &subject);
        let printed: Printed = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
        let paths = subject.paths();
        let blocks: usize = (0..paths.requests()).map(|request| paths.len(request)).sum();
        let Metadata { request_count, event_count, unique_blocks } = printed.metadata;
        assert_eq!(
            (paths.requests(), blocks as u64, paths.blocks()),
            (request_count, event_count, unique_blocks),
            "{}",
            subject.name
        );
        assert!(printed.points.len() >= 3, "{}: {} budgets are filled", subject.name, printed.points.len());
        for Point { cache_blocks, results } in &printed.points {
            assert_eq!(results.len(), 3);
            for (name, theirs) in results {
                let rule = Rule::ALL.into_iter().find(|rule| rule.name() == name).expect("a rule");
                let ours = replayed(&paths, rule, *cache_blocks);
                assert_eq!(ours, *theirs, "{name} with {cache_blocks} blocks on {}", subject.name);
                // Both languages print the shortest number that is read back as the same.
                let rate = ours.hit_tokens as f64 / ours.total_tokens as f64;
                assert!(said.contains(&format!("\"hitRate\": {rate:?},")), "{rate:?} is printed by {}", subject.name);
                println!("{}: {name}, {cache_blocks} blocks: equal, {rate:?}", subject.name);
            }
        }
    }
}
