//! The policies that Reprise ships, as plain `no_std` Rust.
//!
//! Each exists once, here: hosts run them natively (`--native`, tests, the fallback of a policy that failed), and the shells in
//! `policies/components` make components of them.
#![no_std]

extern crate alloc;

mod adaptive;
mod auto;
mod checkpoints;
mod fifo;
mod flop_aware;
mod lru;
mod miniature;
mod order;
mod pending;
mod ranking;
mod runs;
mod seen;
mod segmented;
mod ttl_priority;
mod two_hit;

pub use adaptive::Adaptive;
pub use auto::{Auto, WriteSaver};
pub use checkpoints::{Events, Full, Periodic, Zero};
pub use fifo::Fifo;
pub use flop_aware::FlopAware;
pub use lru::Lru;
pub use segmented::Segmented;
pub use ttl_priority::TtlPriority;
pub use two_hit::TwoHit;
