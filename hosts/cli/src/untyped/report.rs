//! What a replay without types says in the end: a table for a person, one object for a program.

use std::{fmt::Write, time::Duration};

use indicatif::HumanCount;
use serde_json::{Value, json};

use super::{Mode, Options, Outcome};
use crate::trace::Trace;

/// Everything a report is made from.
pub struct Report<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// What was asked for.
    pub options: &'a Options,
    /// What the replay gave.
    pub outcome: &'a Outcome,
    /// Time to read and decode the trace.
    pub decoding: Duration,
}

impl Report<'_> {
    /// The integers of the result, the options used, and what was measured. `unfilled_hit_tokens` is there if the pool was
    /// underfilled.
    pub fn json(&self) -> Value {
        let Self { trace, options, outcome, decoding } = self;
        let mut object = json!({
            "hit_tokens": outcome.hit_tokens(),
            "measured_tokens": outcome.measured_tokens,
            "mode": outcome.mode,
            "requests": outcome.requests,
            "measured_requests": outcome.measured_requests,
            "distinct_blocks": outcome.distinct_blocks,
            "block_decisions": outcome.blocks,
            "skipped_lines": trace.skipped,
            "decoding_seconds": decoding.as_secs_f64(),
            "replay_seconds": outcome.elapsed.as_secs_f64(),
            "options": {
                "trace": trace.name,
                "format": trace.format.to_string(),
                "trace_block_tokens": trace.block_tokens,
                "limit": options.limit,
                "untyped": true,
                "capacity_blocks": options.capacity_blocks,
                "eviction": options.eviction.name(),
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
        let Self { trace, options, outcome, decoding } = self;
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
            "without types, eviction {}; room for {} blocks; the last {} requests are measured\n",
            options.eviction,
            HumanCount(options.capacity_blocks.into()),
            HumanCount(outcome.measured_requests as u64)
        )?;
        // A measured request has a block, and a block counts a token at least.
        let share = 100.0 * outcome.found_tokens as f64 / outcome.measured_tokens as f64;
        // To a string first: `HumanCount` does not pad.
        let grouped = |tokens| HumanCount(tokens).to_string();
        writeln!(out, "{:<28}{:>16}", "prompt tokens measured", grouped(outcome.measured_tokens))?;
        writeln!(out, "{:<28}{:>16}{share:>10.2} %", "  found in the pool", grouped(outcome.found_tokens))?;
        if outcome.mode == Mode::Underfilled {
            writeln!(
                out,
                "\nThe pool was not full before the measured half: the figure tells of a cold start, not of the capacity, and\n\
                 kvcache-simulator gives 0 for it (underfilled_at_window). Take fewer blocks or a longer trace."
            )?;
        }
        writeln!(
            out,
            "\nreplayed in {:.2?}: {} block decisions; trace decoded in {decoding:.2?}",
            outcome.elapsed,
            HumanCount(outcome.blocks)
        )
    }
}
