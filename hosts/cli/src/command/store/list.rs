//! `reprise store ls`.

use std::{
    io::{self, BufWriter, Write},
    ops::ControlFlow,
    path::Path,
};

use anyhow::anyhow;
use reprise::disk::{GroupClass, Recovered, tools::Found};
use serde_json::json;

use super::{Failure, failure, filter, read};
use crate::args::FilterOptions;

/// Digits of a digest that a person is shown.
const DIGEST_DIGITS: usize = 16;

pub(super) fn run(directory: &Path, options: &FilterOptions, limit: Option<u64>, json: bool) -> Result<(), Failure> {
    let store = read(directory)?;
    let filter = filter(&store, directory, options)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut left = limit.unwrap_or(u64::MAX);
    let mut damaged = 0_u64;
    let mut written = if json { Ok(()) } else { out.write_all(HEAD.as_bytes()) };
    let mut visit = |class: &GroupClass, found| {
        match found {
            Found::Record(record) if filter.fits(class.group, &record) && left > 0 => {
                left -= 1;
                let line = if json { as_json(class, &record) } else { as_text(class, &record) };
                written = out.write_all(line.as_bytes());
            }
            Found::Record(_) => {}
            Found::Damaged { .. } => damaged += 1,
        }
        if written.is_err() || left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    store.visit(&mut visit).map_err(failure)?;
    match written.and_then(|()| out.flush()) {
        // A reader that closed the pipe has read enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            return Err(Failure::work(anyhow!(error).context("writing the list to standard output")));
        }
        _ => {}
    }
    if damaged > 0 {
        eprintln!(
            "reprise: warning: {damaged} damaged table entries were left out; `reprise store verify` says where they are"
        );
    }
    Ok(())
}

const HEAD: &str =
    "group    namespace       slot   position             last use      bytes  digest            parent\n";

fn as_text(class: &GroupClass, record: &Recovered) -> String {
    let Recovered { slot, namespace, position, last_use, .. } = record;
    format!(
        "{:<10}{namespace:>8}{slot:>11}{position:>11}{last_use:>21}{:>11}  {:.DIGEST_DIGITS$}  {:.DIGEST_DIGITS$}\n",
        class.name,
        class.payload_bytes,
        record.digest.to_string(),
        record.parent.to_string(),
    )
}

fn as_json(class: &GroupClass, record: &Recovered) -> String {
    let line = json!({
        "group": class.name, "namespace": record.namespace, "slot": record.slot, "position": record.position,
        "last_use": record.last_use, "bytes": class.payload_bytes, "digest": record.digest.to_string(),
        "parent": record.parent.to_string(), "sequence": record.sequence,
    });
    format!("{line}\n")
}
