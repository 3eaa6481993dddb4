//! A plan as a table for a person and as one object for a program.

use std::fmt::Write;

use reprise::{Cache, Explain, Group, Plan, Planner, Prices, Reach};
use serde_json::{Value, json};

use super::{Alternative, alternatives};
use crate::figures::{columns, decimal, grouped, human_bytes};

/// Where the prompt comes from.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// A request of a trace, after those before it.
    Request {
        /// From 1.
        number: u64,
        /// Name of the trace.
        trace: &'a str,
    },
    /// Tokens against a store.
    Tokens {
        /// The file they are in.
        file: &'a str,
        /// The directory of the store.
        store: &'a str,
    },
}

/// Everything a report is made from.
pub struct Report<'a> {
    /// Where the prompt comes from.
    pub source: Source<'a>,
    /// The cache that planned, as it was then.
    pub cache: &'a Cache,
    /// The plan.
    pub plan: &'a Plan,
}

impl Report<'_> {
    /// The plan, what else could have been planned, and why the plan is not longer.
    pub fn json(&self) -> Value {
        let Self { plan, cache, .. } = self;
        let (config, explanation) = (cache.config(), plan.explain());
        json!({
            "source": match self.source {
                Source::Request { number, trace } => json!({ "request": number, "trace": trace }),
                Source::Tokens { file, store } => json!({ "tokens": file, "store": store }),
            },
            "model": config.model.name(),
            "block_tokens": config.block_tokens,
            "planner": config.planner,
            "prices": config.prices,
            "prompt_tokens": plan.prompt_tokens,
            "may_adopt_tokens": explanation.may_adopt_tokens,
            "matched_tokens": plan.matched_tokens,
            "adopted_tokens": plan.adopted_tokens,
            "replayed_tokens": plan.replayed_tokens,
            "computed_tokens": plan.computed_tokens,
            "loads_checkpoint": plan.loads_checkpoint,
            "drafts": plan.drafts,
            "reason": explanation.reason,
            "explanation": explanation.to_string(),
            "reaches": self.reaches().map(|(group, reach)| (group.name().to_owned(), json!(reach)))
                .collect::<serde_json::Map<_, _>>(),
            "alternatives": self.alternatives().iter().map(|Alternative { plan, cost, taken }| json!({
                "taken": taken,
                "adopted_tokens": plan.adopted_tokens,
                "replayed_tokens": plan.replayed_tokens,
                "computed_tokens": plan.computed_tokens,
                "load_bytes": cost.load_bytes,
                "load_ns": cost.load_ns,
                "prefill_ns": cost.prefill_ns,
                "total_ns": cost.total_ns(),
            })).collect::<Vec<_>>(),
            "captures": plan.captures,
        })
    }

    /// The table.
    pub fn table(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        self.write_head(out)?;
        self.write_alternatives(out)?;
        self.write_reaches(out)?;
        let captures: Vec<String> = self.plan.captures.iter().map(|&tokens| grouped(tokens.into())).collect();
        match captures.as_slice() {
            [] => writeln!(out, "captures  none")?,
            _ => writeln!(out, "captures  at {}", captures.join("; "))?,
        }
        if !self.plan.drafts {
            writeln!(out, "drafts    off until their windows have filled anew: the model has no draft group")?;
        }
        let Prices { load_bytes_per_second, load_record_ns, token_ps, context_ps } = self.cache.config().prices;
        writeln!(
            out,
            "prices    load {:.2} GiB/s, {} µs a record; prefill {} µs a token and {} ns per 1,024 before it",
            load_bytes_per_second as f64 / f64::from(1 << 30),
            decimal(load_record_ns as f64 / 1e3),
            decimal(token_ps as f64 / 1e6),
            decimal(context_ps as f64 / 1e3),
        )
    }

    fn write_head(&self, out: &mut String) -> std::fmt::Result {
        let (config, records) = (self.cache.config(), self.cache.stats().resident_records);
        match self.source {
            Source::Request { number, trace } => write!(out, "request {} of {trace}", grouped(number))?,
            Source::Tokens { file, .. } => write!(out, "{file}")?,
        }
        let (tokens, block_tokens) = (grouped(self.plan.prompt_tokens.into()), config.block_tokens);
        writeln!(out, ": {tokens} tokens; {}, blocks of {block_tokens} tokens", config.model.name())?;
        let blocks = grouped(records[Group::History as usize]);
        let kept = match self.cache.shape().window {
            None => format!("{blocks} blocks"),
            Some(_) => format!("{blocks} blocks and {} checkpoints", grouped(records[Group::Window as usize])),
        };
        match self.source {
            Source::Request { number, .. } => {
                writeln!(out, "after {} requests on paper, {kept} are kept\n", grouped(number - 1))
            }
            Source::Tokens { store, .. } => writeln!(out, "the store in {store} has {kept}\n"),
        }
    }

    fn write_alternatives(&self, out: &mut String) -> std::fmt::Result {
        let header = ["", "adopted", "replayed", "computed", "loaded", "load ms", "prefill ms", "total ms"];
        let mut rows = vec![header.map(str::to_owned)];
        rows.extend(self.alternatives().iter().map(|alternative| self.row(alternative)));
        columns(&rows, &[0]).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        let least = match self.cache.config().planner {
            Planner::MinTime => "the least time (min-time)",
            Planner::MinCompute => "the fewest computed tokens (min-compute)",
        };
        writeln!(out, "* is taken: {least}; among equals, what adopts the fewest\n")
    }

    fn row(&self, Alternative { plan, cost, taken }: &Alternative) -> [String; 8] {
        let name = match () {
            () if plan.adopted_tokens == 0 => "plain prefill",
            () if plan.replayed_tokens > 0 => "blocks and a replay",
            () if self.cache.shape().window.is_some() => "blocks and a checkpoint",
            () => "blocks",
        };
        [
            format!("{} {name}", if *taken { '*' } else { ' ' }),
            grouped(plan.adopted_tokens.into()),
            grouped(plan.replayed_tokens.into()),
            grouped(plan.computed_tokens.into()),
            human_bytes(cost.load_bytes),
            milliseconds(cost.load_ns),
            milliseconds(cost.prefill_ns),
            milliseconds(cost.total_ns()),
        ]
    }

    fn write_reaches(&self, out: &mut String) -> std::fmt::Result {
        let explanation = self.plan.explain();
        let [adopted, may_adopt] =
            [explanation.plan.adopted_tokens, explanation.may_adopt_tokens].map(|tokens| grouped(tokens.into()));
        writeln!(out, "adopts {adopted} of {may_adopt} tokens: {}", explanation.reason)?;
        for (group, Reach { tokens, why }) in self.reaches() {
            let end = grouped(tokens.into());
            let reached = match why {
                Explain::Complete => format!("reaches {end} tokens"),
                Explain::NoCheckpoint if tokens == 0 => "has no checkpoint there".to_owned(),
                why => format!("reaches {end} tokens: {why}"),
            };
            writeln!(out, "{:<9} {reached}", group.name())?;
        }
        Ok(())
    }

    fn reaches(&self) -> impl Iterator<Item = (Group, Reach)> {
        let explanation = self.plan.explain();
        let reaches = [Some(explanation.history), explanation.window, explanation.draft];
        Group::ALL.into_iter().zip(reaches).filter_map(|(group, reach)| Some((group, reach?)))
    }

    fn alternatives(&self) -> Vec<Alternative> {
        alternatives(self.plan, self.cache.shape(), &self.cache.config().prices)
    }
}

fn milliseconds(ns: u64) -> String {
    format!("{:.1}", ns as f64 / 1e6)
}
