//! The `reprise` command: replay a trace through the cache, compare policies, plan one prompt, say what a model's cache takes, make a trace, look at
//! a store, measure one, write a policy and look at one.
//!
//! What it does is here as a library, so that tests and other front ends drive the same code.

pub mod advise;
pub mod args;
pub mod bench;
pub mod bound;
pub mod command;
pub mod compare;
mod figures;
pub mod footprint;
pub mod plan;
pub mod policy;
mod progress;
pub mod replay;
pub mod report;
pub mod score;
pub mod search;
pub mod trace;
pub mod untyped;
