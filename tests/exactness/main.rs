//! A restore equals a cold prefill, bit for bit: the reference model behind the real cache on a real store, for every checkpoint policy,
//! length and failure; and proof that the comparison would notice.
//!
//! The usual run is a selection; `cargo test --release --workspace --test exactness -- --ignored` runs the whole grid.

mod branches;
mod comparison;
mod damage;
mod drafts;
mod engine;
mod floor;
mod kv;
mod lengths;
mod mutants;
