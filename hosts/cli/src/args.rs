//! The command line.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use reprise::{Planner, PolicyChoice};

use crate::{replay::Swap, trace::Format};

/// KV prefix cache for models whose cache is of several types: see on your own trace what it keeps, spares and costs.
#[derive(Debug, Parser)]
#[command(name = "reprise", version, arg_required_else_help = true, max_term_width = 120, after_help = EXIT_STATUS)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_STATUS: &str = "\
Exit status: 0 done; 1 the work failed; 2 wrong arguments or input, nothing was touched; 3 a policy failed under
`replay --strict-policy`.";

/// What can be done.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Replay a request trace through the cache and say what it spared
    Replay(Box<Replay>),
    /// Work with traces
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Look at a store
    #[command(subcommand)]
    Store(StoreCommand),
    /// Say what a policy is and which settings it takes
    #[command(subcommand)]
    Policy(PolicyCommand),
}

/// Replay a request trace through the cache and say what it spared.
///
/// Without TRACE, a sample of real coding-agent sessions is replayed against a real store in a temporary directory, with quotas small
/// enough that eviction, dropped checkpoints and replayed windows show. With TRACE and without --store, books are kept and
/// nothing is written (--dry-run).
#[derive(Debug, Args)]
#[command(after_long_help = REPLAY_HELP)]
pub struct Replay {
    /// Trace file (plain, .gz or .zst; `-` for standard input), or a directory of kv-cache-tester sessions
    pub trace: Option<PathBuf>,

    /// Format of the trace [default: recognised by its content]
    #[arg(long, value_name = "FORMAT", help_heading = "Trace")]
    pub format: Option<Format>,
    /// Tokens per id of the trace, for formats that do not say [default: 512 for Mooncake, 16 for Bailian]
    #[arg(long, value_name = "S", help_heading = "Trace")]
    pub trace_block: Option<u32>,
    /// Replay the first N requests, in order of arrival
    #[arg(long, value_name = "N", help_heading = "Trace")]
    pub limit: Option<usize>,
    /// Seconds between the starts of sessions, for traces whose times count from the start of a session
    #[arg(long, value_name = "S", default_value_t = 120.0, allow_negative_numbers = true, help_heading = "Trace")]
    pub session_gap: f64,
    /// Leave bad lines of the trace out and count them, instead of stopping at the first
    #[arg(long, help_heading = "Trace")]
    pub skip_bad: bool,

    /// Model: a preset, with options behind a colon (`v4-flash:indexer=fp8,draft=on`), or a .toml file
    /// [default: v4-pro; v4-flash for the sample]
    #[arg(long, value_name = "MODEL", help_heading = "Cache")]
    pub model: Option<String>,
    /// Tokens per block, a multiple of the model's compression ratios
    #[arg(long, value_name = "B", default_value_t = 128, help_heading = "Cache")]
    pub block_tokens: u32,
    /// Quota of compressed entries in GiB [default: 64; 0.5 for the sample]
    #[arg(long, value_name = "GIB", allow_negative_numbers = true, help_heading = "Cache")]
    pub history_gib: Option<f64>,
    /// Quota of window checkpoints in GiB [default: 16; 0.1 for the sample]
    #[arg(long, value_name = "GIB", allow_negative_numbers = true, help_heading = "Cache")]
    pub window_gib: Option<f64>,
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

    /// Where windows are kept: full, periodic:P, events, zero, or FILE.wasm[:key=value,…]
    #[arg(long, value_name = "POLICY", default_value = "events", help_heading = "Policies")]
    pub checkpoints: PolicyChoice,
    /// What is admitted and evicted: lru, fifo, two-hit, or FILE.wasm[:key=value,…]; with --untyped: fifo, lru or optimal
    #[arg(long, value_name = "POLICY", default_value = "lru", help_heading = "Policies")]
    pub eviction: PolicyChoice,
    /// How one of several exact plans is taken
    #[arg(long, value_name = "PLANNER", value_enum, default_value_t = PlannerName::MinCompute, help_heading = "Policies")]
    pub planner: PlannerName,
    /// Run shipped policies natively instead of as components; the integers are the same
    #[arg(long, help_heading = "Policies")]
    pub native: bool,
    /// Never replay tokens to rebuild windows: go on from checkpoints only
    #[arg(long, help_heading = "Policies")]
    pub no_replay: bool,
    /// Put in another policy before request N, its predecessor's knowledge handed over: N:eviction=POLICY or
    /// N:checkpoints=POLICY; may be repeated
    #[arg(long, value_name = "SWAP", help_heading = "Policies")]
    pub swap: Vec<Swap>,
    /// Exit with 3 if a policy failed, although the replay went on without it
    #[arg(long, help_heading = "Policies")]
    pub strict_policy: bool,

    /// Replay one pool of equal blocks, the trace's own, by the rules of the public kvcache-simulator 0.1.3: no model, nothing
    /// stored, only the last half of the requests measured; `--eviction optimal` shows what is possible in hindsight
    #[arg(long, requires = "capacity_blocks", conflicts_with_all = TYPED_ONLY, help_heading = "Without types")]
    pub untyped: bool,
    /// Blocks that the pool of --untyped holds
    #[arg(long, value_name = "N", requires = "untyped", help_heading = "Without types")]
    pub capacity_blocks: Option<u32>,

    /// Prefill rate for the modelled time saved, in tokens per second
    #[arg(long, value_name = "TOKENS", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Report")]
    pub prefill_rate: u32,
    /// Print the result as one JSON object
    #[arg(long, help_heading = "Report")]
    pub json: bool,
    /// Show no progress bar
    #[arg(long, short, help_heading = "Report")]
    pub quiet: bool,
}

/// Options that mean nothing without types.
const TYPED_ONLY: [&str; 15] = [
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
    "native",
    "no_replay",
    "swap",
    "strict_policy",
    "prefill_rate",
];

const REPLAY_HELP: &str = "\
Examples:
  reprise replay                                         the sample, on a real store
  reprise replay trace.jsonl.gz                          your trace, books only
  reprise replay trace.jsonl --checkpoints periodic:4096 --eviction fifo
  reprise replay trace.jsonl --eviction mine.wasm:ways=8 --swap 5000:eviction=lru
  reprise replay trace.jsonl --store /mnt/nvme/cache --limit 1000 --json
  reprise replay trace.jsonl --untyped --capacity-blocks 7027 --eviction optimal

Exit status: 0 done; 1 the replay failed; 2 wrong arguments, trace or policy, nothing was touched; 3 a policy failed under
--strict-policy.";

/// Planners by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PlannerName {
    /// Fewest computed tokens; among equals, fewest adopted
    MinCompute,
}

impl From<PlannerName> for Planner {
    fn from(name: PlannerName) -> Self {
        match name {
            PlannerName::MinCompute => Self::MinCompute,
        }
    }
}

/// Work with traces.
#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// Turn JSONL of token ids with times into a Mooncake trace whose ids give no content away
    #[command(long_about = TRACE_MAKE_HELP, after_help = "Exit status: 0 done; 1 the trace could not be written; 2 wrong arguments or input.")]
    Make {
        /// JSONL with token ids, plain, .gz or .zst; `-` for standard input
        input: PathBuf,
        /// Where to write the trace [default: standard output]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Tokens per id
        #[arg(long, value_name = "S", default_value_t = 512)]
        block_tokens: u32,
        /// Secret that ids are derived with; the same phrase gives the same ids [default: random]
        #[arg(long, value_name = "PHRASE")]
        salt: Option<String>,
        /// Leave bad lines out and count them
        #[arg(long)]
        skip_bad: bool,
    },
}

const TRACE_MAKE_HELP: &str = "\
Turn JSONL of token ids with times into a Mooncake trace whose ids give no content away.

A line of the input is one request:

  {\"t\": 12.5, \"tokens\": [151644, 872, …], \"session\": \"optional\", \"output\": 210}

`t` is in seconds; `timestamp` in milliseconds may stand for it. Requests share ids if and only if they share tokens from the
start on, within a session; leave `session` out to let all of them share. What the made trace tells is when requests
came, how long they were, and which prefixes were equal.

A trace with other than 512 tokens per id is replayed with --trace-block.";

/// Look at a store.
#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Read every record and check it; changes nothing, and works while a cache has the store open
    #[command(
        after_help = "Exit status: 0 every record is good; 1 records are damaged, they are misses; 2 there is no store."
    )]
    Verify {
        /// Directory of the store
        directory: PathBuf,
        /// Print the result as one JSON object
        #[arg(long)]
        json: bool,
    },
}

/// Say what policies are.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Name, version and settings of a policy: a shipped name or a .wasm file
    #[command(after_help = "Exit status: 0 done; 2 there is no such policy.")]
    Describe {
        /// lru, fifo, two-hit, full, periodic, events, zero, or FILE.wasm
        policy: PolicyChoice,
    },
}
