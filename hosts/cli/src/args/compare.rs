//! `reprise compare`.

use std::{num::NonZeroUsize, path::PathBuf};

use clap::Args;
use reprise::PolicyProfile;

use super::{PlannerName, PriceOptions};
use crate::trace::Format;

/// Which traces, policies and budgets to compare.
#[derive(Debug, Args)]
#[command(after_long_help = HELP)]
pub struct Compare {
    /// Traces: files (plain, .gz or .zst; `-` for standard input) or directories of kv-cache-tester sessions
    /// [default: the sample that `reprise replay` has]
    #[arg(value_name = "TRACE")]
    pub traces: Vec<PathBuf>,

    /// Format of the traces [default: recognised by their content]
    #[arg(long, value_name = "FORMAT", help_heading = "Traces")]
    pub format: Option<Format>,
    /// Tokens per id, for formats that do not say [default: 512 for Mooncake, 16 for Bailian]
    #[arg(long, value_name = "S", help_heading = "Traces")]
    pub trace_block: Option<u32>,
    /// Seconds between the starts of sessions, for traces whose times count from the start of a session
    #[arg(long, value_name = "S", default_value_t = 120.0, allow_negative_numbers = true, help_heading = "Traces")]
    pub session_gap: f64,
    /// Leave bad lines out and count them, instead of stopping at the first
    #[arg(long, help_heading = "Traces")]
    pub skip_bad: bool,
    /// Take the first N requests of each trace, in order of arrival (in file order with --untyped)
    #[arg(long, value_name = "N", help_heading = "Traces")]
    pub limit: Option<usize>,

    /// A policy: EVICTION[+CHECKPOINTS], each a shipped name or FILE.wasm, settings behind a colon; checkpoints are `events` unless said.
    /// May be repeated [default: every shipped eviction policy with `events`, and the first of them with every other checkpoint policy;
    /// with --untyped all that it knows]
    #[arg(long = "policy", value_name = "POLICY", help_heading = "Grid")]
    pub policies: Vec<String>,
    /// Budgets in GiB, each for both groups together [default: six powers of two up to all that the trace ever asks for]
    #[arg(long, value_name = "GIB,…", value_delimiter = ',', allow_negative_numbers = true, help_heading = "Grid")]
    pub budget_gib: Vec<f64>,
    /// Give windows this share of every budget, in percent with one digit at most, instead of searching for the best share
    #[arg(long, value_name = "PERCENT", help_heading = "Grid")]
    pub window_share: Option<f64>,

    /// Model: a preset, with options behind a colon (`v4-flash:indexer=fp8,draft=on`), or a .toml file
    /// [default: v4-pro; v4-flash for the sample]
    #[arg(long, value_name = "MODEL", help_heading = "Cache")]
    pub model: Option<String>,
    /// Tokens per block, a multiple of the model's compression ratios
    #[arg(long, value_name = "B", default_value_t = 128, help_heading = "Cache")]
    pub block_tokens: u32,
    /// How one of several exact plans is taken
    #[arg(long, value_name = "PLANNER", value_enum, default_value_t = PlannerName::MinCompute, help_heading = "Cache")]
    pub planner: PlannerName,
    /// Never replay tokens to rebuild windows: go on from checkpoints only
    #[arg(long, help_heading = "Cache")]
    pub no_replay: bool,
    /// The widest set of WebAssembly features that a policy may use: integer, compiled or interpreted
    #[arg(long, value_name = "PROFILE", default_value_t, help_heading = "Cache")]
    pub policy_profile: PolicyProfile,
    /// Run shipped policies as components, too; the figures are the same, and it takes longer
    #[arg(long, help_heading = "Cache")]
    pub components: bool,
    /// What loading and computing cost.
    #[command(flatten)]
    pub prices: PriceOptions,

    /// Compare on one pool of equal blocks, the trace's own, as `reprise replay --untyped` does: no model, no windows
    #[arg(long, requires = "capacity_blocks", conflicts_with_all = TYPED_ONLY, help_heading = "Without types")]
    pub untyped: bool,
    /// Blocks that the pool holds, one column for each
    #[arg(long, value_name = "N,…", value_delimiter = ',', requires = "untyped", help_heading = "Without types")]
    pub capacity_blocks: Vec<u32>,

    /// Directory for results.csv, results.json, report.html and the journal of finished replays
    #[arg(long, short, value_name = "DIR", default_value = "reprise-compare", help_heading = "Report")]
    pub out: PathBuf,
    /// Forget what the journal in the directory holds, and start again
    #[arg(long, help_heading = "Report")]
    pub fresh: bool,
    /// Print the tables as Markdown
    #[arg(long, conflicts_with = "json", help_heading = "Report")]
    pub markdown: bool,
    /// Print what results.json holds
    #[arg(long, help_heading = "Report")]
    pub json: bool,
    /// Show no progress bar
    #[arg(long, short, help_heading = "Report")]
    pub quiet: bool,
    /// Replays at once [default: one for each core]
    #[arg(long, short, value_name = "N", help_heading = "Report")]
    pub jobs: Option<NonZeroUsize>,
}

/// Options that mean nothing without types.
const TYPED_ONLY: [&str; 11] = [
    "session_gap",
    "budget_gib",
    "window_share",
    "model",
    "block_tokens",
    "planner",
    "no_replay",
    "load_gib_per_second",
    "load_record_us",
    "prefill_rate",
    "prefill_context",
];

const HELP: &str = "\
Every trace is replayed under every policy at every budget. A budget is divided between compressed entries (history) and window
checkpoints; the share that saves most tokens is searched for, first among eight shares, then between the best and its neighbours, and
reported. Finished replays are kept in DIR/journal.jsonl: a run that was stopped, or is given more policies or budgets, goes on from
there. The same inputs give the same files, whatever the number of jobs.

Examples:
  reprise compare                                        the sample, all shipped policies
  reprise compare chat.jsonl.gz agents.jsonl.gz          your traces, budgets to fit each
  reprise compare chat.jsonl --policy lru --policy two-hit+periodic:4096 --budget-gib 16,64,256
  reprise compare chat.jsonl --policy lru --policy mine.wasm:ways=8+events --out mine-or-lru
  reprise compare chat.jsonl --window-share 20           one replay for each policy and budget
  reprise compare chat.jsonl --untyped --capacity-blocks 439,1756,7027 --markdown

Exit status: 0 done; 1 the work failed; 2 wrong arguments, trace or policy, nothing was replayed. A policy that fails on its way is
marked in the tables with the reason, and has no figures.";
