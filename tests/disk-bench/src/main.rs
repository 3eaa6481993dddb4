//! The disk store of Reprise against what else could keep the same records: see README.md.

mod contender;
mod files;
mod hybrid;
mod interrupt;
mod machine;
mod measure;
mod raw;
mod records;
mod store;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use tikv_jemallocator::Jemalloc;

use contender::Contender;
use files::Files;
use hybrid::{Engine, Foyer};
use machine::{free_bytes, gib, is_tmpfs, load, sync_file_system};
use raw::Raw;
use records::Records;
use store::Reprise;
use table::Row;

/// foyer takes new memory for every read. The C library's allocator would give each back to the kernel, and the page faults
/// would be half of what foyer costs.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// Bytes of all records, unless told otherwise.
const DATA_BYTES: u64 = 2 << 30;

/// Writes and reads the same records through the store of Reprise, foyer, a file per record, and plainly, by turns, and
/// prints one table. Everything it writes is removed at the end.
#[derive(Parser)]
struct Arguments {
    /// A directory on the device; on tmpfs, the software's own cost shows
    #[arg(long)]
    dir: PathBuf,
    /// Bytes of a record; the default is a block of DeepSeek-V4-Pro
    #[arg(long, default_value_t = 644_024, value_parser = clap::value_parser!(u32).range(64..))]
    record_bytes: u32,
    /// How many records; the default is 2 GiB of them. They take a quarter of the free space at most
    #[arg(long)]
    records: Option<usize>,
    /// How many reads or writes are under way at once
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1024))]
    depth: u32,
    /// How long each contender reads in a round, at least
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// How often each contender has its turn
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Print what every round brought, as JSON
    #[arg(long)]
    json: bool,
}

impl Arguments {
    fn records(&self) -> Result<Records> {
        let bytes = self.record_bytes as usize;
        let wanted = self.records.unwrap_or((DATA_BYTES / u64::from(self.record_bytes)) as usize);
        let fit = free_bytes(&self.dir)? / 4 / bytes.next_multiple_of(4096) as u64;
        let count = wanted.min(usize::try_from(fit)?);
        ensure!(
            count > 0,
            "no room for records in {}: choose another --dir or fewer --record-bytes",
            self.dir.display()
        );
        Ok(Records::new(count, bytes))
    }

    /// All of them, the one that the others are held against last.
    fn contenders(&self) -> Result<Vec<Box<dyn Contender>>> {
        let depth = self.depth as usize;
        Ok(vec![
            Box::new(Reprise { depth }),
            Box::new(Foyer { depth, engine: Engine::Uring }),
            Box::new(Foyer { depth, engine: Engine::Psync }),
            Box::new(Files { depth }),
            Box::new(Raw { depth, in_memory: is_tmpfs(&self.dir)? }),
        ])
    }

    fn run(&self, records: &Records) -> Result<Vec<Row>> {
        let contenders = self.contenders()?;
        let seconds = Duration::try_from_secs_f64(self.seconds).context("--seconds is not a time")?;
        let mut rows: Vec<Row> =
            contenders.iter().map(|contender| Row { name: contender.name(), turns: Vec::new() }).collect();
        for round in 0..self.rounds as usize {
            for at in 0..contenders.len() {
                // Each round begins with another one.
                let index = (round + at) % contenders.len();
                sync_file_system(&self.dir)?;
                let place = tempfile::Builder::new()
                    .prefix("reprise-disk-bench-")
                    .tempdir_in(&self.dir)
                    .with_context(|| format!("making a directory in {}", self.dir.display()))?;
                eprintln!("round {} of {}: {}", round + 1, self.rounds, rows[index].name);
                let turn = measure::turn(&*contenders[index], place.path(), records, seconds)?;
                place.close().context("removing the records")?;
                rows[index].turns.push(turn);
            }
        }
        Ok(rows)
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    interrupt::listen()?;
    let records = arguments.records()?;
    let load_before = load();
    let rows = arguments.run(&records)?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
        return Ok(());
    }
    println!(
        "{} records of {} bytes ({:.2} GiB), depth {}, median of {} rounds, load {load_before} before and {} after\n",
        records.count,
        records.bytes,
        gib(records.total_bytes()),
        arguments.depth,
        arguments.rounds,
        load(),
    );
    println!("{}", table::render(&rows));
    println!("CPU is user and system time of this process; work of kernel threads is not in it.");
    if is_tmpfs(&arguments.dir)? {
        println!(
            "{} is in memory: there is no device, no O_DIRECT and no page cache to drop.",
            arguments.dir.display()
        );
        return Ok(());
    }
    for name in table::cached(&rows) {
        println!("{name}: part of what was read came from the page cache, which could not be dropped.");
    }
    Ok(())
}
