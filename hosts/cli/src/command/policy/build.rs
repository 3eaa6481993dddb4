//! `reprise policy build`.

use anyhow::anyhow;

use super::{Failure, compiler, print};
use crate::{args::BuildPolicy, policy::build};

pub(super) fn run(arguments: &BuildPolicy) -> Result<(), Failure> {
    let BuildPolicy { source, output, json } = arguments;
    let say = |what: &str| eprintln!("reprise: {what}");
    let built = build::build(source, output.as_deref(), &compiler(), say)?;
    print(&if *json { format!("{}\n", built.json()) } else { built.table() })?;
    match built.refused() {
        Some(reason) => {
            Err(Failure::work(anyhow!("{} was built and would be refused: {reason}", built.path().display())))
        }
        None => Ok(()),
    }
}
