//! `reprise advise`.

use std::{fs, io::Write, num::NonZeroUsize, os::unix::fs::PermissionsExt, path::Path, thread};

use anyhow::{Context, anyhow};
use reprise::{Config, Planner, Prices};
use tempfile::NamedTempFile;

use super::{
    Failure, print,
    setup::{MODEL, SAMPLE_MODEL, gib, read, whole},
};
use crate::{
    advise::{AdviseError, Question, Report, advise, toml},
    args,
    figures::grouped,
    progress::bar,
    replay::Grid,
    trace::Trace,
};

/// What --session-gap is unless given.
const DEFAULT_SESSION_GAP: f64 = 120.0;

const SAMPLE_BUDGET_GIB: f64 = 0.6;

/// Blocks of a trace that advice goes by, unless --limit says otherwise: what a hundred replays get through in a minute or two.
const MOST_BLOCKS: u64 = 16_000_000;

pub(super) fn run(arguments: &args::Advise) -> Result<(), Failure> {
    let sample = arguments.trace.trace.is_none();
    let budget_gib = match arguments.budget_gib {
        Some(budget) => budget,
        None if sample => SAMPLE_BUDGET_GIB,
        None => return Err(Failure::input(anyhow!("say how much room there is: --budget-gib GIB"))),
    };
    let budget_bytes = gib("--budget-gib", budget_gib)?;
    let model = arguments.model.as_deref().unwrap_or(if sample { SAMPLE_MODEL } else { MODEL });
    let disk = arguments.disk_gib_per_second.map(|rate| gib("--disk-gib-per-second", rate)).transpose()?;
    let disk_bytes_per_second = disk.unwrap_or(Prices::default().load_bytes_per_second);
    let pcie_bytes_per_second =
        arguments.pcie_gib_per_second.map(|rate| gib("--pcie-gib-per-second", rate)).transpose()?;
    let load_bytes_per_second =
        pcie_bytes_per_second.map_or(disk_bytes_per_second, |pcie| pcie.min(disk_bytes_per_second));
    let config = Config {
        block_tokens: arguments.block_tokens,
        planner: Planner::MinTime,
        replay: !arguments.no_replay,
        prices: prices(arguments, load_bytes_per_second)?,
        ..Config::new(model).map_err(Failure::input)?
    };
    let out = arguments.out.as_deref().map(begin).transpose()?;
    let trace = read(&arguments.trace).map_err(Failure::input)?;
    let gap = arguments.trace.session_gap;
    let session_gap_us = whole("--session-gap", "seconds", gap, (gap * 1e6).round())?;
    let limit = arguments.limit.or(fitting(&trace, session_gap_us, config.block_tokens)?);
    let all = trace.requests.len();
    let left_out = limit.filter(|&limit| limit < all).map(|_| {
        let why = if arguments.limit.is_some() { "by --limit" } else { "because it is long; --limit N takes more" };
        format!(", the first of {} {why}", grouped(all as u64))
    });

    let jobs = arguments.jobs.or(thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let most = |times: f64| whole("--writes-per-day", "a number", times, (times * budget_bytes as f64).floor());
    let most_bytes_per_day = arguments.writes_per_day.map(most).transpose()?;
    let question = Question { trace: &trace, session_gap_us, limit, config, budget_bytes, most_bytes_per_day, jobs };
    let bar = bar(0, "replays", arguments.quiet || arguments.json);
    let advice = advise(&question, &|done, known| {
        bar.set_length(known as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    let advice = advice.map_err(failure)?;

    let replay = replay_command(arguments, limit);
    if let Some((file, target)) = out {
        let text = toml(&advice, &question, model, &replay).map_err(Failure::input)?;
        finish(file, target, &text)?;
    }
    let out = arguments.out.as_ref().map(|path| path.display().to_string());
    let report = Report {
        question: &question,
        advice: &advice,
        disk_bytes_per_second,
        pcie_bytes_per_second,
        left_out,
        replay: &replay,
        out: out.as_deref(),
    };
    print(&if arguments.json { format!("{}\n", report.json()) } else { report.text() })
}

/// The replay that gives what was promised.
fn replay_command(arguments: &args::Advise, limit: Option<usize>) -> String {
    let options = &arguments.trace;
    let mut line = "reprise replay".to_owned();
    let mut add = |text: &str| {
        line.push(' ');
        let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
        if !text.is_empty() && text.chars().all(plain) {
            line += text;
        } else {
            line += &format!("'{}'", text.replace('\'', r"'\''"));
        }
    };
    if let Some(path) = &options.trace {
        add(&path.display().to_string());
    }
    if let Some(format) = options.format {
        add("--format");
        add(&format.to_string());
    }
    if let Some(tokens) = options.trace_block {
        add("--trace-block");
        add(&tokens.to_string());
    }
    if options.skip_bad {
        add("--skip-bad");
    }
    if options.session_gap != DEFAULT_SESSION_GAP {
        add("--session-gap");
        add(&options.session_gap.to_string());
    }
    if let Some(limit) = limit {
        add("--limit");
        add(&limit.to_string());
    }
    add("--dry-run");
    add("--config");
    add(&arguments.out.as_deref().unwrap_or(Path::new("FILE")).display().to_string());
    line
}

fn prices(arguments: &args::Advise, load_bytes_per_second: u64) -> Result<Prices, Failure> {
    let mut prices = Prices { load_bytes_per_second, ..Prices::default() };
    if let Some(record_us) = arguments.load_record_us {
        prices.load_record_ns = whole("--load-record-us", "microseconds", record_us, (record_us * 1e3).round())?;
    }
    if let Some(rate) = arguments.prefill_rate {
        prices.token_ps = (1e12 / f64::from(rate)).round() as u64;
    }
    if let Some(context_ns) = arguments.prefill_context {
        prices.context_ps = whole("--prefill-context", "nanoseconds", context_ns, (context_ns * 1e3).round())?;
    }
    Ok(prices)
}

/// How many requests have [`MOST_BLOCKS`]; `None` if that is all of them.
fn fitting(trace: &Trace, session_gap_us: u64, block_tokens: u32) -> Result<Option<usize>, Failure> {
    let grid = Grid::new(block_tokens, trace.block_tokens).map_err(Failure::input)?;
    let mut blocks = 0;
    let order = trace.order_of_arrival(session_gap_us);
    let beyond = order.iter().position(|&index| {
        let request = &trace.requests[index as usize];
        blocks += u64::from(grid.complete_blocks(request.prompt_tokens, trace.ids(request).len()));
        blocks > MOST_BLOCKS
    });
    Ok(beyond.map(|limit| limit.max(1)))
}

/// A file beside the one to be written, so that one that cannot be written is found before the work, and none is left half written.
fn begin(target: &Path) -> Result<(NamedTempFile, &Path), Failure> {
    let directory = match target.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    if target.is_dir() {
        return Err(Failure::input(anyhow!("--out takes a file, and {} is a directory", target.display())));
    }
    // As any other file is made: less what the umask takes.
    let permissions = fs::Permissions::from_mode(0o666);
    let file = tempfile::Builder::new().prefix(".advice-").permissions(permissions).tempfile_in(directory);
    let file = file.with_context(|| format!("making {}", target.display())).map_err(Failure::Input)?;
    Ok((file, target))
}

fn finish(mut file: NamedTempFile, target: &Path, text: &str) -> Result<(), Failure> {
    let writing = || format!("writing {}", target.display());
    file.write_all(text.as_bytes()).with_context(writing).map_err(Failure::Work)?;
    file.into_temp_path().persist(target).with_context(writing).map_err(Failure::Work)
}

fn failure(error: AdviseError) -> Failure {
    match error {
        error @ AdviseError::Replay { .. } => Failure::work(error),
        error => Failure::input(error),
    }
}
