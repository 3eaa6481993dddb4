//! `auto` as a component.
#![cfg_attr(target_arch = "wasm32", no_std)]

reprise_policy_sdk::export_cache_policy!(reprise_policies::Auto);
