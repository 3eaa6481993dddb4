//! `reprise replay`.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use crate::replay::ShadowChoice;

use super::{CacheOptions, PlannerName, PolicyOptions, PriceOptions, TraceOptions};

/// What to replay, through which cache.
#[derive(Debug, Args)]
#[command(after_long_help = HELP)]
pub struct Replay {
    /// The trace.
    #[command(flatten)]
    pub trace: TraceOptions,
    /// Replay the first N requests, in order of arrival
    #[arg(long, value_name = "N", help_heading = "Trace")]
    pub limit: Option<usize>,

    /// The cache.
    #[command(flatten)]
    pub cache: CacheOptions,
    /// Keep records in this directory; what it holds from earlier is used
    #[arg(long, value_name = "DIR", conflicts_with = "dry_run", help_heading = "Cache")]
    pub store: Option<PathBuf>,
    /// Keep books only: decide everything, write and read nothing
    #[arg(long, help_heading = "Cache")]
    pub dry_run: bool,
    /// Read back and compare every loaded byte [default: true with a store]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true,
          action = ArgAction::Set, help_heading = "Cache")]
    pub verify: Option<bool>,

    /// The policies.
    #[command(flatten)]
    pub policies: PolicyOptions,
    /// How one of several exact plans is taken
    #[arg(long, value_name = "PLANNER", value_enum, default_value_t = PlannerName::MinCompute, help_heading = "Policies")]
    pub planner: PlannerName,
    /// Run a candidate beside the policies that serve, on books of its own with the same quotas, and report what it would have done:
    /// POLICY, or eviction=POLICY or checkpoints=POLICY; one for each seat
    #[arg(long, value_name = "POLICY", help_heading = "Policies")]
    pub shadow: Vec<ShadowChoice>,
    /// Exit with 3 if a policy failed, although the replay went on without it
    #[arg(long, help_heading = "Policies")]
    pub strict_policy: bool,
    /// What plans cost.
    #[command(flatten)]
    pub prices: PriceOptions,

    /// Replay one pool of equal blocks, the trace's own, by the rules of the public kvcache-simulator 0.1.3: no model, nothing
    /// stored, only the last half of the requests measured; `--eviction optimal` shows what is possible in hindsight
    #[arg(long, requires = "capacity_blocks", conflicts_with_all = TYPED_ONLY, help_heading = "Without types")]
    pub untyped: bool,
    /// Have --eviction fifo or lru mean the cache policy of that name instead of the simulator's own rule. The policy `lru` gives the
    /// same integers as the rule; the policy `fifo` keeps leaves only, which the rule does not
    #[arg(long, requires = "untyped", help_heading = "Without types")]
    pub as_policy: bool,
    /// Blocks that the pool of --untyped holds
    #[arg(long, value_name = "N", requires = "untyped", help_heading = "Without types")]
    pub capacity_blocks: Option<u32>,

    /// Print the result as one JSON object
    #[arg(long, help_heading = "Report")]
    pub json: bool,
    /// Show no progress bar
    #[arg(long, short, help_heading = "Report")]
    pub quiet: bool,
}

/// Options that mean nothing without types.
const TYPED_ONLY: [&str; 19] = [
    "budget_gib",
    "config",
    "session_gap",
    "model",
    "block_tokens",
    "history_gib",
    "window_gib",
    "store",
    "dry_run",
    "verify",
    "checkpoints",
    "planner",
    "no_replay",
    "swap",
    "shadow",
    "load_gib_per_second",
    "load_record_us",
    "prefill_rate",
    "prefill_context",
];

const HELP: &str = "\
Examples:
  reprise replay                                         the sample, on a real store
  reprise replay trace.jsonl.gz                          your trace, books only
  reprise replay trace.jsonl --checkpoints periodic:4096 --eviction fifo
  reprise replay trace.jsonl --eviction mine.wasm:ways=8 --swap 5000:eviction=lru
  reprise replay trace.jsonl --shadow mine.wasm          what mine.wasm would have done instead
  reprise replay trace.jsonl --store /mnt/nvme/cache --limit 1000 --json
  reprise replay trace.jsonl --config advice.toml        a cache as `reprise advise` wrote it down
  reprise replay trace.jsonl --budget-gib 64 --eviction auto --checkpoints adaptive
  reprise replay trace.jsonl --planner min-time --load-gib-per-second 0.4
  reprise replay trace.jsonl --untyped --capacity-blocks 7027 --eviction optimal
  reprise replay trace.jsonl --untyped --capacity-blocks 7027 --eviction mine.wasm

Exit status: 0 done; 1 the replay failed; 2 wrong arguments, trace or policy, nothing was touched; 3 a policy failed under
--strict-policy.";
