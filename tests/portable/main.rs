//! The core is the same in every host: one file of golden vectors, made by another implementation, is held by the core in Rust, by
//! its component in wasmtime, by that component in Python and in Node.

mod elsewhere;
mod host;
mod rust;
