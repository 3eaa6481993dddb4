//! `{{name}}`: windows at positions that lie ever further apart, and where the prompt ends.
//!
//! A window costs bytes and spares the recompute of what lies between it and the next one before. Prompts that share a beginning part
//! early more often than late, so the first windows lie close together and each next one lies further on by `growth` percent.
//!
//! To make another policy of it, change `choose`.
#![cfg_attr(target_arch = "wasm32", no_std)]

extern crate alloc;

#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use reprise_policy_sdk::policy::{CheckpointPolicy, Description, Kind, Policy, Setting, Settings, Span};

reprise_policy_sdk::export_checkpoint_policy!(Geometric);

/// The policy.
pub struct Geometric {
    first: u64,
    growth: u64,
}

impl Policy for Geometric {
    const DESCRIPTION: Description = Description {
        name: "{{name}}",
        version: "0.1.0",
        kind: Kind::Checkpoint,
        admission: false,
        state_schema: 0,
        settings: &[
            Setting {
                key: "first",
                help: "position of the first window in tokens",
                default: 1024,
                min: 1,
                max: 1 << 30,
            },
            Setting {
                key: "growth",
                help: "percent by which the next one lies further on",
                default: 50,
                min: 1,
                max: 1000,
            },
        ],
    };

    fn new(settings: &Settings) -> Self {
        Self { first: settings.get("first"), growth: settings.get("growth") }
    }
}

impl CheckpointPolicy for Geometric {
    fn choose(&mut self, span: &Span, positions: &mut Vec<u32>) {
        let block = u64::from(span.block_tokens);
        // Where the request leaves a path that is cached: others may part from it there, too. It lies before all others.
        if span.junction != 0 && span.junction <= span.start {
            positions.push(span.junction);
        }
        let mut next = self.first;
        while next < u64::from(span.end) {
            // Down to a block; at most `end`, so it fits.
            let position = (next / block * block) as u32;
            if position > span.start && positions.last() != Some(&position) {
                positions.push(position);
            }
            next = (next + next * self.growth / 100).max(next + block);
        }
        if span.end > span.start && positions.last() != Some(&span.end) {
            positions.push(span.end);
        }
    }
}
