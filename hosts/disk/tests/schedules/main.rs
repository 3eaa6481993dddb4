//! The store under a scheduler that decides at every lock, atomic number and access to the disk which thread goes on:
//! `cargo test -p reprise-disk --features shuttle --test schedules`.
//!
//! All of the store runs as it is, with the threads of its batches; what is not covered is io_uring, deadlines that pass
//! while somebody waits for them (those that have passed are), and orders of memory weaker than sequential consistency.

mod batches;
#[path = "../crash/disk.rs"]
#[expect(dead_code, reason = "the crash tests use more of it")]
mod disk;
mod durable;
#[path = "../crash/faults.rs"]
#[expect(dead_code, reason = "the crash tests use more of it")]
mod faults;
#[path = "../crash/medium.rs"]
#[expect(dead_code, reason = "the crash tests use more of it")]
mod medium;
mod scheduler;
mod slots;
mod storage;
