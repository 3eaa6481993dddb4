//! `reprise replay --untyped`.

use std::time::Instant;

use super::{Failure, print, setup::read};
use crate::{
    args,
    untyped::{Eviction, Options, Report, replay},
};

/// Replays with a pool of `capacity_blocks` blocks.
pub(super) fn run(arguments: &args::Replay, capacity_blocks: u32) -> Result<(), Failure> {
    let eviction: Eviction = arguments.policies.eviction.to_string().parse().map_err(Failure::input)?;
    let options = Options { capacity_blocks, eviction, limit: arguments.limit };
    let decoding = Instant::now();
    let trace = read(&arguments.trace).map_err(Failure::input)?;
    let decoding = decoding.elapsed();
    let outcome = replay(&trace, &options).map_err(Failure::input)?;
    let report = Report { trace: &trace, options: &options, outcome: &outcome, decoding };
    print(&if arguments.json { format!("{}\n", report.json()) } else { report.table() })
}
