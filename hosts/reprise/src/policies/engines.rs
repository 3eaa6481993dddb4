//! The engines that components run in: one for each profile, made when a component needs it.

use std::{
    io,
    sync::{Arc, OnceLock},
};

use reprise_wasm::{CompileCache, Engine, Limits, Profile};

use crate::config::CompileCacheChoice;

/// Linear memory of a policy: what `auto` needs at most, when no two blocks share their fate. What is not touched costs nothing.
fn memory_bytes(records: u64) -> usize {
    usize::try_from(records.saturating_mul(400)).unwrap_or(usize::MAX).saturating_add(64 << 20).min(LARGEST_MEMORY)
}

/// What a guest can address.
const LARGEST_MEMORY: usize = 4 << 30;

/// Bytes that a directory of compiled policies may hold: hundreds of them.
const COMPILED_BYTES: u64 = 256 << 20;

/// Engines by profile. Clones share them.
#[derive(Clone)]
pub(super) struct Engines {
    made: Arc<[OnceLock<Engine>; Profile::ALL.len()]>,
    most: Profile,
    deterministic: bool,
    /// Records that a policy ranks at most.
    records: u64,
    cache: Option<CompileCache>,
}

impl Engines {
    /// For components of profiles up to `most` that rank up to so many records. Returns also why there is no cache of compiled components, if one was asked for.
    pub fn new(most: Profile, deterministic: bool, records: u64, cache: &CompileCacheChoice) -> (Self, Option<String>) {
        let cache = match cache {
            CompileCacheChoice::Off => Ok(None),
            CompileCacheChoice::User => CompileCache::of_user().map(Some),
            CompileCacheChoice::Directory(path) => CompileCache::open(path, COMPILED_BYTES).map(Some),
        };
        let (cache, trouble) = match cache {
            Ok(cache) => (cache, None),
            Err(error) => (None, Some(format!("policies are compiled at each start: {error}"))),
        };
        (Self { made: Arc::default(), most, deterministic, records, cache }, trouble)
    }

    /// The engine for a component: of the strictest profile that takes it, or of the widest allowed, which then says why not.
    pub fn for_component(&self, bytes: &[u8]) -> io::Result<&Engine> {
        let needed = reprise_wasm::inspect(bytes).ok().and_then(|inspection| inspection.profile.ok());
        let profile = needed.map_or(self.most, |needed| needed.min(self.most));
        let place = &self.made[profile as usize];
        if let Some(engine) = place.get() {
            return Ok(engine);
        }
        let engine = self.make(profile)?;
        Ok(place.get_or_init(|| engine))
    }

    fn make(&self, profile: Profile) -> io::Result<Engine> {
        let limits = Limits::of(profile);
        let limits = Limits { memory_bytes: limits.memory_bytes.max(memory_bytes(self.records)), ..limits };
        let limits = if self.deterministic { limits.fuelled() } else { limits };
        match &self.cache {
            Some(cache) => Engine::with_cache(&limits, cache.clone()),
            None => Engine::new(&limits),
        }
    }
}
