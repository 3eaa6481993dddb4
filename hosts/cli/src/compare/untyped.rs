//! The pool without types: the one place where its policies come into the comparison.

use reprise::{PolicyError, PolicyKind, PolicyLoader, PolicyTerms};

use super::{Contender, Figures, Subject, UntypedFigures, figures::Verdict, shipped};
use crate::untyped::{Eviction, Mode, Options, Paths, Rule, UntypedError, replay_paths};

/// The policies compared where none are named: the rules of this mode, and the shipped policies beside them.
pub fn policies() -> Vec<String> {
    let rules = [Rule::Fifo, Rule::Lru, Rule::Optimal].map(Rule::name);
    let others = shipped(PolicyKind::Cache).into_iter().filter(|name| !rules.contains(name));
    rules.into_iter().chain(others).map(str::to_owned).collect()
}

/// The policy that knows every later request: no other is held against it as an equal.
pub const HINDSIGHT: &str = "optimal";

/// What is the same for every cell without types, prepared once.
pub struct Pool {
    /// Only the first requests, in file order.
    pub limit: Option<usize>,
    /// Of each contender.
    evictions: Vec<Eviction>,
    /// Of each trace.
    paths: Vec<Paths>,
}

impl Pool {
    /// For these policies on these traces; policies are loaded on `terms`.
    ///
    /// # Errors
    /// When a policy does not load, or a trace has nothing to replay.
    pub fn new(
        contenders: &[Contender],
        subjects: &[Subject],
        limit: Option<usize>,
        terms: PolicyTerms,
    ) -> Result<Self, UntypedError> {
        let loader = PolicyLoader::new(terms);
        let eviction = |contender: &Contender| -> Result<Eviction, PolicyError> {
            match Rule::named(&contender.eviction) {
                Some(rule) => Ok(rule.into()),
                None => Eviction::policy(&contender.eviction, &loader),
            }
        };
        Ok(Self {
            limit,
            evictions: contenders.iter().map(eviction).collect::<Result<_, _>>()?,
            paths: subjects.iter().map(|subject| Paths::of(&subject.trace, limit)).collect::<Result<_, _>>()?,
        })
    }

    /// Replays a trace with room for `capacity_blocks` under the policy with that index.
    ///
    /// # Errors
    /// When the policy refuses its settings.
    pub fn evaluate(&self, subject: usize, contender: usize, capacity_blocks: u32) -> Result<Verdict, UntypedError> {
        let options = Options { capacity_blocks, eviction: self.evictions[contender].clone() };
        let outcome = replay_paths(&self.paths[subject], &options)?;
        if let Some(failure) = outcome.failure {
            return Ok(Err(format!("at request {}: {}", failure.request, failure.error)));
        }
        Ok(Ok(Figures::Untyped(UntypedFigures {
            measured_tokens: outcome.measured_tokens,
            found_tokens: outcome.found_tokens,
            underfilled: outcome.mode == Mode::Underfilled,
            written_blocks: Some(outcome.written_blocks),
        })))
    }
}
