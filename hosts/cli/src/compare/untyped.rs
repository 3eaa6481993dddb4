//! The pool without types: the one place where its policies come into the comparison.

use super::{Contender, Figures, Subject, UntypedFigures, figures::Verdict};
use crate::untyped::{Eviction, Mode, Options, UnknownEviction, UntypedError, replay};

/// The policies compared where none are named.
pub fn policies() -> Vec<String> {
    Eviction::ALL.iter().map(ToString::to_string).collect()
}

/// The policy that knows every later request: no other is held against it as an equal.
pub const HINDSIGHT: &str = "optimal";

/// What is the same for every cell without types, prepared once.
#[derive(Clone, Debug)]
pub struct Pool {
    /// Only the first requests, in file order.
    pub limit: Option<usize>,
    /// Of each contender.
    evictions: Vec<Eviction>,
}

impl Pool {
    /// For these policies.
    ///
    /// # Errors
    /// When such a pool does not know one of them.
    pub fn new(contenders: &[Contender], limit: Option<usize>) -> Result<Self, UnknownEviction> {
        let eviction = |contender: &Contender| contender.eviction.to_string().parse();
        Ok(Self { limit, evictions: contenders.iter().map(eviction).collect::<Result<_, _>>()? })
    }

    /// Replays a trace with room for `capacity_blocks` under the policy with that index.
    ///
    /// # Errors
    /// When there is nothing to replay.
    pub fn evaluate(&self, subject: &Subject, contender: usize, capacity_blocks: u32) -> Result<Verdict, UntypedError> {
        let options = Options { capacity_blocks, eviction: self.evictions[contender], limit: self.limit };
        let outcome = replay(&subject.trace, &options)?;
        Ok(Ok(Figures::Untyped(UntypedFigures {
            measured_tokens: outcome.measured_tokens,
            found_tokens: outcome.found_tokens,
            underfilled: outcome.mode == Mode::Underfilled,
            written_blocks: None,
        })))
    }
}
