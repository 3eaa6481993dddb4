//! `reprise compare`.

use std::{
    collections::HashSet,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    thread,
    time::Instant,
};

use anyhow::{Context, anyhow};
use indicatif::ProgressBar;
use reprise::{Cache, CompileCacheChoice, Config, Pins, PolicyTerms, wasm::CompileCache};
use serde_json::{Value, json};

use super::{
    Failure, print,
    setup::{MODEL, SAMPLE_MODEL, gib, open, price, read, whole},
};
use crate::{
    args,
    compare::{
        self, Contender, Grid, Journal, JournalError, Mode, Pace, Pool, Results, Setting, Subject, split::Division,
        table,
    },
    figures::{grouped, human_bytes, seconds},
    policy::check_terms,
    progress::bar,
};

pub(super) fn run(arguments: &args::Compare) -> Result<(), Failure> {
    let gap = arguments.session_gap;
    let session_gap_us = whole("--session-gap", "seconds", gap, (gap * 1e6).round())?;
    let contenders = contenders(arguments)?;
    // Lives until all policies were loaded for the last time.
    let compiled = Compiled::new()?;
    let subjects = subjects(arguments, session_gap_us)?;
    let mode = match arguments.untyped {
        true => Mode::Untyped(pool(arguments, &contenders, &subjects)?),
        false => {
            let config = configure(arguments, compiled.choice.clone())?;
            Mode::Typed(Box::new(Setting::new(config, session_gap_us).map_err(Failure::input)?))
        }
    };
    let sizes = subjects.iter().map(|subject| sizes(arguments, subject, &mode)).collect::<Result<Vec<_>, _>>()?;
    let share = arguments.window_share.map(permille).transpose()?;
    let grid = Grid { subjects, sizes, contenders, share, mode };
    check(&grid)?;
    let mut journal = Journal::open(&arguments.out, arguments.fresh).map_err(journal_failure)?;
    if journal.unreadable > 0 {
        eprintln!(
            "reprise: warning: {} lines of the journal in {} make no sense: those replays are made again",
            journal.unreadable,
            arguments.out.display()
        );
    }
    let watch = Watch::new(arguments.quiet || arguments.json);
    let jobs = arguments.jobs.or_else(|| thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN);
    let ran = compare::run(&grid, &mut journal, jobs, &|pace| watch.show(pace));
    watch.bar.finish_and_clear();
    let kept = || {
        format!("what was finished is kept: the same command with --out {} goes on from there", arguments.out.display())
    };
    let (cells, pace) = ran.map_err(|error| error.context(kept())).map_err(Failure::work)?;
    let results = Results::new(&grid, cells, options(arguments, &grid));
    let files = compare::write(&arguments.out, &results).map_err(Failure::work)?;
    let text = match (arguments.json, arguments.markdown) {
        (true, _) => format!("{:#}\n", results.json()),
        (_, true) => table::markdown(&results),
        _ => table::terminal(&results),
    };
    print(&text)?;
    if !arguments.quiet {
        eprintln!("reprise: {}", watch.summary(pace));
        eprintln!(
            "reprise: report in {}; {} and {} beside it",
            files.report.display(),
            name(&files.csv),
            name(&files.json)
        );
    }
    Ok(())
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Where compiled policies are kept while replays load them again and again: where the user has them, else in a directory of this run.
struct Compiled {
    choice: CompileCacheChoice,
    _temporary: Option<tempfile::TempDir>,
}

impl Compiled {
    fn new() -> Result<Self, Failure> {
        if CompileCache::of_user().is_ok() {
            return Ok(Self { choice: CompileCacheChoice::User, _temporary: None });
        }
        let directory = tempfile::Builder::new()
            .prefix("reprise-")
            .tempdir()
            .context("making a temporary directory for compiled policies; name another place with TMPDIR")
            .map_err(Failure::work)?;
        Ok(Self { choice: CompileCacheChoice::Directory(directory.path().into()), _temporary: Some(directory) })
    }
}

fn contenders(arguments: &args::Compare) -> Result<Vec<Contender>, Failure> {
    let given: Vec<Contender> = match (arguments.policies.as_slice(), arguments.untyped) {
        ([], false) => Contender::shipped(),
        ([], true) => {
            let all = compare::untyped::policies();
            all.iter().map(|name| Contender::untyped(name)).collect::<Result<_, _>>().map_err(Failure::input)?
        }
        (given, untyped) => given
            .iter()
            .map(|text| if untyped { Contender::untyped(text) } else { text.parse() })
            .collect::<Result<_, _>>()
            .map_err(Failure::input)?,
    };
    let mut seen = HashSet::new();
    match given.iter().map(ToString::to_string).find(|name| !seen.insert(name.clone())) {
        Some(twice) => Err(Failure::input(anyhow!("--policy {twice} is given twice"))),
        None => Ok(given),
    }
}

/// The pool without types. What a policy of it would be refused for is found before a trace is replayed.
fn pool(arguments: &args::Compare, contenders: &[Contender], subjects: &[Subject]) -> Result<Pool, Failure> {
    let terms = PolicyTerms {
        native: !arguments.components,
        profile: arguments.policy_profile,
        pins: Pins::default(),
        records: arguments.capacity_blocks.iter().copied().max().unwrap_or(0).into(),
    };
    Pool::new(contenders, subjects, arguments.limit, terms).map_err(Failure::input)
}

fn configure(arguments: &args::Compare, compile_cache: CompileCacheChoice) -> Result<Config, Failure> {
    let model = arguments.model.as_deref().unwrap_or(if arguments.traces.is_empty() { SAMPLE_MODEL } else { MODEL });
    Ok(Config {
        block_tokens: arguments.block_tokens,
        native_policies: !arguments.components,
        replay: !arguments.no_replay,
        planner: arguments.planner.into(),
        prices: price(&arguments.prices)?,
        policy_profile: arguments.policy_profile,
        deterministic: true,
        compile_cache,
        ..Config::new(model).map_err(Failure::input)?
    })
}

/// Reads the traces, each once, and gives each a name of its own.
fn subjects(arguments: &args::Compare, session_gap_us: u64) -> Result<Vec<Subject>, Failure> {
    if arguments.limit == Some(0) {
        return Err(Failure::input(anyhow!("--limit 0 leaves no request to compare on")));
    }
    let mut paths: Vec<Option<PathBuf>> = arguments.traces.iter().cloned().map(Some).collect();
    if paths.is_empty() {
        paths.push(None);
    }
    let mut seen = HashSet::new();
    if let Some(Some(twice)) = paths.iter().find(|path| !seen.insert((*path).clone())) {
        return Err(Failure::input(anyhow!("the trace {} is given twice", twice.display())));
    }
    let mut traces = Vec::new();
    for path in &paths {
        let options = args::TraceOptions {
            trace: path.clone(),
            format: arguments.format,
            trace_block: arguments.trace_block,
            session_gap: arguments.session_gap,
            skip_bad: arguments.skip_bad,
        };
        traces.push(read(&options).map_err(Failure::input)?);
    }
    let names: Vec<String> = traces.iter().map(|trace| trace.name.clone()).collect();
    let label = |name: &String, path: &Option<PathBuf>| match path {
        Some(path) if names.iter().filter(|other| *other == name).count() > 1 => path.display().to_string(),
        _ => name.clone(),
    };
    let labels: Vec<String> = names.iter().zip(&paths).map(|(name, path)| label(name, path)).collect();
    let subjects = labels.into_iter().zip(traces);
    Ok(subjects.map(|(label, trace)| Subject::new(label, trace, arguments.limit, session_gap_us)).collect())
}

/// The budgets on a trace, ascending, each once.
fn sizes(arguments: &args::Compare, subject: &Subject, mode: &Mode) -> Result<Vec<u64>, Failure> {
    let Mode::Typed(setting) = mode else {
        return Ok(ascending(arguments.capacity_blocks.iter().map(|&blocks| u64::from(blocks)).collect()));
    };
    // Also refuses a block that does not fit, whatever the budgets.
    let blocks = subject.distinct_blocks(setting.config.block_tokens).map_err(Failure::input)?;
    let slot_bytes = setting.shape().history.slot_bytes;
    let budgets = match arguments.budget_gib.as_slice() {
        [] => compare::budgets(blocks.saturating_mul(slot_bytes), slot_bytes),
        given => given.iter().map(|&budget| gib("--budget-gib", budget)).collect::<Result<_, _>>()?,
    };
    if let Some(small) = budgets.iter().find(|&&budget| budget < slot_bytes) {
        return Err(Failure::input(anyhow!(
            "--budget-gib: a budget of {} does not hold one block of {}, which takes {}",
            human_bytes(*small),
            setting.config.model.name(),
            human_bytes(slot_bytes)
        )));
    }
    Ok(ascending(budgets))
}

fn ascending(mut sizes: Vec<u64>) -> Vec<u64> {
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// A percentage in thousandths.
fn permille(percent: f64) -> Result<u32, Failure> {
    let permille = (percent * 10.0).round();
    if (0.0..1000.0).contains(&permille) && (permille / 10.0 - percent).abs() < 1e-9 {
        return Ok(permille as u32);
    }
    Err(Failure::input(anyhow!(
        "--window-share takes a percentage from 0 to 99.9 with one digit at most, not {percent}"
    )))
}

/// What would stop a replay on its way is found before the first begins.
fn check(grid: &Grid) -> Result<(), Failure> {
    let Mode::Typed(setting) = &grid.mode else { return Ok(()) };
    let budgets = || grid.sizes.iter().flatten();
    let Some((&least, &most)) = budgets().min().zip(budgets().max()) else { return Ok(()) };
    setting.check(most).map_err(Failure::input)?;
    if let Some(share) = grid.share.filter(|&share| !grid.admits(least, share)) {
        let percent = f64::from(share) / 10.0;
        return Err(Failure::input(anyhow!(
            "--window-share {percent}: a budget of {} divided like that does not hold one record of each kind",
            human_bytes(least)
        )));
    }
    for contender in &grid.contenders {
        let config = setting.configure(contender, least, (Division::Undivided, 0));
        let named = || format!("--policy {contender}");
        for choice in [Some(&contender.eviction), contender.checkpoints.as_ref()].into_iter().flatten() {
            if !matches!(choice, reprise::PolicyChoice::Shipped { .. }) {
                check_terms(choice, config.policy_profile, &Pins::default())
                    .with_context(named)
                    .map_err(Failure::Input)?;
            }
        }
        let opened: Result<Cache, Failure> = open(config);
        opened.map_err(|failure| failure.context(named()))?;
    }
    Ok(())
}

/// What the figures depend on beside trace, policy and budget.
fn options(arguments: &args::Compare, grid: &Grid) -> Value {
    match &grid.mode {
        Mode::Untyped(pool) => json!({ "limit": pool.limit }),
        Mode::Typed(setting) => {
            let config = &setting.config;
            json!({
                "model": config.model.name(),
                "block_tokens": config.block_tokens,
                "planner": config.planner,
                "replay": config.replay,
                "prices": config.prices,
                "session_gap": arguments.session_gap,
                "limit": arguments.limit,
                "window_permille": grid.share,
                "components": arguments.components,
            })
        }
    }
}

fn journal_failure(error: JournalError) -> Failure {
    match error {
        JournalError::Foreign { .. } | JournalError::Busy { .. } => Failure::input(error),
        JournalError::Io { .. } => Failure::work(error),
    }
}

/// What a person sees of a comparison on its way.
struct Watch {
    bar: ProgressBar,
    start: Instant,
}

impl Watch {
    fn new(quiet: bool) -> Self {
        Self { bar: bar(0, "replays", quiet), start: Instant::now() }
    }

    fn show(&self, pace: Pace) {
        self.bar.set_length(pace.of_replays);
        self.bar.set_position(pace.replays);
        self.bar.set_message(format!("{}/{} cells, {}", pace.cells, pace.of_cells, self.rate(pace)));
    }

    fn rate(&self, pace: Pace) -> String {
        let rate = pace.decisions as f64 / self.start.elapsed().as_secs_f64().max(1e-9);
        format!("{:.1} M block decisions/s", rate / 1e6)
    }

    fn summary(&self, pace: Pace) -> String {
        let earlier = match pace.from_journal {
            0 => String::new(),
            replays => format!(", {} of them from the journal", grouped(replays)),
        };
        format!(
            "{} cells from {} replays{earlier} in {}; {}",
            pace.of_cells,
            grouped(pace.replays),
            seconds(self.start.elapsed().as_secs_f64()),
            self.rate(pace)
        )
    }
}
