//! `reprise policy bench`.

use anyhow::anyhow;

use super::{Failure, compiler, print};
use crate::{
    args::BenchPolicies,
    policy::{
        Subject,
        bench::{self, Options},
    },
    progress::bar,
};

pub(super) fn run(arguments: &BenchPolicies) -> Result<(), Failure> {
    let BenchPolicies { policies, seconds, records, json, quiet } = arguments;
    let subjects = policies.iter().map(Subject::read).collect::<Result<Vec<_>, _>>()?;
    let bar = bar(bench::steps(subjects.len()), "turns", *quiet || *json);
    let mut begun = 0;
    let step = |what: &str| {
        bar.set_position(begun);
        bar.set_message(what.to_owned());
        begun += 1;
    };
    let outcome = bench::run(&subjects, Options { time: *seconds, records: *records }, &compiler(), step);
    bar.finish_and_clear();
    let outcome = outcome?;
    print(&if *json { format!("{}\n", outcome.json()) } else { outcome.table() })?;
    match outcome.failures().next() {
        Some((origin, failure)) => Err(Failure::work(anyhow!("{origin} failed: {failure}"))),
        None => Ok(()),
    }
}
