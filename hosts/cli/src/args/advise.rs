//! `reprise advise`.

use std::{num::NonZeroUsize, path::PathBuf};

use clap::Args;

use super::TraceOptions;

/// For which trace, machine and budget to choose.
#[derive(Debug, Args)]
#[command(after_long_help = HELP)]
pub struct Advise {
    /// The trace.
    #[command(flatten)]
    pub trace: TraceOptions,
    /// Go by the first N requests, in order of arrival [default: as many as have 16 million blocks]
    #[arg(long, value_name = "N", help_heading = "Trace")]
    pub limit: Option<usize>,

    /// Model: a preset, with options behind a colon (`v4-flash:indexer=fp8,draft=on`), or a .toml file
    /// [default: v4-pro; v4-flash for the sample]
    #[arg(long, value_name = "MODEL", help_heading = "Cache")]
    pub model: Option<String>,
    /// Tokens per block, a multiple of the model's compression ratios
    #[arg(long, value_name = "B", default_value_t = 128, help_heading = "Cache")]
    pub block_tokens: u32,
    /// What there is for compressed entries and window checkpoints together, in GiB; needed with a TRACE [default for the sample: 0.6]
    #[arg(long, value_name = "GIB", allow_negative_numbers = true, help_heading = "Machine")]
    pub budget_gib: Option<f64>,
    /// Never replay tokens to rebuild windows
    #[arg(long, help_heading = "Cache")]
    pub no_replay: bool,

    /// GiB per second that the disk reads, with verification (`reprise bench disk`) [default: 0.66]
    #[arg(long, value_name = "GIB", allow_negative_numbers = true, help_heading = "Machine")]
    pub disk_gib_per_second: Option<f64>,
    /// GiB per second from host memory to the accelerators [default: not the bottleneck]
    #[arg(long, value_name = "GIB", allow_negative_numbers = true, help_heading = "Machine")]
    pub pcie_gib_per_second: Option<f64>,
    /// Microseconds that a load takes for each record besides its bytes [default: 49]
    #[arg(long, value_name = "US", allow_negative_numbers = true, help_heading = "Machine")]
    pub load_record_us: Option<f64>,
    /// Prefill rate in tokens per second at the start of a context [default: 55866]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Machine")]
    pub prefill_rate: Option<u32>,
    /// Nanoseconds that a token takes longer for each 1,024 tokens of context before it [default: 61.7]
    #[arg(long, value_name = "NS", allow_negative_numbers = true, help_heading = "Machine")]
    pub prefill_context: Option<f64>,
    /// Times a day that the budget may be written over, at the pace of the trace: what the device's warranty allows [default: any number]
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Machine")]
    pub writes_per_day: Option<f64>,

    /// Write what was chosen to FILE, a configuration that `reprise replay --config` and `Config::from_toml` load
    #[arg(long, short, value_name = "FILE", help_heading = "Report")]
    pub out: Option<PathBuf>,
    /// Print the result as one JSON object
    #[arg(long, help_heading = "Report")]
    pub json: bool,
    /// Show no progress bar
    #[arg(long, short, help_heading = "Report")]
    pub quiet: bool,
    /// Replays at once [default: one for each core]
    #[arg(long, short, value_name = "N", help_heading = "Report")]
    pub jobs: Option<NonZeroUsize>,
}

const HELP: &str = "\
The trace is replayed on paper under every pair of shipped eviction and checkpoint policies, with the budget split in several ways; the
best pairs are then tried with splits and periods in between. What counts is the modelled time until prompts are in place: prefill of what
is not taken from the cache, and loads at the rate of the disk or of PCIe, whichever is slower. A plan that is slower to load
than to compute is not made (--planner min-time). The result does not depend on the number of jobs.

Examples:
  reprise advise trace.jsonl.gz --budget-gib 64
  reprise advise trace.jsonl --budget-gib 512 --disk-gib-per-second 6 --pcie-gib-per-second 25 --prefill-rate 20000
  reprise advise trace.jsonl --budget-gib 512 --writes-per-day 3
  reprise advise trace.jsonl --budget-gib 64 --out advice.toml && reprise replay trace.jsonl --config advice.toml

Exit status: 0 done; 1 the work failed; 2 wrong arguments or trace, nothing was replayed.";
