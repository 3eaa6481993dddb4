//! Runs policies that are WebAssembly components: checked, limited, exchangeable.
//!
//! [`Engine`] holds the compiler and the limits. [`Engine::load`] takes bytes and gives a [`Component`] that is eligible: of the
//! right world, without imports, compiled, and well-behaved in a short run. [`Component::cache`] and [`Component::checkpoint`]
//! make policies of it, each in a memory of its own.
//!
//! Every call has a budget (time, or fuel where runs must repeat exactly) and a limit of memory. After an error a policy is
//! unusable, whatever the reason was: drop it and make another one of the same component. What is checked here is the form of an
//! answer, its length above all; whether a victim may go or a position makes sense is checked by the caller, who owns the
//! tree and the leases.
//!
//! [`inspect`] tells what a file is without running it, and [`check`] runs everything that is expected of a policy and reports.
//! [`CompileCache`] keeps machine code between processes. [`Profile`] says what WebAssembly a component may be made of.
//!
//! To swap a policy, load the new component beside the running one, hand over [`CachePolicy::save`] and the host's table, and
//! exchange the two between calls.

mod cache;
mod checkpoint;
mod compiled;
mod component;
mod conformance;
mod deadline;
mod engine;
mod error;
mod inspect;
mod instance;
mod limits;
mod profile;
mod ticker;
mod wire;
mod world;

pub use cache::CachePolicy;
pub use checkpoint::{Candidate, CheckpointPolicy};
pub use compiled::{CompileCache, CompileCacheError};
pub use component::{Component, Description, Setting};
pub use conformance::{Calls, Check, CheckOptions, Report, check};
pub use engine::{CompileCounts, Engine};
pub use error::{LoadError, PolicyError};
pub use inspect::{Form, Inspection, Metadata, NotWasm, Tool, inspect};
pub use limits::{Budget, Limits};
pub use profile::{Profile, UnknownProfile};
