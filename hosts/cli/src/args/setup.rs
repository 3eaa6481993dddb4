//! Options that commands share: a trace, a cache, its policies, what its plans cost.

use std::path::PathBuf;

use clap::Args;
use reprise::{Pin, PolicyChoice, PolicyProfile};

use crate::{replay::Swap, trace::Format};

/// A trace and how it is read.
#[derive(Debug, Args)]
pub struct TraceOptions {
    /// Trace file (plain, .gz or .zst; `-` for standard input), or a directory of kv-cache-tester sessions
    pub trace: Option<PathBuf>,

    /// Format of the trace [default: recognised by its content]
    #[arg(long, value_name = "FORMAT", help_heading = "Trace")]
    pub format: Option<Format>,
    /// Tokens per id of the trace, for formats that do not say [default: 512 for Mooncake, 16 for Bailian]
    #[arg(long, value_name = "S", help_heading = "Trace")]
    pub trace_block: Option<u32>,
    /// Seconds between the starts of sessions, for traces whose times count from the start of a session
    #[arg(long, value_name = "S", default_value_t = 120.0, allow_negative_numbers = true, help_heading = "Trace")]
    pub session_gap: f64,
    /// Leave bad lines of the trace out and count them, instead of stopping at the first
    #[arg(long, help_heading = "Trace")]
    pub skip_bad: bool,
}

/// Options that a configuration file decides.
const IN_CONFIG: [&str; 15] = [
    "budget_gib",
    "model",
    "block_tokens",
    "history_gib",
    "window_gib",
    "checkpoints",
    "eviction",
    "planner",
    "no_replay",
    "pin",
    "policy_profile",
    "load_gib_per_second",
    "load_record_us",
    "prefill_rate",
    "prefill_context",
];

/// A cache: what of which model it keeps, and how much.
#[derive(Debug, Args)]
pub struct CacheOptions {
    /// Take model, quotas, policies, planner and prices from this TOML file instead of from options, as a serving process does; `reprise
    /// advise --out FILE` writes one
    #[arg(long, value_name = "FILE", conflicts_with_all = IN_CONFIG, help_heading = "Cache")]
    pub config: Option<PathBuf>,
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
    /// One budget in GiB for compressed entries and checkpoints, in place of the two quotas: how it is divided is learned on the way,
    /// from books that try other shares. Books only
    #[arg(long, value_name = "GIB", allow_negative_numbers = true, conflicts_with_all = ["history_gib", "window_gib"],
          help_heading = "Cache")]
    pub budget_gib: Option<f64>,
}

/// Who decides what is kept, and how plans are made.
#[derive(Debug, Args)]
pub struct PolicyOptions {
    /// Where windows are kept: full, periodic:P, events, zero, adaptive, or FILE.wasm[:key=value,…]
    #[arg(long, value_name = "POLICY", default_value = "events", help_heading = "Policies")]
    pub checkpoints: PolicyChoice,
    /// What is admitted and evicted: lru, fifo, two-hit, segmented, flop-aware, ttl-priority, auto, write-saver, or
    /// FILE.wasm[:key=value,…]; a replay with --untyped: one of these, or the rules optimal, flat-lru and flat-s3-fifo
    #[arg(long, value_name = "POLICY", default_value = "lru", help_heading = "Policies")]
    pub eviction: PolicyChoice,
    /// Run shipped policies natively instead of as components; the integers are the same
    #[arg(long, help_heading = "Policies")]
    pub native: bool,
    /// Never replay tokens to rebuild windows: go on from checkpoints only
    #[arg(long, help_heading = "Policies")]
    pub no_replay: bool,
    /// Refuse a component that calls itself NAME unless its BLAKE3 digest is HEX (`reprise policy inspect` prints it); may be
    /// repeated
    #[arg(long, value_name = "NAME=HEX", help_heading = "Policies")]
    pub pin: Vec<Pin>,
    /// The widest set of WebAssembly features that a policy may use: integer, compiled, or interpreted for guests in Python or
    /// JavaScript, whose calls may take long
    #[arg(long, value_name = "PROFILE", default_value_t, help_heading = "Policies")]
    pub policy_profile: PolicyProfile,
    /// Put in another policy before request N, its predecessor's knowledge handed over: N:eviction=POLICY or
    /// N:checkpoints=POLICY; may be repeated
    #[arg(long, value_name = "SWAP", help_heading = "Policies")]
    pub swap: Vec<Swap>,
}

/// What loading and computing cost: what --planner min-time weighs.
///
/// The defaults are measured, each on one machine: [`reprise::Prices`] says where.
#[derive(Debug, Args)]
pub struct PriceOptions {
    /// GiB per second that a load reads, verifies and hands over [default: 1.86]
    #[arg(long, value_name = "GIB", allow_negative_numbers = true, help_heading = "Prices")]
    pub load_gib_per_second: Option<f64>,
    /// Microseconds that a load takes for each record besides its bytes [default: 20]
    #[arg(long, value_name = "US", allow_negative_numbers = true, help_heading = "Prices")]
    pub load_record_us: Option<f64>,
    /// Prefill rate in tokens per second at the start of a context [default: 55866; 10000 for the modelled time saved of a replay]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Prices")]
    pub prefill_rate: Option<u32>,
    /// Nanoseconds that a token takes longer for each 1,024 tokens of context before it [default: 61.7]
    #[arg(long, value_name = "NS", allow_negative_numbers = true, help_heading = "Prices")]
    pub prefill_context: Option<f64>,
}
