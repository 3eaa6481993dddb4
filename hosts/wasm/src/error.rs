//! Why a component was not taken, and why a policy's call failed.

use reprise_core::policy::Kind;
use thiserror::Error;

use crate::world::telltale;

/// Why a call of a policy failed. The policy is unusable from then on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// It ran into a trap: a panic, an access out of bounds, a stack overflow.
    #[error("`{call}` trapped: {what}")]
    Trap {
        /// The function that was called.
        call: &'static str,
        /// The trap.
        what: String,
    },
    /// It took longer than the budget of the call, in time or fuel.
    #[error("`{call}` took more than {allowed}")]
    Deadline {
        /// The function that was called.
        call: &'static str,
        /// What it was allowed.
        allowed: String,
    },
    /// It asked for more memory, tables or instances than it may have.
    #[error("`{call}` asked for more than {allowed}")]
    Memory {
        /// The function that was called.
        call: &'static str,
        /// What it was allowed.
        allowed: String,
    },
    /// It answered something that is no answer.
    #[error("`{call}` gave an invalid answer: {what}")]
    Answer {
        /// The function that was called.
        call: &'static str,
        /// What is wrong with it.
        what: String,
    },
    /// It does not take these settings. The message is the policy's own.
    #[error("settings refused: {message}")]
    Refused {
        /// What the policy says.
        message: String,
    },
    /// It failed before; this call was not made.
    #[error("`{call}` was not called, the policy had failed before: {first}")]
    Failed {
        /// The function that was to be called.
        call: &'static str,
        /// The error that made it unusable.
        first: Box<PolicyError>,
    },
}

/// Why bytes were not taken as a policy. `origin` says where the bytes came from, as the caller named it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LoadError {
    /// Bigger than [`Limits::component_bytes`](crate::Limits::component_bytes).
    #[error("{origin} has {bytes} bytes, a component may have {limit}")]
    TooLarge {
        /// Where the bytes came from.
        origin: String,
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Not WebAssembly at all.
    #[error("{origin} is no WebAssembly component: {found}; a policy exports `{missing}` of world `{world}`")]
    NotWasm {
        /// Where the bytes came from.
        origin: String,
        /// What it is instead.
        found: String,
        /// The world that was wanted.
        world: &'static str,
        /// The first interface of it.
        missing: String,
    },
    /// A core module, which is what compilers write before it is made a component.
    #[error(
        "{origin} is a core WebAssembly module, not a component: it does not export `{missing}` of world `{world}`; make a component \
         of it (`wasm-tools component new`, or build it with the SDK)"
    )]
    Module {
        /// Where the bytes came from.
        origin: String,
        /// The world that was wanted.
        world: &'static str,
        /// The first interface of it.
        missing: String,
    },
    /// It does not validate under the features that policies may use, or does not compile.
    #[error("{origin} is not valid here, so nothing can be told of its `{missing}` of world `{world}`: {reason}")]
    Invalid {
        /// Where the bytes came from.
        origin: String,
        /// What the validator or the compiler says.
        reason: String,
        /// The world that was wanted.
        world: &'static str,
        /// The first interface of it.
        missing: String,
    },
    /// It imports something. Policies import nothing.
    #[error("{origin} imports `{import}`; a policy imports nothing")]
    Import {
        /// Where the bytes came from.
        origin: String,
        /// The first import.
        import: String,
    },
    /// It does not export what the world demands.
    #[error(
        "{origin} {}does not export `{missing}` of world `{world}`; it exports {found}",
        other_kind(missing, found)
    )]
    Missing {
        /// Where the bytes came from.
        origin: String,
        /// The world that was wanted.
        world: &'static str,
        /// The interface or function that is missing.
        missing: String,
        /// What there is, with versions.
        found: String,
    },
    /// It exports a function under the right name with another type.
    #[error("{origin} exports `{export}` with a type that is not that of world `{world}`: {reason}")]
    Type {
        /// Where the bytes came from.
        origin: String,
        /// The world that was wanted.
        world: &'static str,
        /// The function.
        export: String,
        /// How the types differ.
        reason: String,
    },
    /// It describes itself in a way that makes no sense.
    #[error("{origin} describes itself wrongly: {reason}")]
    Description {
        /// Where the bytes came from.
        origin: String,
        /// What is wrong.
        reason: String,
    },
    /// It is a component of the right world, but it failed in the run that every policy must pass. Hosts treat that like a policy
    /// that failed while serving.
    #[error("{origin} failed its first run: {error}")]
    Behaviour {
        /// Where the bytes came from.
        origin: String,
        /// How it failed.
        error: PolicyError,
    },
}

/// What a component is that lacks the interface of one kind and has that of the other.
fn other_kind(missing: &str, found: &str) -> &'static str {
    let lacks = |kind| missing == telltale(kind);
    let has = |kind| found.contains(&format!("`{}`", telltale(kind)));
    if lacks(Kind::Checkpoint) && has(Kind::Cache) {
        "is an eviction policy: use --eviction; it "
    } else if lacks(Kind::Cache) && has(Kind::Checkpoint) {
        "is a checkpoint policy: use --checkpoints; it "
    } else {
        ""
    }
}
