//! What was measured, as a table for a person and as one object for a program.

use serde_json::{Value, json};

use super::{super::text::shown, BATCH, Measured, Outcome, TURNS, load::WANT};
use crate::{
    bench::median,
    figures::{columns, grouped, human_bytes, short_time},
};

impl Outcome {
    /// All figures: medians over the turns, times over all calls that asked for victims.
    pub fn json(&self) -> Value {
        json!({
            "records": self.options.records,
            "seconds": self.options.time.as_secs_f64(),
            "turns": TURNS,
            "batch_events": BATCH,
            "want": WANT,
            "policies": self.contenders.iter().map(|measured| self.measured_json(measured)).collect::<Vec<_>>(),
        })
    }

    fn measured_json(&self, measured: &Measured) -> Value {
        let Measured { origin, name, version, decisions, unnamed, late, memory_bytes, failure, .. } = measured;
        let [p50, p99, max] =
            [decisions.within(0.5), decisions.within(0.99), decisions.longest()].map(|time| time.as_secs_f64() * 1e6);
        json!({
            "origin": origin,
            "name": name,
            "version": version,
            "native": memory_bytes.is_none(),
            "events_per_second": measured.rate(),
            "ratio_to_native_lru": self.ratio(measured),
            "decision_us": measured.rate().map(|_| json!({ "p50": p50, "p99": p99, "max": max })),
            "victims_not_named": unnamed,
            "calls_over_deadline": late,
            "memory_bytes": memory_bytes,
            "failure": failure,
        })
    }

    /// The table.
    pub fn table(&self) -> String {
        let mut lines = vec![
            format!(
                "{} records in paths; calls with {BATCH} events, every second one asks for {WANT} victims",
                grouped(self.options.records.into())
            ),
            format!(
                "{TURNS} turns of {:.3} s for each, figures are medians",
                self.options.time.as_secs_f64() / f64::from(TURNS)
            ),
            String::new(),
        ];
        let head = ["policy", "million events/s", "to native lru", "a decision, p50", "p99", "memory"];
        let mut rows = vec![head.map(str::to_owned)];
        rows.extend(self.contenders.iter().map(|measured| self.row(measured)));
        lines.extend(columns(&rows, &[0]));
        for measured in &self.contenders {
            if let Some(failure) = &measured.failure {
                lines.push(format!("FAILED: {}: {}", shown(&measured.origin), shown(failure)));
            }
            lines.extend(measured.lateness());
            if measured.unnamed > 0 {
                lines.push(format!(
                    "{} named {} victims fewer than it was asked for: the host took as many out",
                    shown(&measured.origin),
                    grouped(measured.unnamed)
                ));
            }
        }
        lines.join("\n") + "\n"
    }

    fn row(&self, measured: &Measured) -> [String; 6] {
        let Measured { origin, decisions, memory_bytes, .. } = measured;
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let rate = measured.rate();
        [
            shown(origin),
            or_dash(rate.map(|rate| format!("{:.1}", rate / 1e6))),
            or_dash(self.ratio(measured).map(|ratio| format!("{ratio:.2}"))),
            or_dash(rate.map(|_| short_time(decisions.within(0.5)))),
            or_dash(rate.map(|_| short_time(decisions.within(0.99)))),
            or_dash(memory_bytes.map(|bytes| human_bytes(bytes as u64))),
        ]
    }

    /// The median over the turns of how many times as fast as the native `lru` it was.
    fn ratio(&self, measured: &Measured) -> Option<f64> {
        let native = &self.contenders.first()?.rates;
        let ratios = measured.rates.iter().zip(native).map(|(rate, native)| rate / native);
        measured.rate().map(|_| median(ratios))
    }
}

impl Measured {
    /// A warning if more than one call in a thousand took longer than a host allows.
    fn lateness(&self) -> Option<String> {
        let Self { origin, calls, late, latest, .. } = self;
        let (longest, allowed) = latest.filter(|_| late.saturating_mul(1000) > *calls)?;
        Some(format!(
            "{}: {} of {} calls took longer than a host allows, the longest {} with a limit of {}: it would have cut them; on a busy \
             machine this may be the machine",
            shown(origin),
            grouped(*late),
            grouped(*calls),
            short_time(longest),
            short_time(allowed)
        ))
    }

    /// Events a second; `None` if it failed.
    fn rate(&self) -> Option<f64> {
        (self.failure.is_none() && !self.rates.is_empty()).then(|| median(self.rates.iter().copied()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Measured;
    use crate::bench::Latencies;

    #[test]
    fn a_call_that_the_machine_delayed_does_not_accuse_a_policy() {
        let mut measured = Measured {
            origin: "mine.wasm".to_owned(),
            name: "mine".to_owned(),
            version: "0.1.0".to_owned(),
            rates: Vec::new(),
            decisions: Latencies::default(),
            unnamed: 0,
            calls: 2000,
            late: 2,
            latest: Some((Duration::from_millis(7), Duration::from_micros(2250))),
            memory_bytes: None,
            failure: None,
        };
        assert_eq!(measured.lateness(), None);
        measured.late = 3;
        let warning = measured.lateness().unwrap();
        for says in ["mine.wasm: 3 of 2,000 calls", "7.00 ms", "limit of 2.25 ms", "may be the machine"] {
            assert!(warning.contains(says), "{warning}");
        }
    }
}
