//! The shipped policies and the core as components: thin shells, one file and one `cdylib` each.
//!
//! `cargo components` builds them; `hostile` and `hostile-checkpoints` are fixtures that misbehave on demand.
#![no_std]
