//! `reprise policy inspect`.

use anyhow::anyhow;
use reprise::PolicyChoice;

use super::{Failure, compiler, print};
use crate::{
    policy::{Subject, inspect::Findings},
    progress::spinner,
};

pub(super) fn run(policy: &PolicyChoice, json: bool) -> Result<(), Failure> {
    let subject = Subject::read_bare(policy, "policy inspect")?;
    let spinner = spinner(format!("loading {}", subject.origin), json);
    let findings = Findings::of(&subject, &compiler());
    spinner.finish_and_clear();
    let findings = findings?;
    print(&if json { format!("{}\n", findings.json()) } else { findings.table() })?;
    match findings.refused() {
        Some(reason) => Err(Failure::work(anyhow!("{reason}"))),
        None => Ok(()),
    }
}
