//! The compiler, its fixed set of features, and the limits of everything that runs in it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use reprise_core::{Digest, policy::Kind};
use wasmtime::{Config, WasmFeatures};

use crate::{
    compiled::{CompileCache, Found, Name, engine_digest},
    component::{Component, Description},
    conformance,
    deadline::{Deadline, expired},
    error::LoadError,
    instance::Bounds,
    limits::{Budget, Limits},
    ticker::{Running, Ticker},
    world,
};

/// Ticks in the deadline of a call without items.
const TICKS_PER_CALL: u32 = 10;

/// Compiles components and runs them within limits. Cheap to clone; clones share compiler, limits and clock.
#[derive(Clone)]
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub wasmtime: wasmtime::Engine,
    pub limits: Limits,
    clock: Clock,
    compiled: Option<Compiled>,
    counts: [AtomicU64; 3],
}

/// Compiled components on disk, and what this engine looks for among them.
struct Compiled {
    cache: CompileCache,
    engine: Digest,
}

/// What became of the components that an engine was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompileCounts {
    /// Compiled.
    pub compiled: u64,
    /// Taken from the cache instead.
    pub cached: u64,
    /// Found in the cache, not trusted, and compiled: damaged, forged, or of another host, engine or component.
    pub refused: u64,
}

/// Places in [`Shared::counts`].
const COMPILED: usize = 0;
const CACHED: usize = 1;
const REFUSED: usize = 2;

/// How a [`Budget`] is measured.
enum Clock {
    Deadline { ticker: Ticker, tick_ns: u64, call_ns: u64, item_ns: u64 },
    Fuel { per_call: u64, per_item: u64 },
}

/// What a call may cost.
#[derive(Clone, Copy)]
pub(crate) struct Allowance {
    /// See [`Budget`].
    pub items: u64,
    /// Off the way of requests: [`Limits::rare_calls`] applies.
    pub rare: bool,
    /// Bytes an honest answer may have.
    pub answer_bytes: usize,
}

impl Engine {
    /// An engine with these limits. Starts a thread that is idle while no policy runs, if the budget is a deadline.
    ///
    /// # Errors
    /// When the machine refuses the thread.
    ///
    /// # Panics
    /// On machines that wasmtime has no compiler for, and with a stack of 0 bytes.
    pub fn new(limits: &Limits) -> std::io::Result<Self> {
        Self::build(limits, None)
    }

    /// Like [`Engine::new`], and compiles only what `cache` does not hold. A cache that cannot be read or written later makes loading
    /// slower, never fail.
    ///
    /// # Errors
    /// As [`Engine::new`].
    ///
    /// # Panics
    /// As [`Engine::new`].
    pub fn with_cache(limits: &Limits, cache: CompileCache) -> std::io::Result<Self> {
        Self::build(limits, Some(cache))
    }

    fn build(limits: &Limits, cache: Option<CompileCache>) -> std::io::Result<Self> {
        // A component of several inner components gets adapters from wasmtime that need two memories at once, and it panics where it may
        // not make them. What the component itself is made of is validated without before it is compiled.
        let features = limits.profile.features().union(WasmFeatures::MULTI_MEMORY);
        let mut config = Config::new();
        config.wasm_features(WasmFeatures::all().difference(features), false);
        config.wasm_features(features, true);
        config.cranelift_nan_canonicalization(true);
        config.concurrency_support(false);
        config.max_wasm_stack(limits.stack_bytes);
        config.wasm_backtrace_max_frames(None);
        match limits.budget {
            Budget::Deadline { .. } => config.epoch_interruption(true),
            Budget::Fuel { .. } => config.consume_fuel(true),
        };
        let wasmtime = wasmtime::Engine::new(&config).expect("a fixed configuration is valid");
        let clock = Clock::of(limits.budget, &wasmtime)?;
        let compiled = cache.map(|cache| Compiled { cache, engine: engine_digest(&wasmtime) });
        let counts = Default::default();
        Ok(Self { shared: Arc::new(Shared { wasmtime, limits: limits.clone(), clock, compiled, counts }) })
    }

    /// What was given to [`Engine::new`].
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// What became of the components that were given to this engine and its clones.
    pub fn compile_counts(&self) -> CompileCounts {
        let [compiled, cached, refused] =
            [COMPILED, CACHED, REFUSED].map(|which| self.shared.counts[which].load(Ordering::Relaxed));
        CompileCounts { compiled, cached, refused }
    }

    /// Checks, compiles and tries a policy of the given kind. `origin` says in messages where `bytes` came from. Takes tens of
    /// milliseconds and more: not for the way of a request.
    pub fn load(&self, bytes: &[u8], origin: &str, kind: Kind) -> Result<Component, LoadError> {
        let component = self.load_untried(bytes, origin, kind)?;
        conformance::at_load(&component).map_err(|error| LoadError::Behaviour { origin: origin.to_owned(), error })?;
        Ok(component)
    }

    /// What a component says of itself. Like [`Engine::load`] but for the run in which it has to behave.
    pub fn describe(&self, bytes: &[u8], origin: &str, kind: Kind) -> Result<Description, LoadError> {
        self.load_untried(bytes, origin, kind).map(|component| component.description().clone())
    }

    /// A component that was not seen to behave.
    pub(crate) fn load_untried(&self, bytes: &[u8], origin: &str, kind: Kind) -> Result<Component, LoadError> {
        world::check_bytes(bytes, origin, kind, self.limits().component_bytes)?;
        let invalid = |error: wasmtime::Error| LoadError::Invalid {
            origin: origin.to_owned(),
            reason: format!("{error:#}"),
            world: world::world(kind),
            missing: world::telltale(kind),
        };
        let mut validator = wasmparser::Validator::new_with_features(self.limits().profile.features());
        validator.validate_all(bytes).map_err(|error| invalid(error.into()))?;
        let digest = Digest(blake3::hash(bytes).into());
        let compiled = self.shared.compile(bytes, digest).map_err(invalid)?;
        world::check_interfaces(&compiled, &self.shared.wasmtime, origin, kind)?;
        let linker = wasmtime::component::Linker::<Bounds>::new(&self.shared.wasmtime);
        let linked = linker.instantiate_pre(&compiled).map_err(invalid)?;
        Component::examine(Arc::clone(&self.shared), linked, digest, origin, kind)
    }
}

impl Clock {
    fn of(budget: Budget, engine: &wasmtime::Engine) -> std::io::Result<Self> {
        match budget {
            Budget::Deadline { per_call, per_item } => {
                let tick = (per_call / TICKS_PER_CALL).max(Duration::from_micros(50));
                let engine = engine.clone();
                let ticker = Ticker::start(tick, move || engine.increment_epoch())?;
                let ns = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
                Ok(Self::Deadline { ticker, tick_ns: ns(tick), call_ns: ns(per_call), item_ns: ns(per_item) })
            }
            Budget::Fuel { per_call, per_item } => Ok(Self::Fuel { per_call, per_item }),
        }
    }
}

impl Shared {
    /// Machine code of a component: this host's own from the cache, or compiled and kept there.
    fn compile(&self, bytes: &[u8], digest: Digest) -> wasmtime::Result<wasmtime::component::Component> {
        let count = |which: usize| self.counts[which].fetch_add(1, Ordering::Relaxed);
        let named = self.compiled.as_ref().map(|compiled| (&compiled.cache, Name::new(digest, compiled.engine)));
        if let Some((cache, name)) = &named {
            match cache.find(name) {
                Found::Nothing => {}
                Found::Code(code) => {
                    // SAFETY: `Code` carries a code of authentication, under a key that only this user can read, over the digest of
                    // these very bytes, the digest of all that an engine's code depends on, and the code itself: it is what
                    // `serialize` gave below, in this or another process of this user.
                    let loaded = unsafe { wasmtime::component::Component::deserialize(&self.wasmtime, code.bytes()) };
                    if let Ok(component) = loaded {
                        count(CACHED);
                        return Ok(component);
                    }
                    count(REFUSED);
                }
                Found::Untrusted => {
                    count(REFUSED);
                }
            }
        }
        count(COMPILED);
        let component = wasmtime::component::Component::from_binary(&self.wasmtime, bytes)?;
        if let Some((cache, name)) = &named
            && let Ok(code) = component.serialize()
        {
            // A full disk costs the next process a compilation.
            let _ = cache.keep(name, &code);
        }
        Ok(component)
    }

    /// A store with the limits that hold for all its calls.
    pub(crate) fn store(&self) -> wasmtime::Store<Bounds> {
        let mut store = wasmtime::Store::new(&self.wasmtime, Bounds::new(&self.limits));
        store.limiter(|bounds| &mut bounds.ceiling);
        if matches!(self.clock, Clock::Deadline { .. }) {
            store.epoch_deadline_callback(expired);
        }
        store
    }

    /// Sets the limits of the next call into `store` and keeps the clock going until the returned guard is dropped.
    pub(crate) fn allow(&self, store: &mut wasmtime::Store<Bounds>, allowance: Allowance) -> Option<Running<'_>> {
        store.set_hostcall_fuel(allowance.answer_bytes.saturating_add(self.limits.answer_slack_bytes));
        match &self.clock {
            Clock::Deadline { ticker, tick_ns, .. } => {
                let running = ticker.call();
                let deadline = Deadline::new(self.amount(allowance), *tick_ns);
                store.data_mut().deadline = deadline;
                store.set_epoch_deadline(deadline.first_ticks());
                Some(running)
            }
            Clock::Fuel { .. } => {
                store.set_fuel(self.amount(allowance)).expect("the engine counts fuel");
                None
            }
        }
    }

    /// Fuel that the last call used; `None` where time is measured.
    pub(crate) fn fuel_used(&self, store: &wasmtime::Store<Bounds>, allowance: Allowance) -> Option<u64> {
        match self.clock {
            Clock::Deadline { .. } => None,
            Clock::Fuel { .. } => Some(self.amount(allowance).saturating_sub(store.get_fuel().unwrap_or(0))),
        }
    }

    /// Nanoseconds or fuel.
    fn amount(&self, allowance: Allowance) -> u64 {
        let (call, item) = match self.clock {
            Clock::Deadline { call_ns, item_ns, .. } => (call_ns, item_ns),
            Clock::Fuel { per_call, per_item } => (per_call, per_item),
        };
        let calls = if allowance.rare { u64::from(self.limits.rare_calls) } else { 1 };
        call.saturating_mul(calls).saturating_add(item.saturating_mul(allowance.items))
    }

    /// What a call was allowed, for a message.
    pub(crate) fn describe(&self, allowance: Allowance) -> String {
        let amount = self.amount(allowance);
        match self.clock {
            Clock::Deadline { .. } => format!("{:?}", Duration::from_nanos(amount)),
            Clock::Fuel { .. } => format!("{amount} units of fuel"),
        }
    }
}
