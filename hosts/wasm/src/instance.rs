//! One running copy of a component: its memory, its limits, and calls into it.

use std::{marker::PhantomData, sync::Arc};

use thiserror::Error;
use wasmtime::{
    ResourceLimiter, Store, Trap,
    component::{ComponentNamedList, Func, InstancePre, Lift, Lower, TypedFunc},
};

use crate::{
    deadline::Deadline,
    engine::{Allowance, Shared},
    error::PolicyError,
    limits::Limits,
    world::interface,
};

/// A function of the contract.
pub(crate) trait Function {
    /// Interface of package `reprise:policy`.
    const INTERFACE: &'static str;
    /// Name in that interface.
    const NAME: &'static str;
    /// What goes in.
    type Params<'a>: ComponentNamedList + Lower;
    /// What comes out.
    type Answer: ComponentNamedList + Lift + 'static;
}

/// A function of an instance, of the type that `F` says.
pub(crate) struct Export<F> {
    func: Func,
    function: PhantomData<fn() -> F>,
}

/// Why a function is not there.
pub(crate) enum NoExport {
    Missing,
    Type(String),
}

/// An instance in a store of its own: after an error the store is of no use, so they live and go together.
pub(crate) struct Instance {
    engine: Arc<Shared>,
    store: Store<Bounds>,
    instance: wasmtime::component::Instance,
    failed: Option<PolicyError>,
    fuel_used: u64,
}

impl Instance {
    /// A new instance. A core `start` function runs here.
    pub(crate) fn new(engine: &Arc<Shared>, linked: &InstancePre<Bounds>) -> Result<Self, PolicyError> {
        const CALL: &str = "instantiate";
        let mut store = engine.store();
        let allowance = Allowance { items: 0, rare: true, answer_bytes: 0 };
        let running = engine.allow(&mut store, allowance);
        let instance = linked.instantiate(&mut store);
        drop(running);
        let instance = instance.map_err(|error| match classify(CALL, &error, engine, allowance) {
            // Nothing was answered yet: it has more parts than a store may hold.
            PolicyError::Answer { call, what } => PolicyError::Trap { call, what },
            other => other,
        })?;
        Ok(Self { engine: Arc::clone(engine), store, instance, failed: None, fuel_used: 0 })
    }

    /// The limits it runs under.
    pub(crate) fn limits(&self) -> &Limits {
        &self.engine.limits
    }

    /// Linear memory that it has, in bytes. It never gives any back.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.store.data().ceiling.memory_bytes
    }

    /// Fuel that its calls used so far; 0 where time is measured.
    pub(crate) fn fuel_used(&self) -> u64 {
        self.fuel_used
    }

    /// Looks a function up and compares its type.
    pub(crate) fn export<F: Function>(&mut self) -> Result<Export<F>, NoExport> {
        let interface = self.instance.get_export_index(&mut self.store, None, &interface(F::INTERFACE));
        let index =
            interface.and_then(|interface| self.instance.get_export_index(&mut self.store, Some(&interface), F::NAME));
        let func = index.and_then(|index| self.instance.get_func(&mut self.store, index)).ok_or(NoExport::Missing)?;
        func.typed::<F::Params<'static>, F::Answer>(&self.store)
            .map_err(|error| NoExport::Type(format!("{error:#}")))?;
        Ok(Export { func, function: PhantomData })
    }

    /// Looks up a function that the load check has seen in this component.
    pub(crate) fn checked_export<F: Function>(&mut self) -> Export<F> {
        match self.export() {
            Ok(export) => export,
            Err(_) => unreachable!("`{}` was found when the component was loaded", F::NAME),
        }
    }

    /// Calls a function of this instance within its limits.
    pub(crate) fn call<F: Function>(
        &mut self,
        export: &Export<F>,
        params: F::Params<'_>,
        allowance: Allowance,
    ) -> Result<F::Answer, PolicyError> {
        if let Some(first) = &self.failed {
            return Err(PolicyError::Failed { call: F::NAME, first: Box::new(first.clone()) });
        }
        let running = self.engine.allow(&mut self.store, allowance);
        // SAFETY: an `Export<F>` is made by `export` only, which has checked the function against these types; they differ from
        // those checked in a lifetime at most.
        let func = unsafe { TypedFunc::<F::Params<'_>, F::Answer>::new_unchecked(export.func) };
        let answer = func.call(&mut self.store, params);
        drop(running);
        self.fuel_used += self.engine.fuel_used(&self.store, allowance).unwrap_or(0);
        answer.map_err(|error| {
            let error = classify(F::NAME, &error, &self.engine, allowance);
            self.fail(error)
        })
    }

    /// An answer that is none: the policy is unusable from now on.
    pub(crate) fn reject(&mut self, call: &'static str, what: String) -> PolicyError {
        self.fail(PolicyError::Answer { call, what })
    }

    fn fail(&mut self, error: PolicyError) -> PolicyError {
        self.failed = Some(error.clone());
        error
    }
}

/// Finds out by type what went wrong.
fn classify(call: &'static str, error: &wasmtime::Error, engine: &Shared, allowance: Allowance) -> PolicyError {
    if let Some(reached) = error.downcast_ref::<Reached>() {
        return PolicyError::Memory { call, allowed: reached.to_string() };
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::Interrupt | Trap::OutOfFuel) => PolicyError::Deadline { call, allowed: engine.describe(allowance) },
        Some(trap) => PolicyError::Trap { call, what: trap.to_string() },
        // What remains are answers that break the rules of the boundary: lists out of bounds, broken UTF-8, too much to copy.
        None => PolicyError::Answer { call, what: format!("{error:#}") },
    }
}

/// The limit that a policy ran into.
#[derive(Clone, Copy, Debug, Error)]
enum Reached {
    #[error("{0} bytes of memory")]
    Memory(usize),
    #[error("{0} table elements")]
    Table(usize),
}

/// What a store keeps for its limits.
pub(crate) struct Bounds {
    pub ceiling: Ceiling,
    pub deadline: Deadline,
}

impl Bounds {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { ceiling: Ceiling::new(limits), deadline: Deadline::default() }
    }
}

/// Memory and tables of a store, all of them together, against their limits.
pub(crate) struct Ceiling {
    memory_bytes: usize,
    memory_limit: usize,
    table_elements: usize,
    table_limit: usize,
    instances: usize,
}

impl Ceiling {
    fn new(limits: &Limits) -> Self {
        let &Limits { memory_bytes: memory_limit, table_elements: table_limit, instances, .. } = limits;
        Self { memory_bytes: 0, memory_limit, table_elements: 0, table_limit, instances }
    }
}

/// What is in use after growing from `current` to `desired`, if that is within `limit`.
fn grown(used: usize, current: usize, desired: usize, limit: usize) -> Option<usize> {
    used.checked_add(desired.checked_sub(current)?).filter(|&used| used <= limit)
}

impl ResourceLimiter for Ceiling {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        // An error is a trap; `false` would only tell the guest.
        self.memory_bytes =
            grown(self.memory_bytes, current, desired, self.memory_limit).ok_or(Reached::Memory(self.memory_limit))?;
        Ok(true)
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        self.table_elements =
            grown(self.table_elements, current, desired, self.table_limit).ok_or(Reached::Table(self.table_limit))?;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        Err(error)
    }

    fn table_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        Err(error)
    }

    fn instances(&self) -> usize {
        self.instances
    }

    fn tables(&self) -> usize {
        self.instances
    }

    fn memories(&self) -> usize {
        self.instances
    }
}
