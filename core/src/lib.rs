//! Reprise's core: what every host of the cache must agree on, without I/O, clock or threads.
//!
//! - [`model`]: a model as cache types in groups, with a fingerprint per group.
//! - [`layout`]: where every type and layer lies inside a record.
//! - [`prefix`]: namespaces and the digest chain that names blocks.
//! - [`tree`]: which blocks and checkpoints are resident, what may be evicted, what is leased.
//! - [`checkpoint`]: at which positions a strategy keeps a window.
//! - [`plan`]: what a request adopts, loads and recomputes, and why not more.
//! - [`policy`]: the contract between hosts and policies.
#![no_std]

extern crate alloc;

pub mod checkpoint;
pub mod digest;
pub mod layout;
pub mod model;
pub mod plan;
pub mod policy;
pub mod prefix;
pub mod tree;

pub use digest::Digest;
