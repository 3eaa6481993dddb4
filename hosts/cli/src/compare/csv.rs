//! results.csv: one line for each cell, with a header; RFC 4180.

use reprise::Group;

use super::{CellResults, Figures, Results, TraceResults};
use crate::score::{GroupScore, Score};

const COMMON: [&str; 6] = ["trace", "policy", "budget", "replays", "failed", "bound_tokens"];
const SPLIT: [&str; 3] = ["window_permille", "history_bytes", "window_bytes"];
const UNTYPED: [&str; 4] = ["measured_tokens", "found_tokens", "underfilled", "written_blocks"];
const TYPED: [&str; 19] = [
    "requests",
    "hits",
    "prompt_tokens",
    "matched_tokens",
    "adopted_tokens",
    "replayed_tokens",
    "computed_tokens",
    "saved_tokens",
    "prefill_ns",
    "cold_prefill_ns",
    "saved_prefill_ns",
    "load_ns",
    "written_bytes",
    "device_bytes",
    "device_bytes_per_day",
    "drive_writes_per_day_milli",
    "refused_blocks",
    "host_evictions",
    "trace_us",
];
/// A column that each group has, and what stands in it.
type ByGroup = (&'static str, fn(&GroupScore) -> u64);

const BY_GROUP: [ByGroup; 7] = [
    ("written_records", |group| group.written_records),
    ("written_bytes", |group| group.written_bytes),
    ("device_bytes", |group| group.device_bytes),
    ("loaded_records", |group| group.loaded_records),
    ("loaded_bytes", |group| group.loaded_bytes),
    ("evicted_records", |group| group.evicted_records),
    ("orphaned_records", |group| group.orphaned_records),
];

/// The file.
pub fn csv(results: &Results) -> String {
    let mut lines = vec![header(results.untyped)];
    for trace in &results.traces {
        lines.extend(trace.cells.iter().map(|cell| line(results.untyped, trace, cell)));
    }
    lines
        .into_iter()
        .map(|fields| fields.iter().map(|field| quoted(field)).collect::<Vec<_>>().join(",") + "\r\n")
        .collect()
}

fn header(untyped: bool) -> Vec<String> {
    let mut names: Vec<String> = COMMON.map(str::to_owned).into();
    if untyped {
        names.extend(UNTYPED.map(str::to_owned));
        return names;
    }
    names.extend(SPLIT.into_iter().chain(TYPED).map(str::to_owned));
    for group in Group::ALL {
        names.extend(BY_GROUP.map(|(what, _)| format!("{}_{what}", group.name())));
    }
    names
}

fn line(untyped: bool, trace: &TraceResults, cell: &CellResults) -> Vec<String> {
    let size = trace.sizes[cell.size];
    let failed = cell.verdict.as_ref().err().cloned().unwrap_or_default();
    let mut fields = vec![
        trace.name.clone(),
        trace.policies[cell.policy].clone(),
        size.to_string(),
        cell.replays.to_string(),
        failed,
        optional(trace.bounds[cell.size]),
    ];
    if let Some(split) = cell.split {
        fields.extend(
            [split.window_permille.into(), split.history_bytes, split.window_bytes].map(|n: u64| n.to_string()),
        );
    }
    match &cell.verdict {
        Ok(Figures::Untyped(figures)) => fields.extend([
            figures.measured_tokens.to_string(),
            figures.found_tokens.to_string(),
            figures.underfilled.to_string(),
            optional(figures.written_blocks),
        ]),
        Ok(Figures::Typed { score, .. }) => fields.extend(typed(score, size)),
        Err(_) => fields.resize(header(untyped).len(), String::new()),
    }
    fields
}

fn typed(score: &Score, size: u64) -> Vec<String> {
    let mut fields: Vec<String> = [
        score.requests,
        score.hits,
        score.prompt_tokens,
        score.matched_tokens,
        score.adopted_tokens,
        score.replayed_tokens,
        score.computed_tokens,
        score.saved_tokens,
        score.prefill_ns,
        score.cold_prefill_ns,
        score.saved_prefill_ns(),
        score.load_ns,
        score.written_bytes(),
        score.device_bytes(),
    ]
    .map(|number| number.to_string())
    .into();
    fields.extend([score.device_bytes_per_day(), score.drive_writes_per_day_milli(size)].map(optional));
    fields.extend([score.refused_blocks, score.host_evictions, score.trace_us].map(|number| number.to_string()));
    for group in Group::ALL {
        fields.extend(BY_GROUP.map(|(_, field)| field(score.group(group)).to_string()));
    }
    fields
}

fn optional(number: Option<u64>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}

/// A field that may hold anything. What a spreadsheet would take for a formula is not disarmed: a policy's name is what it is.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}
