//! `reprise plan`.

use std::fs;

use anyhow::{Context, anyhow};
use reprise::{Cache, Config, Namespace, Plan};

use super::{
    Failure, print,
    setup::{check, configure, open, read, replay_failure, replay_options},
    watch::Watch,
};
use crate::{
    args::{self, StoreOptions},
    plan::{Report, Snapshot, SnapshotError, Source, TokenFormat, read_tokens},
    replay::{Planned, plan},
};

pub(super) fn run(arguments: &args::Plan) -> Result<(), Failure> {
    let sample = arguments.trace.trace.is_none() && arguments.request.is_some();
    let pricing = (arguments.planner.into(), &arguments.prices);
    // What a store holds is read by --store alone: planning opens none.
    let config = Config { store: None, ..configure(&arguments.cache, &arguments.policies, pricing, sample)? };
    match arguments.request {
        Some(number) => plan_request(arguments, config, number),
        None => plan_tokens(arguments, config),
    }
}

fn plan_request(arguments: &args::Plan, config: Config, number: u64) -> Result<(), Failure> {
    let trace = read(&arguments.trace).map_err(Failure::input)?;
    let beyond = || {
        let (name, requests) = (&trace.name, trace.requests.len());
        Failure::input(anyhow!("{name} has {requests} requests: --request cannot be {number}"))
    };
    if number > trace.requests.len() as u64 {
        return Err(beyond());
    }
    check(&arguments.policies.swap, &config, &trace)?;
    let options = replay_options(&arguments.trace, &arguments.policies)?;
    let cache = open(config)?;
    let mut watch = Watch::new(number - 1, arguments.json);
    let mut progress = |done: u64, _decisions: u64, cache: &Cache| watch.progress(done, cache);
    let planned = plan(&cache, &trace, &options, (number, arguments.at_most), &mut progress);
    watch.finish(&cache);
    let Planned { plan, failed_swaps } = planned.map_err(replay_failure)?.ok_or_else(beyond)?;
    watch.failures(&failed_swaps);
    show(arguments, Source::Request { number, trace: &trace.name }, &cache, &plan)
}

fn plan_tokens(arguments: &args::Plan, config: Config) -> Result<(), Failure> {
    let (Some(file), Some(directory)) = (&arguments.store.tokens, &arguments.store.store) else {
        return Err(Failure::input(anyhow!(
            "there is nothing to plan: give --request N, or --tokens FILE with --store DIR"
        )));
    };
    let format = if arguments.store.u32le { TokenFormat::U32Le } else { TokenFormat::Text };
    let tokens = read_tokens(file, format).map_err(Failure::input)?;
    let namespace = namespace(&arguments.store, &config)?;
    let snapshot = Snapshot::take(directory, config, &namespace).map_err(|error| match error {
        SnapshotError::Copy { .. } | SnapshotError::Open(_) => Failure::work(error),
        error => Failure::input(error),
    })?;
    let cache = snapshot.cache();
    let mut sequence = snapshot.namespace().sequence(&tokens);
    let now = cache.recovery().last_use + 1;
    let plan = sequence.plan_at_most(now, arguments.at_most).map_err(Failure::work)?;
    let (file, store) = (&file.display().to_string(), &directory.display().to_string());
    show(arguments, Source::Tokens { file, store }, cache, &plan)
}

fn namespace(options: &StoreOptions, config: &Config) -> Result<Namespace, Failure> {
    let tenant = match &options.tenant_file {
        None => Vec::new(),
        Some(path) => fs::read(path)
            .with_context(|| format!("reading the tenant's salt in {}", path.display()))
            .map_err(Failure::Input)?,
    };
    let model = options.name.clone().unwrap_or_else(|| config.model.name().to_owned());
    let (rank, ranks) = options.rank;
    Ok(Namespace {
        tenant,
        adapter: options.adapter.clone().unwrap_or_default(),
        rank,
        ranks,
        extensions: options.extension.iter().cloned().collect(),
        ..Namespace::new(model, options.revision.clone().unwrap_or_default()).block_tokens(config.block_tokens)
    })
}

fn show(arguments: &args::Plan, source: Source<'_>, cache: &Cache, plan: &Plan) -> Result<(), Failure> {
    let report = Report { source, cache, plan };
    print(&if arguments.json { format!("{}\n", report.json()) } else { report.table() })
}
