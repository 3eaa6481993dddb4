//! The `reprise` command: replay a trace through the cache, make a trace, look at a store.
//!
//! What it does is here as a library, so that tests and other front ends drive the same code.

pub mod args;
pub mod command;
mod progress;
pub mod replay;
pub mod report;
pub mod trace;
pub mod untyped;
