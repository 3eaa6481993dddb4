//! The command line.

mod advise;
mod bench;
mod compare;
mod model;
mod plan;
mod policy;
mod replay;
mod setup;
mod store;

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use reprise::Planner;

pub use advise::Advise;
pub use bench::{BenchCommand, DiskBench};
pub use compare::Compare;
pub use model::ModelCommand;
pub use plan::{Plan, StoreOptions};
pub use policy::{BenchPolicies, BuildPolicy, CheckPolicy, NewPolicy, PolicyCommand};
pub use replay::Replay;
pub use setup::{CacheOptions, PolicyOptions, PriceOptions, TraceOptions};
pub use store::{FilterOptions, Room, StoreCommand};

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
    ///
    /// Without TRACE, a sample of real coding-agent sessions is replayed against a real store in a temporary directory, with quotas
    /// small enough that eviction, dropped checkpoints and replayed windows show. With TRACE and without --store, books are kept and
    /// nothing is written (--dry-run).
    Replay(Box<Replay>),
    /// Hold policies against one another on traces, at several budgets
    ///
    /// Writes a table, CSV, JSON and one self-contained HTML report, which says which policy to take for each trace and why.
    Compare(Box<Compare>),
    /// Show what the cache would do for one prompt, and why not more
    ///
    /// The prompt is a request of a trace, planned after those before it were replayed on paper (without TRACE, of the sample that
    /// `reprise replay` has); or the tokens of a file, planned against what a store holds. The store is only read: it may be in use,
    /// and nothing in it changes. What is not yet written there is not seen.
    Plan(Box<Plan>),
    /// Choose policies, period and split of a budget for a trace and a machine
    ///
    /// Shipped policies are tried on the trace, and the best are named with what they are expected to save, in words and, with --out, as
    /// a configuration file.
    Advise(Box<Advise>),
    /// Say what a model's cache is made of and what it takes
    #[command(subcommand)]
    Model(ModelCommand),
    /// Work with traces
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Look at a store, and take records out of it or from one to another
    #[command(subcommand, long_about = store::HELP)]
    Store(StoreCommand),
    /// Measure what the store costs on this machine
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Write, build, check and look at policies
    #[command(subcommand, long_about = policy::HELP)]
    Policy(PolicyCommand),
}

/// Planners by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PlannerName {
    /// Fewest computed tokens; among equals, fewest adopted
    MinCompute,
    /// Least time at the prices: what is slower to load than to compute is not adopted
    MinTime,
}

impl From<PlannerName> for Planner {
    fn from(name: PlannerName) -> Self {
        match name {
            PlannerName::MinCompute => Self::MinCompute,
            PlannerName::MinTime => Self::MinTime,
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
