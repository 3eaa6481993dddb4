//! `reprise replay --untyped`.

use std::time::Instant;

use anyhow::{Context, anyhow};
use reprise::{PolicyLoader, PolicyTerms};

use super::{
    Failure, print,
    setup::{idle_pins, read},
};
use crate::{
    args,
    policy::check_terms,
    untyped::{Eviction, Options, Paths, Report, Rule, replay_paths},
};

/// Replays with a pool of `capacity_blocks` blocks.
pub(super) fn run(arguments: &args::Replay, capacity_blocks: u32) -> Result<(), Failure> {
    let options = Options { capacity_blocks, eviction: eviction(arguments, capacity_blocks)? };
    let decoding = Instant::now();
    let trace = read(&arguments.trace).map_err(Failure::input)?;
    let decoding = decoding.elapsed();
    let paths = Paths::of(&trace, arguments.limit).map_err(Failure::input)?;
    let outcome = replay_paths(&paths, &options).map_err(Failure::input)?;
    let policies = &arguments.policies;
    for pin in idle_pins(&policies.pin, &[&policies.eviction]) {
        eprintln!("reprise: warning: --pin {pin}: no policy of this run calls itself `{}`", pin.name);
    }
    if let Some(failure) = &outcome.failure {
        eprintln!(
            "reprise: warning: eviction policy `{}`, request {}: {}; leaf LRU decides in its place",
            failure.policy, failure.request, failure.error
        );
    }
    let numbering = paths.elapsed();
    let report =
        Report { trace: &trace, options: &options, limit: arguments.limit, outcome: &outcome, decoding, numbering };
    print(&if arguments.json { format!("{}\n", report.json()) } else { report.table() })?;
    if arguments.strict_policy && outcome.failure.is_some() {
        return Err(Failure::Policy(anyhow!(
            "the policy failed, see the warning; the replay went on without it, and --strict-policy was given"
        )));
    }
    Ok(())
}

/// The rule or policy that was asked for.
fn eviction(arguments: &args::Replay, capacity_blocks: u32) -> Result<Eviction, Failure> {
    let policies = &arguments.policies;
    let choice = &policies.eviction;
    if !arguments.as_policy
        && let Some(rule) = Rule::named(choice)
    {
        return Ok(rule.into());
    }
    let pins = policies.pin.iter().cloned().collect();
    if !policies.native {
        check_terms(choice, policies.policy_profile, &pins).map_err(Failure::Input)?;
    }
    let records = capacity_blocks.into();
    let terms = PolicyTerms { native: policies.native, profile: policies.policy_profile, pins, records };
    let rules = Rule::ALL.map(Rule::name).join(", ");
    Eviction::policy(choice, &PolicyLoader::new(terms))
        .with_context(|| format!("`{choice}` is none of the rules of a replay without types ({rules}), and no policy"))
        .map_err(Failure::Input)
}
