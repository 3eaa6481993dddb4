//! What a replay says in the end: a table for a person, one object for a program.

use std::{fmt::Write, time::Duration};

use reprise::{
    Cache, DivisionReport, Group, GroupCounters, Planner, PolicyChoice, PolicyStatus, Role, ShadowFigures,
    ShadowReport, Shadowing,
};
use serde_json::{Value, json};

use crate::{
    args,
    figures::{columns, grouped, human_bytes, percent, seconds},
    replay::Outcome,
    trace::Trace,
};

/// Tokens per second of the modelled time saved, unless the command line says otherwise.
const PREFILL_RATE: u32 = 10_000;

/// Everything a report is made from.
pub struct Report<'a> {
    /// The command line.
    pub arguments: &'a args::Replay,
    /// The trace.
    pub trace: &'a Trace,
    /// The cache, after the replay.
    pub cache: &'a Cache,
    /// What the replay gave.
    pub outcome: &'a Outcome,
    /// The candidates that ran beside.
    pub shadow: Option<&'a Shadowing>,
    /// Time to read and decode the trace.
    pub decoding: Duration,
    /// Whether the store is thrown away afterwards.
    pub temporary: bool,
}

impl Report<'_> {
    /// The integers of the result, the options used, and what was measured.
    pub fn json(&self) -> Value {
        let Self { outcome, cache, arguments, trace, .. } = self;
        let mut object = serde_json::to_value(&outcome.integers).expect("integers are plain data");
        let config = cache.config();
        let recovery = cache.recovery();
        let extra = json!({
            "options": {
                "trace": trace.name,
                "format": trace.format.to_string(),
                "trace_block_tokens": trace.block_tokens,
                "limit": arguments.limit,
                "session_gap": arguments.trace.session_gap,
                "model": config.model.name(),
                "block_tokens": config.block_tokens,
                "history_bytes": config.history_bytes,
                "window_bytes": config.window_bytes,
                "checkpoints": config.checkpoints.to_string(),
                "eviction": config.eviction.to_string(),
                "planner": config.planner,
                "replay": config.replay,
                "native": config.native_policies,
                "swaps": arguments.policies.swap.iter().map(|swap| json!({
                    "before": swap.before, "role": swap.role, "policy": swap.choice.to_string(),
                })).collect::<Vec<_>>(),
                "store": config.store,
                "dry_run": config.store.is_none(),
                "verify": config.store.is_some() && arguments.verify.unwrap_or(true),
            },
            "groups": Group::ALL.into_iter().filter_map(|group| {
                let shape = cache.shape().group(group)?;
                let counters = outcome.stats.counters.group(group);
                Some((group.name().to_owned(), json!({
                    "record_bytes": shape.record_bytes, "slot_bytes": shape.slot_bytes, "slots": shape.slots,
                    "counters": counters,
                })))
            }).collect::<serde_json::Map<_, _>>(),
            "explain": outcome.stats.counters.explained().map(|(reason, count)| (reason.name().to_owned(), json!(count)))
                .collect::<serde_json::Map<_, _>>(),
            "policies": outcome.stats.policies,
            "failed_swaps": outcome.failed_swaps,
            "shadow": outcome.shadow.as_ref().map(|shadow| json!({
                "report": shadow, "lead_ppm": shadow.lead_ppm(),
                "active_saved_tokens": shadow.active.saved_tokens(), "shadow_saved_tokens": shadow.shadow.saved_tokens(),
            })),
            "division": outcome.division,
            "captures_planned": outcome.stats.counters.captures_planned,
            "captures_skipped": outcome.stats.counters.captures_skipped,
            "refused_blocks": outcome.stats.counters.refused_blocks,
            "unsaved_blocks": outcome.stats.counters.unsaved_blocks,
            "native_evictions": outcome.stats.counters.native_evictions,
            "native_checkpoints": outcome.stats.counters.native_checkpoints,
            "skipped_lines": trace.skipped,
            "block_decisions": outcome.decisions,
            "decoding_seconds": self.decoding.as_secs_f64(),
            "replay_seconds": outcome.elapsed.as_secs_f64(),
            "block_decisions_per_second": per_second(outcome.decisions as f64, outcome.elapsed),
            "loading_seconds": outcome.io.loading.as_secs_f64(),
            "saving_seconds": outcome.io.saving.as_secs_f64(),
            "verified_bytes": outcome.verified_bytes,
            "prefill_rate": self.prefill_rate(),
            "modelled_seconds_saved": outcome.integers.saved_tokens as f64 / f64::from(self.prefill_rate()),
            "recovery": {
                "blocks": recovery.blocks, "checkpoints": recovery.checkpoints, "unreachable": recovery.unreachable,
                "dropped": recovery.dropped, "remarks": recovery.remarks, "io": recovery.io,
            },
            "store_refuses": outcome.stats.store_refuses,
            "store_usage": cache.usage().map(|usage| json!({
                "groups": usage.classes.iter().map(|class| (class.name.clone(), json!({
                    "quota_bytes": class.quota_bytes, "allocated_bytes": class.allocated_bytes,
                    "trailer_overhead_bytes": class.overhead_bytes,
                }))).collect::<serde_json::Map<_, _>>(),
                "table_bytes": usage.table_bytes, "catalogue_bytes": usage.catalogue_bytes,
            })),
        });
        if let (Value::Object(object), Value::Object(extra)) = (&mut object, extra) {
            object.extend(extra);
        }
        if config.planner == Planner::MinTime {
            object["options"]["prices"] = json!(config.prices);
        }
        object
    }

    fn prefill_rate(&self) -> u32 {
        let of_file = || {
            let picoseconds = self.cache.config().prices.token_ps.max(1);
            self.arguments
                .cache
                .config
                .is_some()
                .then(|| u32::try_from(1_000_000_000_000 / picoseconds).unwrap_or(u32::MAX))
        };
        self.arguments.prices.prefill_rate.or_else(of_file).unwrap_or(PREFILL_RATE)
    }

    /// The table.
    pub fn table(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let integers = &self.outcome.integers;
        self.write_head(out)?;
        let of_prompts = |tokens: u64| percent(tokens, integers.prompt_tokens);
        writeln!(out, "{:<28}{:>16}", "requests", grouped(integers.requests))?;
        writeln!(
            out,
            "{:<28}{:>16}{:>9}",
            "  that adopted something",
            grouped(integers.hits),
            percent(integers.hits, integers.requests)
        )?;
        for (label, tokens) in [
            ("prompt tokens", integers.prompt_tokens),
            ("  found in the cache", integers.matched_tokens),
            ("  adopted", integers.adopted_tokens),
            ("  of these recomputed", integers.replayed_tokens),
            ("  computed in all", integers.computed_tokens),
            ("  saved", integers.saved_tokens),
        ] {
            writeln!(out, "{label:<28}{:>16}{:>9}", grouped(tokens), of_prompts(tokens))?;
        }
        self.write_groups(out)?;
        self.write_policies(out)?;
        if let Some(division) = &self.outcome.division {
            write_division(out, division)?;
        }
        if let Some(shadow) = &self.outcome.shadow {
            self.write_shadow(out, shadow)?;
        }
        self.write_end(out)
    }

    fn write_head(&self, out: &mut String) -> std::fmt::Result {
        let config = self.cache.config();
        let shape = self.cache.shape();
        writeln!(
            out,
            "{}: {} requests, {} tokens a trace block ({})",
            self.trace.name,
            grouped(self.outcome.integers.requests),
            self.trace.block_tokens,
            self.trace.format
        )?;
        let windows = shape.window.as_ref().map_or(String::new(), |window| {
            format!(", {} checkpoints in {}", grouped(u64::from(window.slots)), human_bytes(config.window_bytes))
        });
        let room = match config.budget {
            Some(budget) => format!("one budget of {} for blocks and checkpoints", human_bytes(budget.bytes)),
            None => format!(
                "room for {} blocks in {}{windows}",
                grouped(u64::from(shape.history.slots)),
                human_bytes(config.history_bytes)
            ),
        };
        writeln!(out, "{}, blocks of {} tokens; {room}", config.model.name(), config.block_tokens)?;
        match &config.store {
            None => writeln!(out, "dry run: books only, nothing written or read\n"),
            Some(directory) => {
                let recovery = self.cache.recovery();
                let whose = if self.temporary { " (temporary)" } else { "" };
                writeln!(out, "store {}{whose}: {}", directory.display(), recovery.io)?;
                if recovery.blocks > 0 {
                    writeln!(
                        out,
                        "found {} blocks and {} checkpoints from earlier",
                        grouped(recovery.blocks),
                        grouped(recovery.checkpoints)
                    )?;
                }
                for remark in &recovery.remarks {
                    writeln!(out, "note: {remark}")?;
                }
                writeln!(out)
            }
        }
    }

    fn write_groups(&self, out: &mut String) -> std::fmt::Result {
        let block_tokens = u64::from(self.cache.shape().block_tokens);
        writeln!(
            out,
            "\n{:<12}{:>22}{:>22}{:>12}{:>12}{:>16}",
            "", "written", "read", "evicted", "orphaned", "kept at the end"
        )?;
        for group in Group::ALL {
            let Some(shape) = self.cache.shape().group(group) else { continue };
            let counters = self.outcome.stats.counters.group(group);
            let amount = |records: u64, bytes: u64| format!("{} = {}", grouped(records), human_bytes(bytes));
            let GroupCounters { written_records, written_bytes, loaded_records, loaded_bytes, .. } = *counters;
            let orphaned = if group == Group::History { "-".to_owned() } else { grouped(counters.orphaned_records) };
            writeln!(
                out,
                "{:<12}{:>22}{:>22}{:>12}{:>12}{:>16}",
                shape.name,
                amount(written_records, written_bytes),
                amount(loaded_records, loaded_bytes),
                grouped(counters.evicted_records),
                orphaned,
                human_bytes(self.outcome.stats.resident_bytes[group as usize]),
            )?;
            if group == Group::History {
                let tokens = |records: u64| format!("{} tokens", grouped(records * block_tokens));
                writeln!(out, "{:<12}{:>22}{:>22}", "", tokens(written_records), tokens(loaded_records))?;
            }
            for (failed, what) in [(counters.failed_writes, "written"), (counters.failed_reads, "read")] {
                if failed > 0 {
                    writeln!(out, "{:<12}{} records could not be {what}", "", grouped(failed))?;
                }
            }
        }
        Ok(())
    }

    fn write_policies(&self, out: &mut String) -> std::fmt::Result {
        let counters = &self.outcome.stats.counters;
        writeln!(out)?;
        for policy in &self.outcome.stats.policies {
            let form = if policy.component { "component" } else { "native" };
            let decided = match policy.role {
                reprise::Role::Eviction => {
                    let refused = match counters.refused_blocks {
                        0 => String::new(),
                        refused => format!(", {} blocks refused", grouped(refused)),
                    };
                    format!("{} victims named{refused}", grouped(policy.decisions))
                }
                reprise::Role::Checkpoints => format!("{} positions chosen", grouped(policy.decisions)),
            };
            write!(
                out,
                "{:<12}{} ({form}): {} calls, {decided}",
                policy.role.to_string(),
                policy.name,
                grouped(policy.calls)
            )?;
            if policy.strikes > 0 {
                let retired = if policy.retired { ", retired" } else { "" };
                write!(out, "; failed {} times{retired}", policy.strikes)?;
            }
            writeln!(out)?;
        }
        for failed in &self.outcome.failed_swaps {
            writeln!(out, "{:<12}{failed}", failed.role.to_string())?;
        }
        let natively = [(counters.native_evictions, "victims"), (counters.native_checkpoints, "checkpoint decisions")];
        for (count, what) in natively {
            if count > 0 {
                writeln!(out, "{:<12}{} {what} by the native fallback", "", grouped(count))?;
            }
        }
        Ok(())
    }

    /// The candidates beside the policies that served.
    fn write_shadow(&self, out: &mut String, report: &ShadowReport) -> std::fmt::Result {
        let ShadowReport { active, shadow, policies, .. } = report;
        let mut rows = vec![["in the shadow", "serving", "candidate", ""].map(str::to_owned)];
        for (serves, candidate) in self.outcome.stats.policies.iter().zip(policies) {
            let [first, second] = self.in_seat(serves, candidate);
            rows.push([format!("  {}", serves.role), first, second, String::new()]);
        }
        let mut row = |label: &str, [active, shadow]: [u64; 2], print: &dyn Fn(u64) -> String| {
            let change = match active {
                0 => String::new(),
                active => format!("{:+.1} %", 100.0 * (shadow as f64 - active as f64) / active as f64),
            };
            rows.push([label.to_owned(), print(active), print(shadow), change]);
        };
        let both = |of: &dyn Fn(&ShadowFigures) -> u64| [of(active), of(shadow)];
        row("  hit tokens", both(&|figures| figures.adopted_tokens), &grouped);
        row("  of these recomputed", both(&|figures| figures.replayed_tokens), &grouped);
        row("  saved tokens", both(&ShadowFigures::saved_tokens), &grouped);
        for group in Group::ALL {
            let Some(shape) = self.cache.shape().group(group) else { continue };
            let place = group as usize;
            row(&format!("  {} written", shape.name), both(&|figures| figures.written_bytes[place]), &human_bytes);
            row(&format!("  {} read", shape.name), both(&|figures| figures.loaded_bytes[place]), &human_bytes);
        }
        writeln!(out)?;
        for line in columns(&rows, &[0]) {
            writeln!(out, "{line}")?;
        }
        let lead = report.lead_ppm() as f64 / 1e4;
        writeln!(
            out,
            "  lead of the candidate: {lead:+.2} % of the prompt tokens, over {} requests",
            grouped(report.requests)
        )?;
        for policy in policies.iter().filter(|policy| policy.strikes > 0) {
            let why = policy.last_strike.as_deref().unwrap_or_default();
            writeln!(out, "  {} failed {} times: {why}", policy.name, policy.strikes)?;
        }
        Ok(())
    }

    /// Who serves in a seat, and who would: with settings, as far as they are known.
    fn in_seat(&self, serves: &PolicyStatus, candidate: &PolicyStatus) -> [String; 2] {
        let (options, config) = (&self.arguments.policies, self.cache.config());
        let chosen = |first: &PolicyChoice| match options.swap.iter().any(|swap| swap.role == serves.role) {
            true => serves.name.clone(),
            false => first.to_string(),
        };
        let (first, given) = match serves.role {
            Role::Eviction => (&config.eviction, self.shadow.and_then(|shadow| shadow.eviction.as_ref())),
            Role::Checkpoints => (&config.checkpoints, self.shadow.and_then(|shadow| shadow.checkpoints.as_ref())),
        };
        // Without a candidate the one that had the seat at first goes on in the shadow.
        let candidate = match given {
            Some(choice) => choice.to_string(),
            None if candidate.name == serves.name => chosen(first),
            None => candidate.name.clone(),
        };
        [chosen(first), candidate]
    }

    fn write_end(&self, out: &mut String) -> std::fmt::Result {
        let outcome = self.outcome;
        let saved = outcome.integers.saved_tokens as f64 / f64::from(self.prefill_rate());
        writeln!(
            out,
            "\nmodelled prefill time saved: {} at {} tokens/s (--prefill-rate)",
            seconds(saved),
            grouped(u64::from(self.prefill_rate()))
        )?;
        write!(
            out,
            "replayed in {}: {} block decisions, {} a second; trace decoded in {}",
            seconds(outcome.elapsed.as_secs_f64()),
            grouped(outcome.decisions),
            grouped(per_second(outcome.decisions as f64, outcome.elapsed) as u64),
            seconds(self.decoding.as_secs_f64())
        )?;
        writeln!(out)?;
        if self.cache.config().store.is_some() {
            let counters = &outcome.stats.counters;
            let sum = |field: fn(&GroupCounters) -> u64| -> u64 {
                Group::ALL.iter().map(|&group| field(counters.group(group))).sum()
            };
            let (written, loaded) = (sum(|group| group.written_bytes), sum(|group| group.loaded_bytes));
            let rate = |bytes: u64, time: Duration| human_bytes(per_second(bytes as f64, time) as u64);
            writeln!(
                out,
                "written {} at {}/s, read {} at {}/s; {}",
                human_bytes(written),
                rate(written, outcome.io.saving),
                human_bytes(loaded),
                rate(loaded, outcome.io.loading),
                if outcome.verified_bytes == loaded {
                    "every byte read was compared, none was wrong".to_owned()
                } else if outcome.verified_bytes == 0 {
                    "bytes were checked by checksum only (--verify=false)".to_owned()
                } else {
                    format!("{} compared, none was wrong", human_bytes(outcome.verified_bytes))
                }
            )?;
            if let Some(usage) = self.cache.usage() {
                let allocated: u64 = usage.classes.iter().map(|class| class.allocated_bytes).sum();
                let trailers: u64 = usage.classes.iter().map(|class| class.overhead_bytes).sum();
                let beside = usage.table_bytes + usage.catalogue_bytes + trailers;
                writeln!(
                    out,
                    "on disk: {} in slots, {} in tables and the like beside the quotas",
                    human_bytes(allocated),
                    human_bytes(beside)
                )?;
            }
            if let Some(reason) = &outcome.stats.store_refuses {
                writeln!(out, "the store took no more records: {reason}")?;
            }
        }
        Ok(())
    }
}

fn per_second(amount: f64, time: Duration) -> f64 {
    let seconds = time.as_secs_f64();
    if seconds > 0.0 { amount / seconds } else { 0.0 }
}

/// What each share of a budget would have saved, and which was taken.
fn write_division(out: &mut String, division: &DivisionReport) -> std::fmt::Result {
    writeln!(
        out,
        "\nwindows have {:.1} % of the budget in the end, after {} moves; saved with another share from the start:",
        f64::from(division.window_permille) / 10.0,
        division.moves
    )?;
    for scout in &division.scouts {
        writeln!(out, "{:>10.1} %{:>32}", f64::from(scout.window_permille) / 10.0, grouped(scout.saved_tokens))?;
    }
    Ok(())
}
