//! The eviction policies that the replay without types knows, by name.

use std::{fmt, str::FromStr};

/// Which block goes when the pool is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// The block that was inserted first, wherever it stands: what lies below it stays, unreachable, until its turn comes.
    /// Nothing is protected, not even the path of the request in hand.
    Fifo,
    /// The leaf that was used last the longest ago. What was found of the request in hand is protected.
    Lru,
    /// The leaf whose next use is furthest in the future; among equals the one that appeared last in the trace. It goes only if
    /// its next use is strictly later than the new block's, else the new block is refused. Protects as `Lru` does.
    Optimal,
}

/// Text that names none of the policies.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("without types (--untyped) the eviction policy is one of fifo, lru, optimal, not `{given}`")]
pub struct UnknownEviction {
    /// What was given.
    pub given: String,
}

impl Eviction {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Fifo, Self::Lru, Self::Optimal];

    /// The name it is asked for by.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Lru => "lru",
            Self::Optimal => "optimal",
        }
    }
}

impl fmt::Display for Eviction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Eviction {
    type Err = UnknownEviction;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = Self::ALL.into_iter().find(|eviction| eviction.name() == text);
        named.ok_or_else(|| UnknownEviction { given: text.to_owned() })
    }
}
