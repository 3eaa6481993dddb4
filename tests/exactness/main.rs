//! A restore equals a cold prefill, bit for bit: the reference model behind the real cache on a real store, for every checkpoint policy,
//! length and failure; and proof that the comparison would notice.
//!
//! The usual run is a selection; `REPRISE_EXACTNESS=wide cargo test --release -p reprise-tests --test exactness` runs the whole grid.

mod branches;
mod comparison;
mod damage;
mod drafts;
mod engine;
mod floor;
mod kv;
mod lengths;
mod mutants;

/// Whether the whole grid is to be run.
fn wide() -> bool {
    std::env::var_os("REPRISE_EXACTNESS").is_some_and(|value| value == "wide")
}
