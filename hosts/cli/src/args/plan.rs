//! `reprise plan`.

use std::path::PathBuf;

use clap::Args;

use super::{CacheOptions, PlannerName, PolicyOptions, PriceOptions, TraceOptions};

/// What to plan, for which cache, at what prices.
#[derive(Debug, Args)]
#[command(after_long_help = HELP)]
pub struct Plan {
    /// The trace.
    #[command(flatten)]
    pub trace: TraceOptions,
    /// Plan request N, in order of arrival, after those before it were replayed
    #[arg(long, value_name = "N", required_unless_present = "tokens", help_heading = "Trace",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub request: Option<u64>,

    /// The store, and the prompt to plan against it.
    #[command(flatten)]
    pub store: StoreOptions,
    /// The cache.
    #[command(flatten)]
    pub cache: CacheOptions,

    /// The policies.
    #[command(flatten)]
    pub policies: PolicyOptions,
    /// How one of several exact plans is taken
    #[arg(long, value_name = "PLANNER", value_enum, default_value_t = PlannerName::MinTime, help_heading = "Policies")]
    pub planner: PlannerName,
    /// Adopt at most N tokens of the prompt
    #[arg(long, value_name = "N", default_value_t = u32::MAX, hide_default_value = true, help_heading = "Policies")]
    pub at_most: u32,
    /// What plans cost.
    #[command(flatten)]
    pub prices: PriceOptions,

    /// Print the result as one JSON object
    #[arg(long, help_heading = "Report")]
    pub json: bool,
}

/// A prompt, the store to plan it against, and the namespace to look in.
#[derive(Debug, Args)]
pub struct StoreOptions {
    /// Token ids of the prompt: a JSON array, or numbers between white space
    #[arg(long, value_name = "FILE", requires_all = ["store", "revision"], conflicts_with_all = TRACE_ONLY, help_heading = "Store")]
    pub tokens: Option<PathBuf>,
    /// Take the file of --tokens as little-endian 32-bit numbers
    #[arg(long, requires = "tokens", help_heading = "Store")]
    pub u32le: bool,
    /// Directory of the store; --model and --block-tokens are those that it was written with
    #[arg(long, value_name = "DIR", requires = "tokens", help_heading = "Store")]
    pub store: Option<PathBuf>,
    /// Revision of the weights, as in the namespace that the store was written under
    #[arg(long, value_name = "REVISION", requires = "tokens", help_heading = "Store")]
    pub revision: Option<String>,
    /// Name of the model in the namespace [default: the name of --model]
    #[arg(long, value_name = "NAME", requires = "tokens", help_heading = "Store")]
    pub name: Option<String>,
    /// File whose bytes are the tenant's secret salt [default: no tenant]
    #[arg(long, value_name = "FILE", requires = "tokens", help_heading = "Store")]
    pub tenant_file: Option<PathBuf>,
    /// Adapter, named as in the namespace [default: the base model]
    #[arg(long, value_name = "ADAPTER", requires = "tokens", help_heading = "Store")]
    pub adapter: Option<String>,
    /// Tensor-parallel rank and the number of ranks
    #[arg(long, value_name = "RANK/RANKS", default_value = "0/1", value_parser = rank, requires = "tokens", help_heading = "Store")]
    pub rank: (u32, u32),
    /// Extension of the namespace; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = extension, requires = "tokens", help_heading = "Store")]
    pub extension: Vec<(String, String)>,
}

/// Options that mean nothing where a file is planned against a store.
const TRACE_ONLY: [&str; 10] = [
    "trace",
    "request",
    "format",
    "trace_block",
    "session_gap",
    "skip_bad",
    "history_gib",
    "window_gib",
    "eviction",
    "swap",
];

fn rank(text: &str) -> Result<(u32, u32), String> {
    let numbers = text.split_once('/').and_then(|(rank, ranks)| Some((rank.parse().ok()?, ranks.parse().ok()?)));
    numbers.ok_or_else(|| "a rank is written RANK/RANKS, for instance 0/8".to_owned())
}

fn extension(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(key, _)| !key.is_empty());
    parts.map(|(key, value)| (key.into(), value.into())).ok_or_else(|| "an extension is written KEY=VALUE".to_owned())
}

const HELP: &str = "\
Examples:
  reprise plan --request 20                              request 20 of the sample
  reprise plan trace.jsonl.gz --request 5000 --window-gib 2 --checkpoints periodic:4096
  reprise plan trace.jsonl.gz --request 5000 --load-gib-per-second 0.3 --prefill-rate 8000
  reprise plan --tokens prompt.json --store /mnt/nvme/cache --name deepseek-v4 --revision 3f2a

Prompts of a store that an engine names by keys of its own cannot be given as tokens.

Exit status: 0 done; 1 the work failed; 2 wrong arguments or input, or no such request, store or namespace.";
