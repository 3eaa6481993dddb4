//! Makes components: of a core module that a compiler wrote, with what it says of itself.
//!
//! [`make`] is what `cargo components` builds the shipped policies with, and what a tool for authors builds theirs with.

mod make;
mod metadata;

pub use make::{CONTRACT, Error, make};
pub use metadata::Metadata;
