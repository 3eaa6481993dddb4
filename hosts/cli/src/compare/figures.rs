//! What one replay gave.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use super::{SessionFigures, split::Worth};
use crate::score::Score;

/// What one replay gave, or how its policy failed. A policy that failed has no figures: those of the fallback are not its own.
pub type Verdict = Result<Figures, String>;

/// The figures of one replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figures {
    /// Of a cache with types.
    Typed {
        /// Tokens, modelled seconds, bytes.
        score: Box<Score>,
        /// Saved tokens by session.
        sessions: SessionFigures,
        /// Thousandths of the budget that windows had in the end, where that was learned on the way.
        learned_permille: Option<u32>,
    },
    /// Of one pool of equal blocks.
    Untyped(UntypedFigures),
}

/// The figures of a pool without types; of the last half of the requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UntypedFigures {
    /// Tokens of the measured prompts.
    pub measured_tokens: u64,
    /// Of these, tokens found in the pool.
    pub found_tokens: u64,
    /// Whether the pool was not full before the measured half: what was found then tells of a cold start.
    pub underfilled: bool,
    /// Blocks written in all, where that is counted.
    pub written_blocks: Option<u64>,
}

impl Figures {
    /// Tokens that need no prefill: saved, or found in the pool.
    pub fn gained_tokens(&self) -> u64 {
        match self {
            Self::Typed { score, .. } => score.saved_tokens,
            Self::Untyped(figures) => figures.found_tokens,
        }
    }

    /// Tokens of all prompts that were measured.
    pub fn whole_tokens(&self) -> u64 {
        match self {
            Self::Typed { score, .. } => score.prompt_tokens,
            Self::Untyped(figures) => figures.measured_tokens,
        }
    }

    /// Tokens that are computed.
    pub fn computed_tokens(&self) -> u64 {
        self.whole_tokens() - self.gained_tokens()
    }

    /// What was written: bytes, or blocks without types; `None` where that is not counted.
    pub fn written(&self) -> Option<u64> {
        match self {
            Self::Typed { score, .. } => Some(score.written_bytes()),
            Self::Untyped(figures) => figures.written_blocks,
        }
    }

    /// The score, with types.
    pub fn score(&self) -> Option<&Score> {
        match self {
            Self::Typed { score, .. } => Some(score),
            Self::Untyped(_) => None,
        }
    }

    /// Saved tokens by session, with types.
    pub fn sessions(&self) -> Option<&SessionFigures> {
        match self {
            Self::Typed { sessions, .. } => Some(sessions),
            Self::Untyped(_) => None,
        }
    }

    /// Whether the pool was not full before the measured half.
    pub fn underfilled(&self) -> bool {
        matches!(self, Self::Untyped(UntypedFigures { underfilled: true, .. }))
    }

    /// What the share that gave this is worth.
    pub fn worth(&self) -> Worth {
        (self.gained_tokens(), Reverse(self.written().unwrap_or(0)))
    }

    /// Gained tokens in millionths of the whole.
    pub fn gained_ppm(&self) -> u64 {
        let gained = u128::from(self.gained_tokens()) * 1_000_000;
        gained.checked_div(self.whole_tokens().into()).unwrap_or(0) as u64
    }
}
