//! The compiler, its fixed set of features, and the limits of everything that runs in it.

use std::{sync::Arc, time::Duration};

use reprise_core::policy::Kind;
use wasmtime::{Config, WasmFeatures};

use crate::{
    component::Component,
    deadline::{Deadline, expired},
    error::LoadError,
    instance::Bounds,
    limits::{Budget, Limits},
    ticker::{Running, Ticker},
    world,
};

/// Ticks in the deadline of a call without items.
const TICKS_PER_CALL: u32 = 10;

/// What policies may be made of: what compilers emit by default. All else is off, proposals that a later wasmtime brings
/// included, so that a policy means the same everywhere and always.
const FEATURES: WasmFeatures = WasmFeatures::COMPONENT_MODEL
    .union(WasmFeatures::MUTABLE_GLOBAL)
    .union(WasmFeatures::SIGN_EXTENSION)
    .union(WasmFeatures::SATURATING_FLOAT_TO_INT)
    .union(WasmFeatures::MULTI_VALUE)
    .union(WasmFeatures::BULK_MEMORY)
    .union(WasmFeatures::REFERENCE_TYPES)
    .union(WasmFeatures::FLOATS);

/// Compiles components and runs them within limits. Cheap to clone; clones share compiler, limits and clock.
#[derive(Clone)]
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub wasmtime: wasmtime::Engine,
    pub limits: Limits,
    clock: Clock,
}

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
        let mut config = Config::new();
        config.wasm_features(WasmFeatures::all().difference(FEATURES), false);
        config.wasm_features(FEATURES, true);
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
        Ok(Self { shared: Arc::new(Shared { wasmtime, limits: limits.clone(), clock }) })
    }

    /// What was given to [`Engine::new`].
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// Checks, compiles and tries a policy of the given kind. `origin` says in messages where `bytes` came from. Takes tens of
    /// milliseconds and more: not for the way of a request.
    pub fn load(&self, bytes: &[u8], origin: &str, kind: Kind) -> Result<Component, LoadError> {
        world::check_bytes(bytes, origin, kind, self.limits().component_bytes)?;
        let invalid = |error: wasmtime::Error| LoadError::Invalid {
            origin: origin.to_owned(),
            reason: format!("{error:#}"),
            world: world::world(kind),
            missing: world::telltale(kind),
        };
        let compiled = wasmtime::component::Component::from_binary(&self.shared.wasmtime, bytes).map_err(invalid)?;
        world::check_interfaces(&compiled, &self.shared.wasmtime, origin, kind)?;
        let linker = wasmtime::component::Linker::<Bounds>::new(&self.shared.wasmtime);
        let linked = linker.instantiate_pre(&compiled).map_err(invalid)?;
        Component::try_out(Arc::clone(&self.shared), linked, bytes, origin, kind)
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
