//! The policies that Reprise ships, as plain `no_std` Rust.
//!
//! Each exists once, here: hosts run them natively (`--native`, tests, the fallback of a policy that failed), and the shells in
//! `policies/components` make components of them.
#![no_std]

extern crate alloc;

mod checkpoints;
mod fifo;
mod lru;
mod order;
mod ranking;
mod seen;
mod two_hit;

pub use checkpoints::{Events, Full, Periodic, Zero};
pub use fifo::Fifo;
pub use lru::Lru;
pub use two_hit::TwoHit;
