//! `reprise bench`.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand};

/// Measure what the store costs on this machine.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Puts and gets of the store, by turns with plain reads and writes of the same size
    #[command(long_about = DISK_ABOUT, after_long_help = DISK_HELP)]
    Disk(DiskBench),
}

/// What to measure, and where.
#[derive(Debug, Args)]
pub struct DiskBench {
    /// Directory on the device, which must exist; all that is written goes to a temporary directory in it
    #[arg(long = "dir", value_name = "DIR")]
    pub directory: PathBuf,
    /// Bytes of a record [default: those of a block of v4-pro]
    #[arg(long, value_name = "N", default_value_t = 644_024, hide_default_value = true,
          value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    pub record_bytes: u64,
    /// Records of the store, and of the plain file [default: as many as there is room for]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub records: Option<u32>,
    /// Records under way at once
    #[arg(long, value_name = "Q", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub depth: u16,
    /// Seconds of a turn
    #[arg(long, value_name = "S", default_value = "2", allow_negative_numbers = true, value_parser = seconds)]
    pub seconds: Duration,
    /// Turns of each contender in each direction
    #[arg(long, value_name = "R", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// Have fio take its turns as well, by io_uring
    #[arg(long)]
    pub fio: bool,

    /// Print the result as one JSON object
    #[arg(long, help_heading = "Report")]
    pub json: bool,
    /// Show no progress bar
    #[arg(long, short, help_heading = "Report")]
    pub quiet: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.001..=3600.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "a turn is 0.001 to 3600 seconds".to_owned())
}

const DISK_ABOUT: &str = "\
Puts and gets of the store, by turns with plain reads and writes of the same size.

The machine should be idle: what else runs is in the figures. The data takes a quarter of what is free at most, and no more than
4 GiB in all. The temporary directory is named first and removed at the end; after Ctrl-C, remove it by hand.";

const DISK_HELP: &str = "\
What the figures mean:
  store         batches of the store, as an engine gives them; every get is verified by checksum
  raw           pread and pwrite of as many bytes, rounded up to 4 KiB, on as many threads as --depth, in a preallocated file;
                past the page cache if the store is, and then nothing is verified
  fio           random transfers of that size and depth on that file
  GiB/s         bytes of records, without what rounding adds
  store / this  how many times as fast the store was, in turns that came one after the other
  CPU s/GiB     seconds of the processor, user and system, that a GiB of records takes; fio's are what fio says, if
                it is past the page cache
  latency       from the call with a batch until the record is there. Up to three batches of --depth are handed in at once, so
                most of it is waiting behind other records

No side syncs within a turn. All figures are medians over the rounds, but latencies are over all records. Each record is held
against what was put, byte by byte, before and after the rounds.

Where the store has no direct input and output, as on tmpfs, no device is measured but the software's own cost: single puts and
gets of the store by turns with a pwrite or pread and an XXH3 checksum of the record, both on one thread, with one buffer.

Examples:
  reprise bench disk --dir /mnt/nvme
  reprise bench disk --dir /mnt/nvme --fio --rounds 7 --seconds 5 --json
  reprise bench disk --dir /dev/shm --record-bytes 65536

Exit status: 0 done; 1 the work failed, or wrong bytes came back; 2 wrong arguments, no such directory, or no fio.";
