//! `reprise replay`.

use std::{path::Path, time::Instant};

use anyhow::{Context, anyhow};
use reprise::{Cache, Config};

use super::{
    Failure, print,
    setup::{check, configure, idle_pins, open, read, replay_failure, replay_options, shadow},
    watch::Watch,
};
use crate::{
    args,
    figures::human_bytes,
    replay::{Options, replay},
    report::Report,
};

pub(super) fn run(arguments: &args::Replay) -> Result<(), Failure> {
    let sample = arguments.trace.trace.is_none();
    let decoding = Instant::now();
    let trace = read(&arguments.trace).map_err(Failure::input)?;
    let decoding = decoding.elapsed();
    let pricing = (arguments.planner.into(), &arguments.prices);
    let mut config = configure(&arguments.cache, &arguments.policies, pricing, sample)?;
    config.store = if arguments.dry_run { None } else { arguments.store.clone().or(config.store) };
    check(&arguments.policies.swap, &config, &trace)?;
    let shadow = shadow(&arguments.shadow, &config)?;
    // Lives until the report is out: the store of a sample is temporary.
    let mut temporary = None;
    if config.store.is_none() && sample && !arguments.dry_run {
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
        verify: arguments.verify.unwrap_or(config.store.is_some()),
        shadow,
        ..replay_options(&arguments.trace, &arguments.policies)?
    };
    check_space(&config, temporary.is_some())?;
    let cache = open(config)?;

    let requests = arguments.limit.map_or(trace.requests.len(), |limit| limit.min(trace.requests.len()));
    let mut watch = Watch::new(requests as u64, arguments.quiet || arguments.json);
    let mut progress = |done: u64, _decisions: u64, cache: &Cache| watch.progress(done, cache);
    let outcome = replay(&cache, &trace, &options, &mut progress);
    watch.finish(&cache);
    let outcome = outcome.map_err(replay_failure)?;
    for before in &outcome.skipped_swaps {
        eprintln!("reprise: warning: the swap before request {before} was not made: the trace ended earlier");
    }
    let policies = &arguments.policies;
    let config = cache.config();
    let mut choices = vec![&config.eviction, &config.checkpoints];
    choices.extend(policies.swap.iter().map(|swap| &swap.choice));
    choices.extend(arguments.shadow.iter().map(|candidate| &candidate.choice));
    for pin in idle_pins(&policies.pin, &choices) {
        eprintln!("reprise: warning: --pin {pin}: no policy of this run calls itself `{}`", pin.name);
    }
    let policy_failures = watch.failures(&outcome.failed_swaps);
    let report = Report {
        arguments,
        trace: &trace,
        cache: &cache,
        outcome: &outcome,
        shadow: options.shadow.as_ref(),
        decoding,
        temporary: temporary.is_some(),
    };
    print(&if arguments.json { format!("{}\n", report.json()) } else { report.table() })?;
    if arguments.strict_policy && policy_failures > 0 {
        return Err(Failure::Policy(anyhow!(
            "{policy_failures} of the policies failed, see the warnings; the replay went on without them, and --strict-policy was given"
        )));
    }
    Ok(())
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
