//! `reprise bench`.

use anyhow::{Context, anyhow};

use super::{Failure, print};
use crate::{
    args::{BenchCommand, DiskBench},
    bench::{self, Options},
    figures::human_bytes,
    progress::bar,
};

/// The most bytes of records under way at once. The benchmark has several times as many in memory.
const MOST_UNDER_WAY_BYTES: u64 = 1 << 30;

pub(super) fn run(command: BenchCommand) -> Result<(), Failure> {
    match command {
        BenchCommand::Disk(arguments) => disk(arguments),
    }
}

fn disk(arguments: DiskBench) -> Result<(), Failure> {
    check(&arguments).map_err(Failure::Input)?;
    let options = Options {
        directory: arguments.directory,
        record_bytes: arguments.record_bytes,
        records: arguments.records,
        depth: arguments.depth.into(),
        rounds: arguments.rounds,
        turn: arguments.seconds,
        fio: if arguments.fio { Some(fio().map_err(Failure::Input)?) } else { None },
    };
    let bar = bar(options.steps(), "steps", arguments.quiet || arguments.json);
    let place = |path: &std::path::Path| {
        bar.suspend(|| eprintln!("reprise: the data goes to {}, which is removed at the end", path.display()));
    };
    let mut begun = 0;
    let step = |what: &str| {
        bar.set_position(begun);
        bar.set_message(what.to_owned());
        begun += 1;
    };
    let outcome = bench::run(options, place, step);
    bar.finish_and_clear();
    let outcome = outcome.map_err(Failure::Work)?;
    print(&if arguments.json { format!("{}\n", outcome.json()) } else { outcome.table() })?;
    match outcome.wrong_bytes() {
        0 => Ok(()),
        wrong => Err(Failure::work(anyhow!(
            "{wrong} bytes came back from the store other than they were put: keep no cache here, and check memory and device"
        ))),
    }
}

/// Refuses what cannot be measured, before anything is written.
fn check(arguments: &DiskBench) -> anyhow::Result<()> {
    let DiskBench { directory, record_bytes, records, depth, .. } = arguments;
    let metadata = directory.metadata();
    let metadata =
        metadata.with_context(|| format!("looking at {}; --dir takes a directory that exists", directory.display()))?;
    if !metadata.is_dir() {
        return Err(anyhow!("--dir takes a directory, and {} is a file", directory.display()));
    }
    if let Some(records) = records.filter(|records| *records < u32::from(*depth)) {
        return Err(anyhow!(
            "{records} records are fewer than the {depth} that are to be under way at once: give --records more, or --depth less"
        ));
    }
    let under_way_bytes = record_bytes * u64::from(*depth);
    if under_way_bytes > MOST_UNDER_WAY_BYTES {
        let (bytes, most) = (human_bytes(under_way_bytes), human_bytes(MOST_UNDER_WAY_BYTES));
        return Err(anyhow!(
            "records under way at once would be {bytes} in memory, and {most} are possible: give --depth or --record-bytes less"
        ));
    }
    Ok(())
}

fn fio() -> anyhow::Result<String> {
    let version = bench::fio_version().context("running fio for its version")?;
    version.ok_or_else(|| anyhow!("fio is not on the path: install it, or leave --fio out"))
}
