//! What came of a check, for a person and for a program.

use reprise::{
    PolicyKind,
    wasm::{Calls, Report},
};
use serde_json::{Value, json};

use super::{
    super::{
        inspect::{decides, kind_name},
        text::{sentence, shown},
    },
    Outcome,
};
use crate::figures::{grouped, human_bytes, short_time};

impl Outcome {
    /// One object. What could not be measured is null.
    pub fn json(&self) -> Value {
        let report = self.report.as_ref().ok();
        let description = report.map(|report| &report.description);
        let micros = |time: std::time::Duration| time.as_secs_f64() * 1e6;
        json!({
            "origin": self.origin,
            "profile": self.profile.name(),
            "passed": self.passed(),
            "refused": self.report.as_ref().err(),
            "policy": description.map(|policy| {
                json!({ "name": policy.name, "version": policy.version, "kind": kind_name(policy.kind) })
            }),
            "checks": report.map(|report| {
                let checks = report.checks.iter();
                checks.map(|check| json!({ "name": check.name, "failure": check.failure })).collect::<Vec<_>>()
            }),
            "events": self.events,
            "calls": report.and_then(|report| report.calls).map(|calls| json!({
                "calls": calls.calls,
                "items": calls.items,
                "median_us": micros(calls.median),
                "p99_us": micros(calls.p99),
                "fuel_per_item": calls.fuel_per_item,
            })),
            "memory_bytes": report.map(|report| report.memory_bytes),
        })
    }

    /// A line for each check, and what calls cost.
    pub fn table(&self) -> String {
        let lines = match &self.report {
            Ok(report) => self.lines(report),
            Err(reason) => vec![format!("FAIL  it loads: {}", sentence(reason))],
        };
        lines.join("\n") + "\n"
    }

    fn lines(&self, report: &Report) -> Vec<String> {
        let description = &report.description;
        let (name, version) = (shown(&description.name), shown(&description.version));
        let mut lines = vec![
            format!("{name} {version}: {}, under the profile {}", decides(description), self.profile),
            String::new(),
        ];
        lines.extend(report.checks.iter().map(|check| match &check.failure {
            None => format!("ok    {}", check.name),
            Some(failure) => format!("FAIL  {}: {}", check.name, sentence(failure)),
        }));
        lines.push(String::new());
        if let Some(calls) = report.calls {
            lines.extend(cost(calls, description.kind));
        }
        lines.push(format!("memory       {} at most", human_bytes(report.memory_bytes as u64)));
        lines
    }
}

fn cost(calls: Calls, kind: PolicyKind) -> Vec<String> {
    let (items, item) = match kind {
        PolicyKind::Cache => (format!(", {} events", grouped(calls.items)), "event"),
        PolicyKind::Checkpoint => (String::new(), "span"),
    };
    let mut lines = vec![
        format!("calls        {}{items}", grouped(calls.calls)),
        format!("a call       {} median, {} 99th percentile", short_time(calls.median), short_time(calls.p99)),
    ];
    if let Some(fuel) = calls.fuel_per_item {
        lines.push(format!("fuel         {} for each {item}", grouped(fuel)));
    }
    lines
}
