//! `reprise replay`.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow};
use reprise::{Cache, Config, OpenError, PolicyChoice, Shape, Stats, StoreError};

use super::{Failure, print};
use crate::{
    args,
    progress::{bar, human_bytes},
    replay::{Grid, Options, ReplayError, Swap, replay},
    report::Report,
    trace::{ReadOptions, Trace},
    untyped::Eviction,
};

const SAMPLE_MODEL: &str = "v4-flash";
const SAMPLE_HISTORY_GIB: f64 = 0.5;
const SAMPLE_WINDOW_GIB: f64 = 0.1;
const MODEL: &str = "v4-pro";
const HISTORY_GIB: f64 = 64.0;
const WINDOW_GIB: f64 = 16.0;

pub(super) fn run(arguments: &args::Replay) -> Result<(), Failure> {
    if arguments.eviction == PolicyChoice::shipped(Eviction::Optimal.name()) {
        return Err(Failure::input(anyhow!(
            "the eviction policy `optimal` looks at requests to come, which no cache can: it runs with --untyped only"
        )));
    }
    let decoding = Instant::now();
    let trace = read(arguments).map_err(Failure::input)?;
    let decoding = decoding.elapsed();
    let mut config = configure(arguments)?;
    check(arguments, &config, &trace)?;
    // Lives until the report is out: the store of a sample is temporary.
    let mut temporary = None;
    if config.store.is_none() && arguments.trace.is_none() && !arguments.dry_run {
        let directory = tempfile::Builder::new()
            .prefix("reprise-")
            .tempdir()
            .context("making a temporary directory for the store; name another with --store or TMPDIR")
            .map_err(Failure::work)?;
        config.store = Some(directory.path().join("store"));
        temporary = Some(directory);
    }
    let options = Options {
        limit: arguments.limit,
        session_gap_us: microseconds(arguments.session_gap)?,
        swaps: arguments.swap.clone(),
        verify: arguments.verify.unwrap_or(config.store.is_some()),
    };
    check_space(&config, temporary.is_some())?;
    let cache = Cache::open(config).map_err(|error| match error {
        OpenError::Store { source: StoreError::Full { .. } | StoreError::Io { .. }, .. } | OpenError::Thread { .. } => {
            Failure::work(error)
        }
        error => Failure::input(error),
    })?;

    let requests = arguments.limit.map_or(trace.requests.len(), |limit| limit.min(trace.requests.len()));
    let bar = bar(requests as u64, "requests", arguments.quiet || arguments.json);
    let mut shown = Instant::now();
    let mut policy_failures = 0_usize;
    let mut warn = |cache: &Cache| {
        for notice in cache.policies().take_notices() {
            policy_failures += 1;
            bar.suspend(|| eprintln!("reprise: warning: {notice}"));
        }
    };
    let mut progress = |done: u64, _decisions: u64, cache: &Cache| {
        warn(cache);
        if shown.elapsed() >= Duration::from_millis(200) {
            shown = Instant::now();
            bar.set_position(done);
            bar.set_message(speed(&cache.stats()));
        }
    };
    let outcome = replay(&cache, &trace, &options, &mut progress);
    // Of a replay without requests, too.
    warn(&cache);
    bar.finish_and_clear();
    let outcome = outcome.map_err(|error| match error {
        error @ (ReplayError::Misfit(_) | ReplayError::Swap { .. }) => Failure::input(error),
        error => Failure::work(error),
    })?;
    for before in &outcome.skipped_swaps {
        eprintln!("reprise: warning: the swap before request {before} was not made: the trace ended earlier");
    }
    for failed in &outcome.failed_swaps {
        policy_failures += 1;
        eprintln!("reprise: warning: {failed}");
    }
    let report =
        Report { arguments, trace: &trace, cache: &cache, outcome: &outcome, decoding, temporary: temporary.is_some() };
    print(&if arguments.json { format!("{}\n", report.json()) } else { report.table() })?;
    if arguments.strict_policy && policy_failures > 0 {
        return Err(Failure::Policy(anyhow!(
            "{policy_failures} of the policies failed, see the warnings; the replay went on without them, and --strict-policy was given"
        )));
    }
    Ok(())
}

pub(super) fn read(arguments: &args::Replay) -> anyhow::Result<Trace> {
    let options =
        ReadOptions { format: arguments.format, block_tokens: arguments.trace_block, skip_bad: arguments.skip_bad };
    let trace = match &arguments.trace {
        None => Trace::sample()?,
        Some(path) => Trace::read(path, &options)?,
    };
    if trace.skipped > 0 {
        eprintln!("reprise: warning: {} bad records of {} were left out", trace.skipped, trace.name);
    }
    Ok(trace)
}

fn configure(arguments: &args::Replay) -> Result<Config, Failure> {
    let sample = arguments.trace.is_none();
    let model = arguments.model.as_deref().unwrap_or(if sample { SAMPLE_MODEL } else { MODEL });
    let history_gib = arguments.history_gib.unwrap_or(if sample { SAMPLE_HISTORY_GIB } else { HISTORY_GIB });
    let window_gib = arguments.window_gib.unwrap_or(if sample { SAMPLE_WINDOW_GIB } else { WINDOW_GIB });
    Ok(Config {
        block_tokens: arguments.block_tokens,
        history_bytes: gib("--history-gib", history_gib)?,
        window_bytes: gib("--window-gib", window_gib)?,
        store: arguments.store.clone(),
        checkpoints: arguments.checkpoints.clone(),
        eviction: arguments.eviction.clone(),
        native_policies: arguments.native,
        planner: arguments.planner.into(),
        replay: !arguments.no_replay,
        deterministic: true,
        ..Config::new(model).map_err(Failure::input)?
    })
}

/// What would stop the replay on its way is found before a store is opened.
fn check(arguments: &args::Replay, config: &Config, trace: &Trace) -> Result<(), Failure> {
    Shape::new(&config.model, config.block_tokens, config.history_bytes, config.window_bytes)
        .map_err(Failure::input)?;
    Grid::new(config.block_tokens, trace.block_tokens).map_err(Failure::input)?;
    for Swap { before, role, choice } in &arguments.swap {
        reprise::check(*role, choice)
            .with_context(|| format!("the swap before request {before}"))
            .map_err(Failure::Input)?;
    }
    Ok(())
}

/// floor(x · 2^30), as the rules of a replay say.
fn gib(option: &str, value: f64) -> Result<u64, Failure> {
    let bytes = (value * f64::from(1 << 30)).floor();
    if bytes.is_finite() && (0.0..1e18).contains(&bytes) {
        Ok(bytes as u64)
    } else {
        Err(Failure::input(anyhow!("{option} takes a number of GiB from 0 up, not {value}")))
    }
}

fn microseconds(seconds: f64) -> Result<u64, Failure> {
    let microseconds = (seconds * 1e6).round();
    if microseconds.is_finite() && (0.0..1e18).contains(&microseconds) {
        Ok(microseconds as u64)
    } else {
        Err(Failure::input(anyhow!("--session-gap takes seconds from 0 up, not {seconds}")))
    }
}

/// The quotas are promised to be kept, so they had better fit: says so before an hour is spent.
fn check_space(config: &Config, temporary: bool) -> Result<(), Failure> {
    let Some(directory) = &config.store else { return Ok(()) };
    // A relative path ends in the empty one, which is where we are.
    let existing = directory.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(Path::new("."));
    if !existing.is_dir() {
        let (directory, existing) = (directory.display(), existing.display());
        return Err(Failure::input(anyhow!(
            "--store takes a directory, which {directory} cannot be: {existing} is a file"
        )));
    }
    let Some(free_bytes) = free_bytes(existing) else { return Ok(()) };
    let quota_bytes = config.history_bytes.saturating_add(config.window_bytes);
    if free_bytes >= quota_bytes {
        return Ok(());
    }
    let (free, quota) = (human_bytes(free_bytes), human_bytes(quota_bytes));
    if temporary {
        let place = existing.display();
        return Err(Failure::work(anyhow!(
            "the sample's store may take {quota}, and {place} has {free} free: name another place with --store DIR, or keep books only with \
             --dry-run"
        )));
    }
    eprintln!(
        "reprise: warning: the quotas add up to {quota}, and {} has {free} free: the store stops taking records when it is full",
        existing.display()
    );
    Ok(())
}

/// Bytes an ordinary user may still write below `path`; `None` if the system does not say.
fn free_bytes(path: &Path) -> Option<u64> {
    let statistics = rustix::fs::statvfs(path).ok()?;
    Some(statistics.f_bavail.saturating_mul(statistics.f_frsize))
}

fn speed(stats: &Stats) -> String {
    let counters = &stats.counters;
    let saved = counters.prompt_tokens - counters.computed_tokens;
    let share = if counters.prompt_tokens == 0 { 0.0 } else { 100.0 * saved as f64 / counters.prompt_tokens as f64 };
    let written: u64 = reprise::Group::ALL.iter().map(|&group| counters.group(group).written_bytes).sum();
    let loaded: u64 = reprise::Group::ALL.iter().map(|&group| counters.group(group).loaded_bytes).sum();
    format!("{share:.0} % of tokens saved, {} written, {} read", human_bytes(written), human_bytes(loaded))
}
