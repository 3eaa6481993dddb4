//! Engines that policies are loaded in, and what they compile, kept for the next command.

use anyhow::Context;
use reprise::wasm::{CompileCache, Engine, Limits};

use super::Problem;

/// Makes engines that share what was compiled before.
pub struct Compiler {
    cache: Option<CompileCache>,
}

impl Compiler {
    /// One that keeps in the user's cache directory what it compiles. `warn` is told when that is not possible: it then compiles anew
    /// each time.
    pub fn of_user(warn: impl FnOnce(&str)) -> Self {
        let cache = CompileCache::of_user().inspect_err(|error| warn(&error.to_string())).ok();
        Self { cache }
    }

    /// Where it keeps what it compiles.
    pub(super) fn cache(&self) -> Option<CompileCache> {
        self.cache.clone()
    }

    /// An engine with these limits.
    ///
    /// # Errors
    /// [`Problem::Work`] when the machine refuses a thread.
    pub(super) fn engine(&self, limits: &Limits) -> Result<Engine, Problem> {
        let engine = match &self.cache {
            Some(cache) => Engine::with_cache(limits, cache.clone()),
            None => Engine::new(limits),
        };
        engine.context("starting the thread that watches over deadlines of policies").map_err(Problem::Work)
    }
}
