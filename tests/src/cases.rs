//! Replays with the integers they must give, computed by the Python model in `tests/reference`.

use std::{collections::BTreeMap, fs};

use reprise::{Config, Planner};
use reprise_cli::{
    replay::Options,
    trace::{ReadOptions, Trace},
};
use serde::Deserialize;

use crate::repository;

/// One replay.
#[derive(Clone, Debug, Deserialize)]
pub struct Case {
    /// Path of the trace in the repository.
    pub trace: String,
    /// How it is replayed.
    pub options: CaseOptions,
    /// The integers it gives.
    pub result: Option<BTreeMap<String, u64>>,
    /// The exit status of a replay that is refused.
    pub exit: Option<i32>,
}

/// Options of a replay.
#[derive(Clone, Debug, Deserialize)]
pub struct CaseOptions {
    /// Preset.
    pub model: String,
    /// B.
    pub block_tokens: u32,
    /// Quota.
    pub history_gib: f64,
    /// Quota.
    pub window_gib: f64,
    /// Policy.
    pub checkpoints: String,
    /// Policy.
    pub eviction: String,
    /// Whether a plan may replay tokens.
    pub allow_replay: bool,
    /// First requests only.
    pub limit: Option<usize>,
    /// Between sessions.
    pub session_gap_s: f64,
}

#[derive(Deserialize)]
struct File {
    cases: Vec<Case>,
}

/// All cases.
pub fn all() -> Vec<Case> {
    let path = repository("tests/data/expected.json");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str::<File>(&text).expect("expected.json is what its README says").cases
}

impl Case {
    /// The trace.
    pub fn trace(&self) -> Trace {
        Trace::read(&repository(&self.trace), &ReadOptions::default()).expect("a good trace")
    }

    /// A cache for it, without a store.
    pub fn config(&self, native: bool) -> Config {
        let options = &self.options;
        let bytes = |gib: f64| (gib * f64::from(1 << 30)).floor() as u64;
        Config {
            block_tokens: options.block_tokens,
            history_bytes: bytes(options.history_gib),
            window_bytes: bytes(options.window_gib),
            checkpoints: options.checkpoints.parse().expect("a policy"),
            eviction: options.eviction.parse().expect("a policy"),
            native_policies: native,
            planner: Planner::MinCompute,
            replay: options.allow_replay,
            deterministic: true,
            ..Config::new(&options.model).expect("a preset")
        }
    }

    /// How the trace is driven.
    pub fn driving(&self) -> Options {
        Options {
            limit: self.options.limit,
            session_gap_us: (self.options.session_gap_s * 1e6).round() as u64,
            verify: true,
            ..Options::default()
        }
    }
}
