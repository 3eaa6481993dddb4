//! The example policies: one policy in four languages, and a checkpoint policy in Rust. They are the templates of
//! `reprise policy new`, so what is built here is what an author starts from.
#![allow(unexpected_cfgs, reason = "the templates have a feature that this crate does not have")]

mod agreement;
mod costs;
mod template;

/// The Rust examples, run natively, with their own tests.
#[path = "../../policies/examples/templates/rust-cache/src/lib.rs"]
mod clock;
#[path = "../../policies/examples/templates/rust-checkpoint/src/lib.rs"]
mod geometric;
