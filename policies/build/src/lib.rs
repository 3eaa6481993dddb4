//! Makes components: of a core module that a compiler wrote, with what it says of itself.
//!
//! [`make`] is what `cargo components` builds the shipped policies with, and what a tool for authors builds theirs with; so is
//! [`Toolchain`], the compiler that writes core modules.

mod make;
mod metadata;
mod toolchain;

pub use make::{CONTRACT, Error, make};
pub use metadata::Metadata;
pub use toolchain::{TARGET, Toolchain};
