//! Where the one policy of a component instance lives between calls.

use core::cell::RefCell;

/// Holds the policy from `configure` on.
pub struct Slot<P>(RefCell<Option<P>>);

// SAFETY: a component instance has one thread (the threads proposal is off), and the component model does not let a host
// enter an instance that is running.
unsafe impl<P> Sync for Slot<P> {}

impl<P> Slot<P> {
    /// A slot before `configure`.
    pub const fn empty() -> Self {
        Self(RefCell::new(None))
    }

    /// Puts the configured policy in place.
    pub(crate) fn install(&self, policy: P) {
        *self.0.borrow_mut() = Some(policy);
    }

    /// Runs `call` on the policy.
    ///
    /// # Panics
    /// Before `configure`; inside a component that is a trap.
    pub(crate) fn with<R>(&self, call: impl FnOnce(&mut P) -> R) -> R {
        call(self.0.borrow_mut().as_mut().expect("configure comes first"))
    }
}

/// Ties the type that the export macros define to the policy's slot.
pub trait Resident {
    /// The exported policy.
    type Policy: 'static;

    /// Where it lives.
    fn slot() -> &'static Slot<Self::Policy>;
}
