//! Turns a policy written against `reprise-core`'s traits into a WebAssembly component.
//!
//! A component is a `cdylib` with one line:
//!
//! ```ignore
//! reprise_policy_sdk::export_cache_policy!(MyPolicy);
//! ```
//!
//! where `MyPolicy` implements [`Policy`](reprise_core::policy::Policy) and
//! [`CachePolicy`](reprise_core::policy::CachePolicy). The crate brings the bindings, the allocator and the panic handler (a
//! panic is a trap). On every other target the macros only check the traits, so that a workspace with component crates
//! builds everywhere.
#![no_std]

#[cfg(target_arch = "wasm32")]
extern crate alloc;

pub use reprise_core::policy;

#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub mod cache;
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub mod checkpoint;
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub mod reuse;
#[cfg(target_arch = "wasm32")]
mod runtime;
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub mod setup;
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub mod slot;

/// Exports a [`CachePolicy`](reprise_core::policy::CachePolicy) as world `cache-policy-complete`.
#[macro_export]
macro_rules! export_cache_policy {
    ($policy:ty) => {
        $crate::export_policy!($policy, CachePolicy, cache, export_cache);
    };
}

/// Exports a [`CheckpointPolicy`](reprise_core::policy::CheckpointPolicy) as world `checkpoint-policy`.
#[macro_export]
macro_rules! export_checkpoint_policy {
    ($policy:ty) => {
        $crate::export_policy!($policy, CheckpointPolicy, checkpoint, export_checkpoints);
    };
}

/// Exports a [`CheckpointPolicy`](reprise_core::policy::CheckpointPolicy) that learns from the requests it is asked about as world
/// `learning-checkpoint-policy`.
#[macro_export]
macro_rules! export_learning_checkpoint_policy {
    ($policy:ty) => {
        $crate::export_checkpoint_policy!($policy);
        #[cfg(target_arch = "wasm32")]
        $crate::reuse::bindings::export_reuse!(Exported with_types_in $crate::reuse::bindings);
    };
}

/// Ties the policy to its slot, and the slot to the exports.
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
#[macro_export]
macro_rules! export_policy {
    ($policy:ty, $trait:ident, $module:ident, $export:ident) => {
        struct Exported;

        impl $crate::slot::Resident for Exported {
            type Policy = $policy;

            fn slot() -> &'static $crate::slot::Slot<$policy> {
                static SLOT: $crate::slot::Slot<$policy> = $crate::slot::Slot::empty();
                &SLOT
            }
        }

        $crate::setup::bindings::export_setup!(Exported with_types_in $crate::setup::bindings);
        $crate::$module::bindings::$export!(Exported with_types_in $crate::$module::bindings);
    };
}

/// Outside components there is nothing to export; the traits are checked all the same.
#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
#[macro_export]
macro_rules! export_policy {
    ($policy:ty, $trait:ident, $module:ident, $export:ident) => {
        const _: () = {
            const fn check<P: $crate::policy::Policy + $crate::policy::$trait>() {}
            check::<$policy>()
        };
    };
}
