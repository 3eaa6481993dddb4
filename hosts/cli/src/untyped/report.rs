//! What a replay without types says in the end: a table for a person, one object for a program.

use std::{fmt::Write, time::Duration};

use indicatif::HumanCount;
use serde_json::{Value, json};

use super::{Eviction, Mode, Options, Outcome, Rule};
use crate::trace::Trace;

/// Everything a report is made from.
pub struct Report<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// What was asked for.
    pub options: &'a Options,
    /// How many requests were asked for.
    pub limit: Option<usize>,
    /// What the replay gave.
    pub outcome: &'a Outcome,
    /// Time to read and decode the trace.
    pub decoding: Duration,
    /// Time to number its blocks.
    pub numbering: Duration,
}

impl Report<'_> {
    /// The integers of the result, the options used, and what was measured. `unfilled_hit_tokens` is there if the pool was
    /// underfilled.
    pub fn json(&self) -> Value {
        let Self { trace, options, limit, outcome, decoding, numbering } = self;
        let mut object = json!({
            "hit_tokens": outcome.hit_tokens(),
            "measured_tokens": outcome.measured_tokens,
            "mode": outcome.mode,
            "requests": outcome.requests,
            "measured_requests": outcome.measured_requests,
            "distinct_blocks": outcome.distinct_blocks,
            "block_decisions": outcome.blocks,
            "found_blocks": outcome.found_blocks,
            "written_blocks": outcome.written_blocks,
            "measured_written_blocks": outcome.measured_written_blocks,
            "policy_failure": outcome.failure,
            "skipped_lines": trace.skipped,
            "decoding_seconds": decoding.as_secs_f64(),
            "numbering_seconds": numbering.as_secs_f64(),
            "replay_seconds": outcome.elapsed.as_secs_f64(),
            "options": {
                "trace": trace.name,
                "format": trace.format.to_string(),
                "trace_block_tokens": trace.block_tokens,
                "limit": limit,
                "untyped": true,
                "capacity_blocks": options.capacity_blocks,
                "eviction": options.eviction.to_string(),
                "eviction_form": options.eviction.form(),
            },
        });
        if outcome.mode == Mode::Underfilled {
            object["unfilled_hit_tokens"] = outcome.found_tokens.into();
        }
        object
    }

    /// The table.
    pub fn table(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let Self { trace, options, outcome, decoding, numbering, .. } = self;
        writeln!(
            out,
            "{}: {} requests, {} tokens a trace block ({}), {} distinct blocks",
            trace.name,
            HumanCount(outcome.requests as u64),
            trace.block_tokens,
            trace.format,
            HumanCount(outcome.distinct_blocks.into())
        )?;
        writeln!(
            out,
            "without types, eviction {} ({}); room for {} blocks; the last {} requests are measured\n",
            options.eviction,
            options.eviction.form(),
            HumanCount(options.capacity_blocks.into()),
            HumanCount(outcome.measured_requests as u64)
        )?;
        // A measured request has a block, and a block counts a token at least.
        let share = 100.0 * outcome.found_tokens as f64 / outcome.measured_tokens as f64;
        // To a string first: `HumanCount` does not pad.
        let grouped = |tokens| HumanCount(tokens).to_string();
        writeln!(out, "{:<28}{:>16}", "prompt tokens measured", grouped(outcome.measured_tokens))?;
        writeln!(out, "{:<28}{:>16}{share:>10.2} %", "  found in the pool", grouped(outcome.found_tokens))?;
        let ratio = 100.0 * outcome.found_blocks as f64 / outcome.blocks as f64;
        writeln!(out, "{:<28}{:>16}", "blocks of all prompts", grouped(outcome.blocks))?;
        writeln!(out, "{:<28}{:>16}{ratio:>10.2} %", "  found", grouped(outcome.found_blocks))?;
        writeln!(out, "{:<28}{:>16}", "  written", grouped(outcome.written_blocks))?;
        if matches!(options.eviction, Eviction::Rule(Rule::FlatLru | Rule::FlatS3Fifo)) {
            writeln!(
                out,
                "\nA flat rule keeps single blocks: it finds some behind one that is missing, from where no prompt can go on."
            )?;
        }
        if outcome.mode == Mode::Underfilled {
            writeln!(
                out,
                "\nThe pool was not full before the measured half: the figure tells of a cold start, not of the capacity, and\n\
                 kvcache-simulator gives 0 for it (underfilled_at_window). Take fewer blocks or a longer trace."
            )?;
        }
        writeln!(
            out,
            "\nreplayed in {:.2?}: {} block decisions; trace decoded in {decoding:.2?}, its blocks numbered in {numbering:.2?}",
            outcome.elapsed,
            HumanCount(outcome.blocks)
        )
    }
}
