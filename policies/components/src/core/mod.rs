//! `core` as a component: names of blocks, layouts of records, plans and what they cost.
#![cfg_attr(target_arch = "wasm32", no_std)]

#[cfg(target_arch = "wasm32")]
extern crate alloc;

#[cfg(target_arch = "wasm32")]
mod layout;
#[cfg(target_arch = "wasm32")]
mod plan;
#[cfg(target_arch = "wasm32")]
mod prefix;
#[cfg(target_arch = "wasm32")]
mod pricing;

/// What wit-bindgen makes of the world.
#[cfg(target_arch = "wasm32")]
mod bindings {
    wit_bindgen::generate!({ path: "../../wit", world: "core" });
}

#[cfg(target_arch = "wasm32")]
mod export {
    // The allocator and the panic handler.
    use reprise_policy_sdk as _;

    /// Implements every interface of the world, each in its own module.
    pub(crate) struct Core;

    super::bindings::export!(Core with_types_in super::bindings);
}
