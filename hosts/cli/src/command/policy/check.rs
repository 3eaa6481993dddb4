//! `reprise policy check`.

use anyhow::anyhow;

use super::{Failure, compiler, print};
use crate::{
    args::CheckPolicy,
    policy::{
        Subject,
        check::{Options, Outcome},
    },
    progress::spinner,
};

pub(super) fn run(arguments: &CheckPolicy) -> Result<(), Failure> {
    let CheckPolicy { policy, profile, events, json, quiet } = arguments;
    let subject = Subject::read_bare(policy, "policy check")?;
    let spinner = spinner(format!("checking {}", subject.origin), *quiet || *json);
    let outcome = Outcome::of(&subject, Options { profile: *profile, events: *events }, &compiler());
    spinner.finish_and_clear();
    let outcome = outcome?;
    print(&if *json { format!("{}\n", outcome.json()) } else { outcome.table() })?;
    match outcome.failures() {
        Some(0) => Ok(()),
        Some(failures) => {
            let checks = if failures == 1 { "1 check failed".to_owned() } else { format!("{failures} checks failed") };
            Err(Failure::work(anyhow!("{}: {checks}", subject.origin)))
        }
        None => Err(Failure::work(anyhow!("{} does not load", subject.origin))),
    }
}
