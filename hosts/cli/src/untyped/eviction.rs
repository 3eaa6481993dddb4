//! What evicts: a rule of the simulators that this mode follows, or a cache policy.

use std::fmt;

use reprise::{LoadedCachePolicy, PolicyChoice, PolicyError, PolicyLoader};

/// A rule that is part of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The block that was inserted first, wherever it stands: what lies below it stays, unreachable, until its turn comes.
    /// Nothing is protected, not even the path of the request in hand.
    Fifo,
    /// The leaf that was used last the longest ago. What was found of the request in hand is protected.
    Lru,
    /// The leaf whose next use is furthest in the future; among equals the one that appeared last in the trace. It goes only if
    /// its next use is strictly later than the new block's, else the new block is refused. Protects as `Lru` does.
    Optimal,
    /// LRU without a tree: each block is asked for and put in by itself, as libCacheSim simulates it. Nothing is protected.
    FlatLru,
    /// S3-FIFO without a tree, with the details and defaults of libCacheSim. With less than 20 blocks it keeps nothing.
    FlatS3Fifo,
}

/// Which block goes when the pool is full, and which may come in.
#[derive(Clone)]
pub enum Eviction {
    /// As a rule says.
    Rule(Rule),
    /// As a cache policy says: leaves only, and the path of the request in hand is protected.
    Policy {
        /// How it was asked for.
        choice: PolicyChoice,
        /// What it is made of.
        loaded: LoadedCachePolicy,
    },
}

impl Rule {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Fifo, Self::Lru, Self::Optimal, Self::FlatLru, Self::FlatS3Fifo];

    /// The name it is asked for by.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Lru => "lru",
            Self::Optimal => "optimal",
            Self::FlatLru => "flat-lru",
            Self::FlatS3Fifo => "flat-s3-fifo",
        }
    }

    /// The rule of this name, if there is one.
    pub fn named(choice: &PolicyChoice) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| *choice == PolicyChoice::shipped(rule.name()))
    }
}

impl Eviction {
    /// The rule of this name, else the cache policy that `loader` finds.
    ///
    /// # Errors
    /// When there is neither, or the policy does not load.
    pub fn find(choice: &PolicyChoice, loader: &PolicyLoader) -> Result<Self, PolicyError> {
        Rule::named(choice).map_or_else(|| Self::policy(choice, loader), |rule| Ok(rule.into()))
    }

    /// The cache policy that `loader` finds, also where a rule has its name.
    ///
    /// # Errors
    /// When the policy does not load.
    pub fn policy(choice: &PolicyChoice, loader: &PolicyLoader) -> Result<Self, PolicyError> {
        Ok(Self::Policy { choice: choice.clone(), loaded: loader.load(choice)? })
    }

    /// How it runs: `rule`, `native` or `component`.
    pub fn form(&self) -> &'static str {
        match self {
            Self::Rule(_) => "rule",
            Self::Policy { loaded, .. } if loaded.is_component() => "component",
            Self::Policy { .. } => "native",
        }
    }
}

impl From<Rule> for Eviction {
    fn from(rule: Rule) -> Self {
        Self::Rule(rule)
    }
}

impl fmt::Display for Eviction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => f.write_str(rule.name()),
            Self::Policy { choice, .. } => choice.fmt(f),
        }
    }
}
