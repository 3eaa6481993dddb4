//! From the options that commands share to what they stand for.

use std::path::Path;

use anyhow::{Context, anyhow};
use reprise::{
    Budget, Cache, Config, OpenError, Pin, Pins, Planner, PolicyChoice, Prices, Shadowing, Shape, StoreError,
};

use super::Failure;
use crate::{
    args::{CacheOptions, PolicyOptions, PriceOptions, TraceOptions},
    policy::{check_terms, name_of},
    replay::{Grid, Options, ReplayError, ShadowChoice, Swap, shadowing},
    trace::{ReadOptions, Trace},
    untyped::Rule,
};

pub(super) const SAMPLE_MODEL: &str = "v4-flash";
const SAMPLE_HISTORY_GIB: f64 = 0.5;
const SAMPLE_WINDOW_GIB: f64 = 0.1;
pub(super) const MODEL: &str = "v4-pro";
const HISTORY_GIB: f64 = 64.0;
const WINDOW_GIB: f64 = 16.0;

/// Reads a trace, or the sample.
pub(super) fn read(options: &TraceOptions) -> anyhow::Result<Trace> {
    let read = ReadOptions { format: options.format, block_tokens: options.trace_block, skip_bad: options.skip_bad };
    let trace = match &options.trace {
        None => Trace::sample()?,
        Some(path) => Trace::read(path, &read)?,
    };
    if trace.skipped > 0 {
        eprintln!("reprise: warning: {} bad records of {} were left out", trace.skipped, trace.name);
    }
    Ok(trace)
}

/// A cache as the options or the file of `--config` describe it, with a store only if that file names one; with the model and quotas of the
/// sample, if `sample`.
pub(super) fn configure(
    cache: &CacheOptions,
    policies: &PolicyOptions,
    (planner, prices): (Planner, &PriceOptions),
    sample: bool,
) -> Result<Config, Failure> {
    let config = match &cache.config {
        Some(path) => from_file(path, policies)?,
        None => from_options(cache, policies, (planner, prices), sample)?,
    };
    if config.eviction == PolicyChoice::shipped(Rule::Optimal.name()) {
        return Err(Failure::input(anyhow!(
            "the eviction policy `optimal` looks at requests to come, which no cache can: it runs with --untyped only"
        )));
    }
    Ok(config)
}

/// What the file says, made repeatable; `--native` may be given beside it.
fn from_file(path: &Path, policies: &PolicyOptions) -> Result<Config, Failure> {
    let config = Config::from_toml(path).context("--config").map_err(Failure::Input)?;
    Ok(Config { native_policies: config.native_policies || policies.native, deterministic: true, ..config })
}

fn from_options(
    cache: &CacheOptions,
    policies: &PolicyOptions,
    (planner, prices): (Planner, &PriceOptions),
    sample: bool,
) -> Result<Config, Failure> {
    let model = cache.model.as_deref().unwrap_or(if sample { SAMPLE_MODEL } else { MODEL });
    let history_gib = cache.history_gib.unwrap_or(if sample { SAMPLE_HISTORY_GIB } else { HISTORY_GIB });
    let budget = cache.budget_gib.map(|budget| gib("--budget-gib", budget)).transpose()?;
    let window_gib = cache.window_gib.unwrap_or(if sample { SAMPLE_WINDOW_GIB } else { WINDOW_GIB });
    Ok(Config {
        block_tokens: cache.block_tokens,
        history_bytes: gib("--history-gib", history_gib)?,
        window_bytes: gib("--window-gib", window_gib)?,
        budget: budget.map(|bytes| Budget { bytes }),
        checkpoints: policies.checkpoints.clone(),
        eviction: policies.eviction.clone(),
        native_policies: policies.native,
        replay: !policies.no_replay,
        planner,
        prices: price(prices)?,
        policy_profile: policies.policy_profile,
        pins: policies.pin.iter().cloned().collect(),
        deterministic: true,
        ..Config::new(model).map_err(Failure::input)?
    })
}

/// The prices given, the others by default.
pub(super) fn price(options: &PriceOptions) -> Result<Prices, Failure> {
    let mut prices = Prices::default();
    if let Some(rate) = options.load_gib_per_second {
        prices.load_bytes_per_second = gib("--load-gib-per-second", rate)?;
    }
    if let Some(record_us) = options.load_record_us {
        prices.load_record_ns = whole("--load-record-us", "microseconds", record_us, (record_us * 1e3).round())?;
    }
    if let Some(rate) = options.prefill_rate {
        prices.token_ps = (1e12 / f64::from(rate)).round() as u64;
    }
    if let Some(context_ns) = options.prefill_context {
        prices.context_ps = whole("--prefill-context", "nanoseconds", context_ns, (context_ns * 1e3).round())?;
    }
    Ok(prices)
}

/// What would stop a replay on its way is found before a store is opened.
pub(super) fn check(swaps: &[Swap], config: &Config, trace: &Trace) -> Result<(), Failure> {
    let (history_bytes, window_bytes) =
        config.budget.map_or((config.history_bytes, config.window_bytes), |budget| (budget.bytes, budget.bytes));
    Shape::new(&config.model, config.block_tokens, history_bytes, window_bytes).map_err(Failure::input)?;
    Grid::new(config.block_tokens, trace.block_tokens).map_err(Failure::input)?;
    // The pins of those that serve from the start are compared when the cache opens.
    for choice in [&config.eviction, &config.checkpoints] {
        check_terms(choice, config.policy_profile, &Pins::default()).map_err(Failure::Input)?;
    }
    for Swap { before, role, choice } in swaps {
        terms(choice, config)
            .and_then(|()| Ok(reprise::check(*role, choice, config.policy_profile)?))
            .with_context(|| format!("the swap before request {before}"))
            .map_err(Failure::Input)?;
    }
    Ok(())
}

/// What the candidates are shadowed as, once nothing of them would be refused.
pub(super) fn shadow(candidates: &[ShadowChoice], config: &Config) -> Result<Option<Shadowing>, Failure> {
    for ShadowChoice { choice, .. } in candidates {
        terms(choice, config)
            .with_context(|| format!("the candidate {choice} for the shadow"))
            .map_err(Failure::Input)?;
    }
    shadowing(candidates, config.policy_profile).map_err(Failure::input)
}

/// Profile and pins; a policy that runs natively has neither.
fn terms(choice: &PolicyChoice, config: &Config) -> anyhow::Result<()> {
    if config.native_policies && matches!(choice, PolicyChoice::Shipped { .. }) {
        return Ok(());
    }
    check_terms(choice, config.policy_profile, &config.pins)
}

/// Pins by whose names none of these policies calls itself.
pub(super) fn idle_pins<'a>(pins: &'a [Pin], policies: &[&PolicyChoice]) -> Vec<&'a Pin> {
    if pins.is_empty() {
        return Vec::new();
    }
    let names: Vec<String> = policies.iter().filter_map(|choice| name_of(choice)).collect();
    pins.iter().filter(|pin| !names.contains(&pin.name)).collect()
}

/// How the trace is replayed; all of it, without comparing bytes.
pub(super) fn replay_options(trace: &TraceOptions, policies: &PolicyOptions) -> Result<Options, Failure> {
    let gap = trace.session_gap;
    Ok(Options {
        limit: None,
        session_gap_us: whole("--session-gap", "seconds", gap, (gap * 1e6).round())?,
        swaps: policies.swap.clone(),
        shadow: None,
        verify: false,
    })
}

/// Opens a cache; tells what was asked for wrongly from what did not work.
pub(super) fn open(config: Config) -> Result<Cache, Failure> {
    Cache::open(config).map_err(|error| match error {
        OpenError::Store { source: StoreError::Full { .. } | StoreError::Io { .. }, .. } | OpenError::Thread { .. } => {
            Failure::work(error)
        }
        error => Failure::input(error),
    })
}

/// The same for a replay that did not end.
pub(super) fn replay_failure(error: ReplayError) -> Failure {
    match error {
        error @ (ReplayError::Misfit(_) | ReplayError::Swap { .. } | ReplayError::Shadow { .. }) => {
            Failure::input(error)
        }
        error => Failure::work(error),
    }
}

/// floor(x · 2^30), as the rules of a replay say.
pub(super) fn gib(option: &str, value: f64) -> Result<u64, Failure> {
    whole(option, "a number of GiB", value, (value * f64::from(1 << 30)).floor())
}

/// What an option's `value` comes to in the unit that is counted in.
pub(super) fn whole(option: &str, unit: &str, value: f64, counted: f64) -> Result<u64, Failure> {
    if counted.is_finite() && (0.0..1e18).contains(&counted) {
        Ok(counted as u64)
    } else {
        Err(Failure::input(anyhow!("{option} takes {unit} from 0 up, not {value}")))
    }
}
