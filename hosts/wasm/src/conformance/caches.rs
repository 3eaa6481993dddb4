//! What is expected of a cache policy.

use std::slice::from_ref;

use super::{
    endurance::{self, Endurance},
    group,
    report::{Calls, Report, quantiles},
    takes_its_settings,
    trial::Trial,
};
use crate::{component::Component, error::PolicyError};

/// States that nobody saved: a policy may refuse them or not, but has to live on.
fn hostile_states() -> [Vec<u8>; 6] {
    let counting: Vec<u8> = (0..=u8::MAX).collect();
    // A length that claims 4 GiB, in any of the ways in which a length is written.
    let mut boastful = vec![0xff; 16];
    boastful.extend_from_slice(&counting);
    [Vec::new(), vec![0], counting, boastful, vec![0xff; 64 << 10], vec![0; 64 << 10]]
}

/// A saved state is taken by a new instance, and garbage harms nobody.
pub(super) fn hand_over(component: &Component, trial: &mut Trial, tree: bool) -> Result<(), PolicyError> {
    let Some((schema, state)) = trial.save()? else { return Ok(()) };
    if !Trial::new(component, tree)?.load(schema, &state)? {
        return Err(PolicyError::Answer { call: "load", what: "it refuses what `save` gave".to_owned() });
    }
    let [_, _, garbage, ..] = hostile_states();
    Trial::new(component, tree)?.load(schema, &garbage).map(drop)
}

/// Checks everything and notes what came of it. `fuelled` is the same component in an engine that counts fuel.
pub(super) fn check(timed: &Component, fuelled: &Component, events: u64, report: &mut Report) {
    let trial = |tree: bool, part: fn(&mut Trial) -> Result<(), PolicyError>| {
        Trial::new(timed, tree).and_then(|mut trial| part(&mut trial))
    };
    report.note("an empty batch is no event, and nothing is named where nothing is", trial(true, Trial::nothing));
    report.note("events of unknown kinds are skipped", trial(true, Trial::unknown_kinds));
    for (tree, name) in [
        (true, "in a tree only leaves that are there and not pinned are named, each once"),
        (false, "without a tree only records that are there and not pinned are named, each once"),
    ] {
        let ran = Trial::new(timed, tree).and_then(|mut trial| trial.operations().map(|()| trial));
        if let Some(trial) = report.note(name, ran) {
            report.saw_memory(trial.memory_bytes());
        }
    }
    let more = |trial: &mut Trial| trial.operations().and_then(|()| trial.more_than_there_is());
    report.note("asked for more than there is, it names what there is", trial(true, more));
    report.note("the same events give the same answers and the same state in two instances", repeats(timed, fuelled));
    if timed.description().state_schema != 0 {
        let handed_over = Trial::run(timed, true).and_then(|mut trial| hand_over(timed, &mut trial, true));
        report.note("a new instance takes what an old one saved", handed_over);
        report.note("a state that nobody saved does no harm", survives_hostile_states(timed));
    }
    let made = |given: &[(String, String)]| timed.cache(given, from_ref(&group(32, true))).map(drop);
    report.note("it takes the settings it declares and refuses others", takes_its_settings(timed, made));
    let ran = endurance::caches(timed, events);
    if let Some(Endurance { mut times, memory_bytes, .. }) = report.note(endurance::NAME, ran) {
        report.saw_memory(memory_bytes);
        let calls = times.len() as u64;
        let fuel = report.note("it keeps to an amount of fuel", endurance::caches(fuelled, events.min(1 << 16)));
        report.calls = quantiles(&mut times).map(|(median, p99)| Calls {
            calls,
            items: events,
            median,
            p99,
            fuel_per_item: fuel.map(|ran| ran.fuel_per_item),
        });
    }
}

/// Two instances, one of them in an engine that measures otherwise, are told the same.
fn repeats(timed: &Component, fuelled: &Component) -> Result<(), String> {
    for tree in [true, false] {
        let run = |component: &Component| -> Result<_, PolicyError> {
            let mut trial = Trial::run(component, tree)?;
            Ok((trial.answers(), trial.save()?))
        };
        let said = |error: PolicyError| error.to_string();
        let (first, second) = (run(timed).map_err(said)?, run(fuelled).map_err(said)?);
        if first.0 != second.0 {
            return Err("their answers differ".to_owned());
        }
        if first.1 != second.1 {
            return Err("their answers are the same, what they save differs".to_owned());
        }
    }
    Ok(())
}

/// Loads garbage, with the right schema and with wrong ones, and lets the policy work on.
fn survives_hostile_states(component: &Component) -> Result<(), String> {
    let schema = component.description().state_schema;
    for (number, state) in hostile_states().iter().enumerate() {
        for schema in [schema, schema.wrapping_add(1), 0, u32::MAX] {
            let lived = Trial::new(component, true).and_then(|mut trial| {
                trial.load(schema, state)?;
                trial.operations()
            });
            lived
                .map_err(|error| format!("after state {number} of {} bytes, schema {schema}: {error}", state.len()))?;
        }
    }
    Ok(())
}
