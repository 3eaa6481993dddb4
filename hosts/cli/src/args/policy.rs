//! `reprise policy`.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand};
use reprise::{PolicyChoice, wasm::Profile};

use crate::policy::new::{Kind, Language};

/// Shown with the list of commands.
pub(super) const HELP: &str = "\
Write a policy, build it, check it, and look at what others built.

A policy is a WebAssembly component that imports nothing. From nothing to a replay that uses it:
  reprise policy new mine
  cd mine
  reprise policy build
  reprise policy check build/mine.wasm
  reprise replay --eviction build/mine.wasm
A policy in Python or JavaScript brings an interpreter: replay it with `--policy-profile interpreted`.

What is compiled is kept in $XDG_CACHE_HOME/reprise or ~/.cache/reprise, 256 MiB at most.";

/// Write a policy, build it, check it, and look at what others built.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Write a folder with a policy that builds at once
    #[command(after_help = NEW_HELP)]
    New(NewPolicy),
    /// Make a component of a folder's sources, or of a core module
    #[command(after_help = BUILD_HELP)]
    Build(BuildPolicy),
    /// Run the conformance suite on a policy, and say what its calls cost
    #[command(after_help = CHECK_HELP)]
    Check(CheckPolicy),
    /// Say what a policy is, which settings it takes, how to pin it, and why it would be refused
    #[command(after_help = INSPECT_HELP)]
    Inspect {
        /// A .wasm file, or a shipped policy: lru, fifo, two-hit, segmented, flop-aware, ttl-priority, full, periodic, events, zero, adaptive
        policy: PolicyChoice,
        /// Print the result as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Measure eviction policies beside the native `lru`, in turns
    #[command(after_help = BENCH_HELP)]
    Bench(BenchPolicies),
}

/// What to write, and where.
#[derive(Debug, Args)]
pub struct NewPolicy {
    /// What it is called: ASCII letters, digits, `-` and `_`, a letter first
    pub name: String,
    /// What it is written in
    #[arg(long = "lang", value_name = "LANG", value_enum, default_value_t = Language::Rust)]
    pub language: Language,
    /// What it decides
    #[arg(long, value_name = "KIND", value_enum, default_value_t = Kind::Cache)]
    pub kind: Kind,
    /// Where to write it: a folder that is empty or not there [default: the name]
    #[arg(long = "dir", value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Where a policy in Rust takes the SDK from: a checkout of Reprise, or the URL of its repository [default: the checkout that
    /// the folder or this command lies in]
    #[arg(long, value_name = "PATH|URL")]
    pub sdk: Option<String>,
}

/// What to build.
#[derive(Debug, Args)]
pub struct BuildPolicy {
    /// A folder with Cargo.toml or build.sh, or a core module that some compiler wrote
    #[arg(value_name = "DIR|MODULE", default_value = ".")]
    pub source: PathBuf,
    /// Where to write the component [default: DIR/build/NAME.wasm]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print the result as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// What to check, and how long.
#[derive(Debug, Args)]
pub struct CheckPolicy {
    /// A .wasm file, or a shipped policy
    pub policy: PolicyChoice,
    /// What WebAssembly it may be made of, and the limits that come with it: integer, compiled or interpreted
    /// [default: compiled; interpreted for what is valid under nothing less]
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<Profile>,
    /// Events of the long run
    #[arg(long, value_name = "N", default_value_t = 1 << 20, value_parser = clap::value_parser!(u64).range(1024..=1 << 32))]
    pub events: u64,
    /// Print the result as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Show no progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// What to measure.
#[derive(Debug, Args)]
pub struct BenchPolicies {
    /// .wasm files or shipped policies, settings behind a colon: `mine.wasm:key=value`
    #[arg(value_name = "FILE", required = true)]
    pub policies: Vec<PolicyChoice>,
    /// Seconds that each policy is given, in ten turns
    #[arg(long, value_name = "S", default_value = "2", allow_negative_numbers = true, value_parser = seconds)]
    pub seconds: Duration,
    /// Resident records
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1024..=1 << 22))]
    pub records: u32,
    /// Print the result as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Show no progress bar
    #[arg(long, short)]
    pub quiet: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.01..=3600.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "a policy is given 0.01 to 3600 seconds".to_owned())
}

const NEW_HELP: &str = "\
There is a cache policy in Rust, C, Python and JavaScript, and a checkpoint policy in Rust. They work as they are: change them where \
they decide. Folders in other languages than Rust hold a copy of the contract (wit/).

A policy in Rust depends on the SDK by its path in a checkout of Reprise, relative if the folder lies inside, or by the URL of a \
repository that cargo can clone.

Examples:
  reprise policy new mine
  reprise policy new far-apart --kind checkpoint --dir policies/far-apart
  reprise policy new mine --lang python
  reprise policy new mine --sdk ~/src/reprise

Exit status: 0 done; 1 the folder could not be written; 2 no such name or template, the folder is not empty, or no SDK was found.";

const BUILD_HELP: &str = "\
A folder with Cargo.toml is compiled for wasm32-unknown-unknown by the rustc on the path or in RUSTC, made a component, and given \
name, version, description, authors, licence and repository of the package. A folder of another language has a script build.sh, \
which is run; it leaves one module or component in build/, which is made a component where it is none. What comes out is loaded \
once, so that it is known at once if hosts would refuse it; then it is there to be looked at.

Examples:
  reprise policy build
  reprise policy build mine -o /etc/reprise/mine.wasm
  reprise policy build zig-out/mine.wasm -o mine.wasm

Exit status: 0 done; 1 it does not compile, a tool is missing, or the component would be refused; 2 there is nothing to build.";

const CHECK_HELP: &str = "\
What is checked: every answer, the state that it hands over, that two instances answer alike, its settings, and that its memory does \
not grow with the number of events. Takes seconds, with an interpreter inside minutes.

Times are those of calls with 256 events, or of `choose`, the boundary included; fuel is about the number of instructions.

Examples:
  reprise policy check build/mine.wasm
  reprise policy check build/mine.wasm --profile integer --json

Exit status: 0 everything passed; 1 something failed, or it does not load; 2 there is no such policy.";

const INSPECT_HELP: &str = "\
Nothing of the file is run before it was told what it is: what would be refused is described as far as possible. What it says of \
itself (name, version, source, tools) is not proven by anything; the digest is the BLAKE3 of the file, and a policy that is pinned \
by it is loaded from no other file.

Examples:
  reprise policy inspect two-hit
  reprise policy inspect mine.wasm --json | jq -r .digest

Exit status: 0 it can be loaded; 1 it would be refused; 2 there is no such policy, or the file is no WebAssembly.";

const BENCH_HELP: &str = "\
Events come in batches of 256: half of them insert, as many less eight use, eight say that the host took a record out. Every second \
call asks for 240 victims, as many as are needed. Records lie in paths of 100 blocks. Only calls are timed, with the boundary, in turns \
that alternate between the policies; figures are medians over the turns. What `admit` costs is not in them. No call is cut, but those \
are counted that a host would have cut.

Examples:
  reprise policy bench build/mine.wasm
  reprise policy bench lru two-hit mine.wasm:chances=2 --records 1000000 --seconds 5

Exit status: 0 done; 1 a policy failed, or named what cannot go; 2 there is no such policy, or it does not load.";
