//! Advice in words, with the figures behind it.

use std::{cmp::Ordering, fmt::Write};

use reprise::Prices;
use serde_json::{Value, json};

use super::{Advice, Question, Trial};
use crate::figures::{columns, grouped, human_bytes, percent, seconds};

/// Everything a report is made from.
pub struct Report<'a> {
    /// What was asked.
    pub question: &'a Question<'a>,
    /// What came of it.
    pub advice: &'a Advice,
    /// Bytes per second that the disk reads.
    pub disk_bytes_per_second: u64,
    /// Bytes per second to the accelerators, if that was said.
    pub pcie_bytes_per_second: Option<u64>,
    /// What was left out of the trace, if anything, for people.
    pub left_out: Option<String>,
    /// The command that shows the same figures again.
    pub replay: &'a str,
    /// Where the configuration was written.
    pub out: Option<&'a str>,
}

impl Report<'_> {
    /// One object: the choice, what it is expected to do, the runner-up, all that was tried.
    pub fn json(&self) -> Value {
        let Self { question, advice, .. } = self;
        let trial = |trial: &Trial| {
            json!({
                "eviction": trial.pair.eviction.to_string(),
                "checkpoints": trial.pair.checkpoints.to_string(),
                "period_tokens": trial.pair.period(),
                "window_share": f64::from(trial.window_share) / 1000.0,
                "history_bytes": trial.history_bytes,
                "window_bytes": trial.window_bytes,
                "expected": trial.integers,
                "prefill_seconds": in_seconds(trial.score.prefill_ns),
                "prefill_seconds_saved": in_seconds(trial.score.saved_prefill_ns()),
                "load_seconds": in_seconds(trial.score.load_ns),
                "time_to_first_token_saved": self.time_saved(trial),
                "device_bytes": trial.score.device_bytes(),
                "device_bytes_per_day": trial.score.device_bytes_per_day(),
                "writes_too_much": trial.writes_too_much,
            })
        };
        let best = advice.best();
        let runner_up = advice.finalists.get(1).map(|second| {
            let mut object = trial(second);
            // One that writes more than is allowed may well take less.
            object["loses_seconds"] = json!(in_seconds(second.time_ns()) - in_seconds(best.time_ns()));
            object
        });
        json!({
            "trace": question.trace.name,
            "limit": question.limit,
            "session_gap_us": question.session_gap_us,
            "model": question.config.model.name(),
            "block_tokens": question.config.block_tokens,
            "budget_bytes": question.budget_bytes,
            "disk_bytes_per_second": self.disk_bytes_per_second,
            "pcie_bytes_per_second": self.pcie_bytes_per_second,
            "prices": question.config.prices,
            "cold_prefill_seconds": in_seconds(best.score.cold_prefill_ns),
            "choice": trial(best),
            "runner_up": runner_up,
            "lighter": advice.lighter().map(trial),
            "most_bytes_per_day": question.most_bytes_per_day,
            "bound_saved_tokens": advice.bound_tokens,
            "replays": advice.replays,
            "tried": advice.field.iter().map(trial).collect::<Vec<_>>(),
            "out": self.out,
        })
    }

    /// A paragraph, and a table of the best that was tried.
    pub fn text(&self) -> String {
        let mut paragraph = self.choice();
        paragraph += &self.expected();
        paragraph += &self.runner_up();
        paragraph += &self.lighter();
        let mut text = wrapped(&paragraph, 116);
        // Writing to a string does not fail.
        let _ = writeln!(text, "\n{} replays; the best split of each of the best pairs tried:\n", self.advice.replays);
        for line in self.table() {
            let _ = writeln!(text, "{line}");
        }
        if let Some(out) = self.out {
            let _ = writeln!(text, "\nwritten to {out}; to see the same figures:\n  {}", self.replay);
        }
        text
    }

    fn choice(&self) -> String {
        let Self { question, advice, .. } = self;
        let best = advice.best();
        let budget = human_bytes(question.budget_bytes);
        if best.integers.saved_tokens == 0 {
            return format!(
                "No cache of {budget} saves anything on {} at these rates: nothing fits that is asked for again, or all of it takes longer to \
                 load than to compute. ",
                question.trace.name
            );
        }
        let split = match best.window_bytes {
            0 => format!("give all of the {budget} to compressed entries"),
            window => format!(
                "give {} of the {budget} to compressed entries and {} ({:.1} %) to window checkpoints",
                human_bytes(best.history_bytes),
                human_bytes(window),
                f64::from(best.window_share) / 10.0
            ),
        };
        let period = best
            .pair
            .period()
            .map_or(String::new(), |period| format!(", which keeps windows every {} tokens", grouped(period)));
        let (eviction, checkpoints) = (&best.pair.eviction, &best.pair.checkpoints);
        format!(
            "Take the eviction policy `{eviction}` and the checkpoint policy `{checkpoints}`{period}, and {split}. "
        )
    }

    fn expected(&self) -> String {
        let Self { question, advice, .. } = self;
        let (best, prices) = (advice.best(), &question.config.prices);
        let (integers, score) = (&best.integers, &best.score);
        let mut text = format!(
            "On {} ({} requests{}) this saves {} of {} prompt tokens ({}), and {} of {} of prefill; loads take {}, so that the time to first \
             token, without queues, falls by {:.1} %, from {} to {} in the mean. ",
            question.trace.name,
            grouped(integers.requests),
            self.left_out.as_deref().unwrap_or_default(),
            grouped(integers.saved_tokens),
            grouped(integers.prompt_tokens),
            percent(integers.saved_tokens, integers.prompt_tokens),
            seconds(in_seconds(score.saved_prefill_ns())),
            seconds(in_seconds(score.cold_prefill_ns)),
            seconds(in_seconds(score.load_ns)),
            100.0 * self.time_saved(best),
            seconds(in_seconds(score.cold_prefill_ns) / integers.requests.max(1) as f64),
            seconds(in_seconds(best.time_ns()) / integers.requests.max(1) as f64),
        );
        // Writing to a string does not fail.
        let _ = match score.device_bytes_per_day() {
            Some(bytes) => write!(
                text,
                "It writes {} a day at the pace of the trace, which is {:.1} times the budget{}. ",
                human_bytes(bytes),
                bytes as f64 / question.budget_bytes as f64,
                if best.writes_too_much { " and more than is allowed, as does all that was tried" } else { "" }
            ),
            None => write!(
                text,
                "It writes {} in all; the trace says nothing of a pace. ",
                human_bytes(score.device_bytes())
            ),
        };
        let _ = write!(
            text,
            "No policy can save more than {} tokens with this budget; this one saves {} of that. ",
            grouped(advice.bound_tokens),
            percent(integers.saved_tokens, advice.bound_tokens)
        );
        text + &self.rates(prices)
    }

    fn rates(&self, prices: &Prices) -> String {
        let rate = |bytes: u64| format!("{}/s", human_bytes(bytes));
        let bottleneck = match self.pcie_bytes_per_second {
            Some(pcie) if pcie < self.disk_bytes_per_second => "PCIe, which is slower than the disk",
            Some(_) => "the disk, which is slower than PCIe",
            None => "the disk",
        };
        let tokens_per_second = 1_000_000_000_000 / prices.token_ps.max(1);
        format!(
            "Loads go at {} ({bottleneck}), prefill at {} tokens/s where a context begins. ",
            rate(prices.load_bytes_per_second),
            grouped(tokens_per_second)
        )
    }

    fn runner_up(&self) -> String {
        let best = self.advice.best();
        let Some(second) = self.advice.finalists.get(1) else { return String::new() };
        let loss_ns = second.time_ns().abs_diff(best.time_ns());
        let share = 100.0 * loss_ns as f64 / best.time_ns().max(1) as f64;
        let loss = seconds(in_seconds(loss_ns));
        let lost = match second.time_ns().cmp(&best.time_ns()) {
            Ordering::Less => format!("takes {loss} less ({share:.2} %)"),
            Ordering::Equal => "takes as long".to_owned(),
            Ordering::Greater => format!("takes {loss} longer ({share:.2} %)"),
        };
        format!(
            "Next comes `{}` with `{}` and {:.1} % for windows: it {lost}, saves {} tokens and writes {}{}. ",
            second.pair.eviction,
            second.pair.checkpoints,
            f64::from(second.window_share) / 10.0,
            grouped(second.integers.saved_tokens),
            human_bytes(second.score.device_bytes()),
            if second.writes_too_much { ", more than is allowed" } else { "" },
        )
    }

    fn lighter(&self) -> String {
        let Some(lighter) = self.advice.lighter() else { return String::new() };
        let best = self.advice.best();
        let longer = lighter.time_ns().saturating_sub(best.time_ns()) as f64 / best.time_ns().max(1) as f64;
        format!(
            "If what the device may write counts: `{}` with `{}` and {:.1} % for windows takes {:.2} % longer and writes {} instead of {}.",
            lighter.pair.eviction,
            lighter.pair.checkpoints,
            f64::from(lighter.window_share) / 10.0,
            100.0 * longer,
            human_bytes(lighter.score.device_bytes()),
            human_bytes(best.score.device_bytes()),
        )
    }

    fn table(&self) -> Vec<String> {
        let head =
            ["eviction", "checkpoints", "windows", "saved tokens", "prefill", "loads", "written"].map(str::to_owned);
        let refined = self.advice.finalists.iter();
        let others =
            self.advice.field.iter().filter(|trial| {
                self.advice.finalists.iter().all(|finalist| finalist.pair.names() != trial.pair.names())
            });
        let rows = refined.chain(others).take(8).map(|trial| {
            [
                trial.pair.eviction.to_string(),
                trial.pair.checkpoints.to_string(),
                format!("{:.1} %", f64::from(trial.window_share) / 10.0),
                grouped(trial.integers.saved_tokens),
                seconds(in_seconds(trial.score.prefill_ns)),
                seconds(in_seconds(trial.score.load_ns)),
                human_bytes(trial.score.device_bytes()),
            ]
        });
        let rows: Vec<_> = std::iter::once(head).chain(rows).collect();
        columns(&rows, &[0, 1])
    }

    /// Share of the modelled time until prompts are in place that the cache spares; below 0 if loads take longer than what they spare.
    fn time_saved(&self, trial: &Trial) -> f64 {
        let cold_ns = trial.score.cold_prefill_ns;
        if cold_ns == 0 { 0.0 } else { 1.0 - trial.time_ns() as f64 / cold_ns as f64 }
    }
}

fn in_seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

/// Lines of at most `width` characters, broken between words.
fn wrapped(text: &str, width: usize) -> String {
    let mut lines = String::new();
    let mut used = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            lines.push('\n');
            used = 0;
        }
        if used > 0 {
            lines.push(' ');
            used += 1;
        }
        lines += word;
        used += length;
    }
    lines.push('\n');
    lines
}
