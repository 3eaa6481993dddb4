//! All that a comparison found, put together for tables, files and the report.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    Advice, Cell, Contender, Figures, Grid, Mode, SessionFigures, bound,
    split::{self, Division},
    untyped,
};
use crate::figures::{grouped, human_bytes};

/// The results of a comparison.
#[derive(Clone, Debug)]
pub struct Results {
    /// Whether there were no types: budgets are blocks then.
    pub untyped: bool,
    /// Model, block and the like.
    pub options: Value,
    /// One for each trace, in the order given.
    pub traces: Vec<TraceResults>,
}

/// The results on one trace.
#[derive(Clone, Debug)]
pub struct TraceResults {
    /// What it is called.
    pub name: String,
    /// Its format.
    pub format: String,
    /// Requests replayed.
    pub requests: usize,
    /// Tokens of their prompts.
    pub prompt_tokens: u64,
    /// Microseconds from the first arrival to the last.
    pub trace_us: u64,
    /// How many sessions it has, and whether it says so itself.
    pub sessions: (usize, bool),
    /// Sessions of more than one request.
    pub long_sessions: usize,
    /// Prompt tokens and requests of the largest sessions.
    pub largest_sessions: Vec<(u64, u32)>,
    /// Budgets, ascending.
    pub sizes: Vec<u64>,
    /// Most tokens that any policy can save, by budget.
    pub bounds: Vec<Option<u64>>,
    /// The policies, as they are asked for.
    pub policies: Vec<String>,
    /// The policy that knows what is to come, if there is one: no other is held against it as an equal.
    pub hindsight: Option<usize>,
    /// By policy, then by budget.
    pub cells: Vec<CellResults>,
}

/// One cell.
#[derive(Clone, Debug)]
pub struct CellResults {
    /// Index of the policy.
    pub policy: usize,
    /// Index of the budget.
    pub size: usize,
    /// How the split was found.
    pub division: Division,
    /// Thousandths of the budget for windows, and both quotas in bytes; `None` without types.
    pub split: Option<Split>,
    /// Replays that it took.
    pub replays: usize,
    /// The figures, or how the policy failed.
    pub verdict: Result<Figures, String>,
}

/// A divided budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// Thousandths for windows.
    pub window_permille: u32,
    /// Quota of the history in bytes.
    pub history_bytes: u64,
    /// Quota of the windows in bytes.
    pub window_bytes: u64,
}

impl Results {
    /// Puts the cells of a grid together.
    pub fn new(grid: &Grid, cells: Vec<Cell>, options: Value) -> Self {
        let policies: Vec<String> = grid.contenders.iter().map(Contender::to_string).collect();
        let mut by_subject: BTreeMap<usize, Vec<Cell>> = BTreeMap::new();
        for cell in cells {
            by_subject.entry(cell.subject).or_default().push(cell);
        }
        let untyped = matches!(grid.mode, Mode::Untyped(_));
        let mut traces = Vec::new();
        for (index, subject) in grid.subjects.iter().enumerate() {
            let sizes = grid.sizes[index].clone();
            let cells = by_subject.remove(&index).unwrap_or_default();
            let cells: Vec<CellResults> = cells.into_iter().map(|cell| cell_results(grid, &sizes, cell)).collect();
            let hindsight = policies.iter().position(|policy| untyped && policy == untyped::HINDSIGHT);
            let bounds = bound::tokens(subject, &grid.mode, &sizes);
            traces.push(TraceResults {
                name: subject.label.clone(),
                format: subject.trace.format.to_string(),
                requests: subject.order.len(),
                prompt_tokens: subject.prompt_tokens,
                trace_us: subject.trace_us,
                sessions: (subject.sessions.len(), subject.sessions.stated),
                long_sessions: subject.sessions.of_several_requests(),
                largest_sessions: subject.sessions.largest(),
                sizes,
                bounds,
                policies: policies.clone(),
                hindsight,
                cells,
            });
        }
        Self { untyped, options, traces }
    }

    /// What results.json holds.
    pub fn json(&self) -> Value {
        let traces: Vec<Value> = self.traces.iter().map(|trace| trace.json(self)).collect();
        json!({ "reprise": env!("CARGO_PKG_VERSION"), "untyped": self.untyped, "options": self.options, "traces": traces })
    }

    /// A budget as people read it.
    pub fn size(&self, size: u64) -> String {
        if self.untyped { grouped(size) } else { budget(size) }
    }

    /// What was written, as people read it.
    pub fn amount(&self, written: u64) -> String {
        if self.untyped { format!("{} blocks", grouped(written)) } else { human_bytes(written) }
    }

    /// What is gained, in a word: tokens are saved by a cache and found in a pool.
    pub fn gain(&self) -> &'static str {
        if self.untyped { "found" } else { "saved" }
    }
}

/// A budget without digits that say nothing: 16 GiB, 1.5 GiB, 512 MiB.
fn budget(bytes: u64) -> String {
    let (unit, name) = match bytes {
        0x100_0000_0000.. => (1_u64 << 40, "TiB"),
        0x4000_0000.. => (1 << 30, "GiB"),
        0x10_0000.. => (1 << 20, "MiB"),
        _ => return human_bytes(bytes),
    };
    let number = format!("{:.3}", bytes as f64 / unit as f64);
    format!("{} {name}", number.trim_end_matches('0').trim_end_matches('.'))
}

fn cell_results(grid: &Grid, sizes: &[u64], cell: Cell) -> CellResults {
    let split = match &grid.mode {
        Mode::Untyped(_) => None,
        Mode::Typed(setting) => {
            let learned = match &cell.verdict {
                Ok(Figures::Typed { learned_permille, .. }) => *learned_permille,
                _ => None,
            };
            let window_permille = learned.unwrap_or(cell.share);
            let (history_bytes, window_bytes) = split::quotas(cell.size, window_permille, setting.shape());
            Some(Split { window_permille, history_bytes, window_bytes })
        }
    };
    let size = sizes.iter().position(|&size| size == cell.size).unwrap_or_default();
    let Cell { contender: policy, division, replays, verdict, .. } = cell;
    CellResults { policy, size, division, split, replays, verdict }
}

impl TraceResults {
    /// What is drawn above the policies that could serve: the bound where there is one, else what hindsight finds.
    pub fn ceiling(&self) -> Vec<Option<u64>> {
        if self.bounds.iter().any(Option::is_some) {
            return self.bounds.clone();
        }
        let gained = |size| Some(self.figures(self.hindsight?, size)?.gained_tokens());
        (0..self.sizes.len()).map(gained).collect()
    }

    /// What the ceiling is called; `None` if there is none.
    pub fn ceiling_name(&self) -> Option<&'static str> {
        match (self.bounds.iter().any(Option::is_some), self.hindsight) {
            (true, _) => Some("the bound for any policy"),
            (false, Some(_)) => Some("optimal (hindsight)"),
            (false, None) => None,
        }
    }

    /// The cell of a policy at a budget.
    pub fn cell(&self, policy: usize, size: usize) -> Option<&CellResults> {
        self.cells.iter().find(|cell| cell.policy == policy && cell.size == size)
    }

    /// Its figures, if the policy did not fail.
    pub fn figures(&self, policy: usize, size: usize) -> Option<&Figures> {
        self.cell(policy, size)?.verdict.as_ref().ok()
    }

    /// Tokens that were measured: all, or those of the half that is measured without types.
    pub fn whole_tokens(&self) -> u64 {
        self.cells
            .iter()
            .find_map(|cell| Some(cell.verdict.as_ref().ok()?.whole_tokens()))
            .unwrap_or(self.prompt_tokens)
    }

    /// Indices of the policies that could serve.
    pub fn online(&self) -> impl Iterator<Item = usize> + Clone + '_ {
        (0..self.policies.len()).filter(|&policy| Some(policy) != self.hindsight)
    }

    /// Most that a policy that could serve gains at a budget.
    pub fn best_gain(&self, size: usize) -> Option<u64> {
        self.online().filter_map(|policy| Some(self.figures(policy, size)?.gained_tokens())).max()
    }

    /// The budget at which the policies differ most, the smaller among equals: where the choice matters.
    pub fn contested(&self) -> usize {
        let spread = |&size: &usize| {
            let gains: Vec<u64> =
                self.online().filter_map(|policy| Some(self.figures(policy, size)?.gained_tokens())).collect();
            let (most, least) = (gains.iter().max().copied(), gains.iter().min().copied());
            most.zip(least).map_or(0, |(most, least)| most - least)
        };
        (0..self.sizes.len()).max_by_key(|size| (spread(size), std::cmp::Reverse(*size))).unwrap_or(0)
    }

    fn json(&self, results: &Results) -> Value {
        let cells: Vec<Value> = self.cells.iter().map(|cell| self.cell_json(cell)).collect();
        json!({
            "trace": self.name,
            "format": self.format,
            "requests": self.requests,
            "prompt_tokens": self.prompt_tokens,
            "measured_tokens": self.whole_tokens(),
            "trace_us": self.trace_us,
            "sessions": self.sessions.0,
            "sessions_stated": self.sessions.1,
            "sessions_of_several_requests": self.long_sessions,
            "largest_sessions": self.largest_sessions.iter().map(|(tokens, requests)| json!({
                "prompt_tokens": tokens, "requests": requests,
            })).collect::<Vec<_>>(),
            "budgets": self.sizes,
            "bounds": self.bounds,
            "advice": Advice::new(results, self).sentences(),
            "cells": cells,
        })
    }

    fn cell_json(&self, cell: &CellResults) -> Value {
        let size = self.sizes[cell.size];
        let mut object = json!({
            "policy": self.policies[cell.policy],
            "budget": size,
            "replays": cell.replays,
        });
        if let Some(split) = cell.split {
            object["division"] = json!(match cell.division {
                Division::Undivided => "undivided",
                Division::Given(_) => "given",
                Division::Searched => "searched",
                Division::Learned => "learned",
            });
            object["window_permille"] = json!(split.window_permille);
            object["history_bytes"] = json!(split.history_bytes);
            object["window_bytes"] = json!(split.window_bytes);
        }
        match &cell.verdict {
            Err(reason) => object["failed"] = json!(reason),
            Ok(Figures::Untyped(figures)) => {
                object["figures"] = json!(figures);
            }
            Ok(Figures::Typed { score, sessions, .. }) => {
                let SessionFigures { largest_saved_tokens, saved_ppm } = sessions;
                object["figures"] = json!(score);
                object["sessions"] = json!({ "largest_saved_tokens": largest_saved_tokens, "saved_ppm": saved_ppm });
                object["derived"] = json!({
                    "saved_prefill_ns": score.saved_prefill_ns(),
                    "written_bytes": score.written_bytes(),
                    "loaded_bytes": score.loaded_bytes(),
                    "device_bytes": score.device_bytes(),
                    "device_bytes_per_day": score.device_bytes_per_day(),
                    "drive_writes_per_day_milli": score.drive_writes_per_day_milli(size),
                    "evicted_records": score.evicted_records(),
                });
            }
        }
        object
    }
}

/// A share with two digits behind the point.
pub fn points(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_not_written_with_digits_that_say_nothing() {
        for (bytes, text) in [
            (16 << 30, "16 GiB"),
            (3 << 29, "1.5 GiB"),
            (512 << 20, "512 MiB"),
            (1 << 40, "1 TiB"),
            (100 << 30, "100 GiB"),
            (700, "700 B"),
        ] {
            assert_eq!(budget(bytes), text);
        }
    }
}
