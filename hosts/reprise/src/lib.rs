//! The KV prefix cache a serving process embeds.
//!
//! A [`Cache`] keeps what an engine has prefilled and gives it back by prefix. One request goes like this:
//!
//! ```
//! use reprise::{BlockSink, BlockSource, Cache, Config, Namespace, Record};
//!
//! struct Rows; // an engine's KV memory
//! impl BlockSource for Rows {
//!     fn fill(&mut self, record: &Record, bytes: &mut [u8]) {
//!         bytes.fill(record.block as u8);
//!     }
//! }
//! impl BlockSink for Rows {
//!     fn accept(&mut self, record: &Record, bytes: &[u8]) {
//!         assert!(bytes.iter().all(|&byte| byte == record.block as u8));
//!     }
//! }
//!
//! let directory = tempfile::tempdir()?;
//! let cache = Cache::open(Config {
//!     history_bytes: 64 << 20,
//!     window_bytes: 64 << 20,
//!     store: Some(directory.path().join("cache")),
//!     ..Config::new("v4-flash")?
//! })?;
//! let namespace = cache.namespace(&Namespace::new("deepseek-v4-flash", "3f2a"))?;
//! let prompt: Vec<u32> = (0..1000).collect();
//!
//! for (now, adopted) in [(1, 0), (2, 896)] {
//!     let mut sequence = namespace.sequence(&prompt);
//!     let plan = sequence.plan(now)?;
//!     assert_eq!(plan.adopted_tokens, adopted, "{}", plan.explain());
//!     let (restored, _rows) = plan.restore(Rows)?.wait();
//!     assert_eq!(restored.adopted_tokens, adopted);
//!     // … the engine computes the rest, then:
//!     sequence.save(&mut Rows)?;
//!     sequence.capture(&mut Rows)?;
//!     cache.drain();
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Which checkpoints are kept and what is evicted is decided by policies: WebAssembly components (or their native twins) that can be
//! swapped while the cache serves, see [`Policies`]. A policy can cost time or space, never correctness.

mod cache;
mod choice;
mod config;
mod counters;
mod describe;
mod division;
mod error;
mod group;
mod jobs;
mod lease;
mod ledger;
mod pin;
mod plan;
mod policies;
mod record;
mod restore;
mod save;
mod sequence;
mod stats;
mod writer;

pub use cache::{Cache, Recovery};
pub use choice::{PolicyChoice, PolicyChoiceError};
pub use config::{Budget, CompileCacheChoice, Config, ConfigError, Durability, Io, IoChoice, SLOWEST_BYTES_PER_MS};
pub use counters::{Counters, GroupCounters};
pub use describe::{check, describe, shipped};
pub use division::{DivisionReport, ScoutReport};
pub use error::{OpenError, RequestError};
pub use group::{Group, GroupShape, MAX_SLOTS, Shape};
pub use jobs::{Busy, Finished, JobId, Jobs, Outcome, Presence};
pub use lease::LeaseId;
pub use pin::{Pin, PinError, Pins};
pub use plan::{Plan, PlanGuard};
pub use policies::{
    LoadedCachePolicy, Notice, Policies, PolicyError, PolicyLoader, PolicyStatus, PolicyTerms, Promotion, Role,
    RunningCachePolicy, ShadowFigures, ShadowReport, Shadowing,
};
pub use record::{BlockSink, BlockSource, Record};
pub use reprise_core::{
    Digest,
    plan::{Candidate, Cost, Explain, Explanation, Planner, Prices, Reach, RecordSizes, Refused},
    policy::Kind as PolicyKind,
    prefix::Namespace,
};
/// The store under the cache, for those that look after one.
pub use reprise_disk as disk;
pub use reprise_disk::{ReadOnly as StoreReader, StoreError, Usage as StoreUsage};
pub use reprise_wasm::{self as wasm, Description as PolicyDescription, Profile as PolicyProfile};
pub use restore::{Restore, Restored};
pub use sequence::{NamespaceHandle, Saved, Sequence};
pub use stats::Stats;
