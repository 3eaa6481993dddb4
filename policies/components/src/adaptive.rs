//! `adaptive` as a component.
#![cfg_attr(target_arch = "wasm32", no_std)]

reprise_policy_sdk::export_learning_checkpoint_policy!(reprise_policies::Adaptive);
